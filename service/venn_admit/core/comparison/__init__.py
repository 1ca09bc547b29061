"""The methods that an evaluation compares against: split conformal, LocalConf, APS and RAPS.

These arguments mean the same in all of its modules.

Args:
    calibration: The points to calibrate on.
    data: The points of `knn` and `mc`.
    draws: (n,) float64 in [0, 1), U, from `uniform_draws`.
    external_ids: n strings.
    held_out: Held-out data by split.
    judged: (m,) int64, the rows of the points to decide on; None for all of them.
    kinds: The kinds of classes that something was asked for.
    localizer: Over the points, for weighted probabilities of Venn-ADMIT; None for plain ones.
    logits: (n, C) float32, C >= 2, f, finite; may be a memory map.
    mc: n points of `mc`, in any order.
    name: The name of a method.
    on_method: Called with the name of each method before it is computed.
    points: The points to decide on, none of them held out.
    promise: What is asked of the methods.
    rule: The rule that gives a point its set.
    vectors: (n, D) float32, of the points to decide on.
"""
