"""The state of a calibration: drift, discrepancies, partitions, and the labels it needs.

These arguments mean the same in all of its modules.

Args:
    document: As JSON holds it.
    end: One past the last document.
    first: The first document.
    level: The chance of a false alarm, which the games of each lamp share.
    mc: n points of mc.
    mc_documents: Their documents; None if no two points share one.
    recent: The comparable points of recent traffic, in their order; None if there are none.
    snapshot: The snapshot to compare with.
    target: In [0, 1].
"""
