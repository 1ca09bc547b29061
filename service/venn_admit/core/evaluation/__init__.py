"""How good decisions are on labelled points: shares, intervals and curves.

These arguments and attributes mean the same in all of its modules.

Args:
    documents: Those of the points; None if no two share one.
    groupings: Groupings of the same n points.
    method: The predictions and sets of a method.
    name: The name of a method.
"""
