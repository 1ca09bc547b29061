"""How good decisions are on labelled points: shares, intervals and curves.

These arguments mean the same in all of its modules.

Args:
    admitted: (n,) bool, whether each prediction is admitted.
    distance: (n,) float64, d.
    groupings: Groupings of the same n points.
    match_count: (n,) int64 in [0, K], q.
    method: The predictions and sets of a method.
    name: The name of a method.
"""
