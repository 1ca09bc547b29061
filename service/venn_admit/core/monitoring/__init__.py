"""The state of a calibration: drift, discrepancies, partitions, and the labels it needs.

These arguments mean the same in all of its modules.

Args:
    after: The same afterwards.
    before: As it was, at the fit or before a change.
    calibration_id: The key of the snapshot to compare with.
    comparison: With the calibration data of the snapshot, as its method compares them.
    distance_edges: (G - 1,) float64, ascending.
    document: As JSON holds it.
    end: One past the last document.
    first: The first document.
    kappa: The kappa that bands must reach.
    level: The chance of a false alarm, which the games of each lamp share.
    match_edges: (Q,) lower edges of the groups of q; None without vectors.
    mc: n points of mc.
    mc_documents: Their documents; None if no two points share one.
    omega: Band radius; may be inf.
    q_bin: (n,) int64, the bin of q of each point.
    recent: The comparable points of recent traffic, in their order; None if there are none.
    redecided: The result of `redecide`.
    snapshot: The snapshot to compare with.
    target: In [0, 1].
    venn: The index of vp.
    vp: Points of vp.
    vp_singleton: (n_vp,) bool, whether the ADMIT set of each point of vp is a singleton.
"""
