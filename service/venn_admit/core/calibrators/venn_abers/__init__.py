"""Venn-Abers on the network's own prediction: docs/PROCEDURE.md, section 9.

These arguments and attributes mean the same in all of its modules.

Args:
    bounds: The bounds of m points.
    by_softmax: (n,) bool, which points the network's softmax at 1 - alpha admits, with a temperature that the
        proposing points fit; needed for the strongest promise, and for none other.
    cell: (n,) int64, >= 0.
    certification: What is asked for.
    documents: The number of documents of evidence that there will be.
    full_match: (m,) bool, q = K, if the others are to be rejected; None to admit them as well.
    groups: The groups of the calibration points.
    kind: The kind of score.
    model: The model of the reliability score; the network's needs none.
    rows: (m,) int64, row numbers, or (n,) bool.
    view: The KNN's, of the same points; None without vectors, where the score is the network's.
"""
