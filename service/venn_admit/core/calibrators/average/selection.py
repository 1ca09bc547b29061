"""Conformal selection: admit the points of a batch so that few of them are wrong on average.

Source: Jin & Candes (2023), *Selection by prediction with conformal p-values*, JMLR 24, with the procedure of Benjamini
& Hochberg (1995). All points here are of one predicted class, and the greater score is the one more likely to be right.
"""

from decimal import Decimal

import numpy as np

from venn_admit.core.types import FloatArray, IntArray


def wrong_from(wrong_score: FloatArray, score: FloatArray) -> IntArray:
    """Return how many wrong calibration points score at least as high as each of m points.

    With n calibration points, wrong or not, the conformal p-value of a point is (1 + this) / (n + 1).

    Args:
        wrong_score: (w,) float64, the scores of the calibration points that are wrong.
        score: (m,) float64.

    Returns:
        (m,) int64 in [0, w].

    Examples:
        >>> wrong_from(np.array([0.2, 0.7]), np.array([0.9, 0.7, 0.1])).tolist()
        [0, 1, 2]
    """
    return len(wrong_score) - np.searchsorted(np.sort(wrong_score), score, side="left")


def selection_threshold(
    wrong_score: FloatArray, count: int, batch_score: FloatArray, alpha: Decimal, *, further: bool
) -> float | None:
    """Return the least score that conformal selection admits of a batch; None if it admits nothing.

    Benjamini & Hochberg's procedure at alpha admits the points from the least score t of the batch at which
    (1 + wrong_from(t)) / (count + 1) <= alpha * (points of the batch from t) / (points of the batch). Whole numbers are
    compared, points of one score stay together, and no order matters.

    Args:
        wrong_score: (w,) float64, the scores of the calibration points that are wrong.
        count: n >= w, the number of calibration points, wrong or not.
        batch_score: (m,) float64, the scores of the batch.
        alpha: In (0, 1).
        further: Whether a point that is not there yet belongs to the batch. If it is admitted it scores at least t, so
            that both counts of the batch have one more.

    Examples:
        >>> scores = np.linspace(0, 1, 101)
        >>> selection_threshold(scores[:20], 101, scores, Decimal("0.1"), further=False)
        0.13
    """
    if not len(batch_score):
        return None
    # The number of points from each score of the batch, equal scores together.
    scores, points = np.unique(batch_score, return_counts=True)
    from_score = np.cumsum(points[::-1])[::-1] + further
    level, parts = alpha.as_integer_ratio()
    # Python's integers, which do not overflow
    wrong = (1 + wrong_from(wrong_score, scores)).astype(object) * ((len(batch_score) + further) * parts)
    passed = np.flatnonzero(wrong <= from_score.astype(object) * ((count + 1) * level))
    return float(scores[passed[0]]) if passed.size else None
