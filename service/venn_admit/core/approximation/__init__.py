"""The approximations of the network: the KNN and the localizer, and how their parameters are fitted.

These arguments and attributes mean the same in all of its modules.

Args:
    count: >= 1.
    logits: (n, C), C >= 2, finite.
    neighbours: (n, K), rows of the support.
    parameters: The parameters of C classes.
    queries: (m, D) float32.
    support: The training exemplars; for the localizer, all of vp, (n, D) float32, which may be a memory map.
    support_knn_logits: (n_vp, C) float64, KNN(x_j) of the support.
    view: The KNN's view of n points.
    window_high: (m,) int64, one past the last row of each window; low <= high <= n.
    window_low: (m,) int64 >= 0, the first row of each window.
"""
