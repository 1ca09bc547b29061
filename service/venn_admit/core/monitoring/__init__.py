"""The state of a calibration: drift, discrepancies, partitions, and the labels it needs.

These arguments and attributes mean the same in all of its modules.

Args:
    after: The same afterwards.
    before: As it was, at the fit or before a change.
    calibration_id: The key of the snapshot to compare with.
    comparison: With the calibration data of the snapshot, as its method compares them.
    distance_edges: (G - 1,) float64, ascending.
    end: One past the last document.
    first: The first document.
    group: (n,) int64 in [-1, g); -1 for a point that is in none.
    kappa: The kappa that bands must reach.
    kinds: What the snapshot's certificate was asked for.
    lamp: One of the lamps of a monitor.
    level: The chance of a false alarm, which the games of each lamp share.
    match_edges: (Q,) lower edges of the groups of q; None without vectors.
    mc: n points of mc.
    mc_documents: Their documents; None if no two points share one.
    policy: That of the snapshot's certificate; None if none is certified.
    q_bin: (n,) int64, the bin of q of each point.
    recent: The comparable points of recent traffic, in their order; None if there are none.
    redecided: The result of `redecide`.
    snapshot: The snapshot to compare with.
    target: In [0, 1].
    venn: The index of vp.
    vp: Points of vp.
    vp_singleton: (n_vp,) bool, whether the ADMIT set of each point of vp is a singleton.
"""
