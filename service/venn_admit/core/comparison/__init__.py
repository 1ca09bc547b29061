"""The methods that an evaluation compares against: split conformal, LocalConf, APS and RAPS.

These arguments and attributes mean the same in all of its modules.

Args:
    calibration: The points to calibrate on.
    data: The points of `knn` and `mc`.
    draws: (n,) float64 in [0, 1), U, from `uniform_draws`.
    external_ids: n strings.
    given: What settings are cross-fitted on.
    held_out: Held-out data by split.
    kinds: The kinds of classes that something was asked for.
    kind: The kind of score.
    logits: (n, C) float32, C >= 2, f, finite; may be a memory map.
    mc: n points of `mc`, in any order.
    name: The name of a method.
    on_method: Called with the name of each method before it is computed.
    on_points: Called with a number of points that a method has gone through since.
    points: The points to decide on, none of them held out.
    promise: What is asked of the methods.
    queries: (m, D) float32; may be a memory map.
    rule: The rule that gives a point its set.
    score: (n,) float64, of the labels of the calibration points.
    support: (n, D) float32, n >= 1, the calibration points; may be a memory map.
    vectors: (n, D) float32, of the points to decide on.
"""
