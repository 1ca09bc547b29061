"""The method of the paper: ADMIT sets, the Venn predictor over them, and the decision that follows.

These arguments and attributes mean the same in all of its modules.

Args:
    admit: The ADMIT part of the snapshot.
    band_size: (m, C) int64, n_c; for one point, (C,).
    correct: (m,) int64, #{j in T : y_j = yhat}.
    logits: (m, C) float64, finite, KNN(x).
    require_full_match: Whether points with q < K are rejected ("q = K only").
    singleton: (m,) bool, whether the ADMIT set of each point is a singleton.
    size: (m,) int64, |T|.
    threshold_score: (m, C) float64, the rank-th smallest score; inf if the rank exceeds n_c; for one point, (C,).
    venn: The Venn part of the snapshot.
"""
