"""Split conformal prediction on the score 1 - pi, with one threshold for all points.

Sources: Vovk, Gammerman & Shafer (2005), *Algorithmic Learning in a Random World*; docs/PROCEDURE.md, section 7.
"""

from decimal import Decimal

import numpy as np

from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.order_statistics import conformal_rank
from venn_admit.core.calibrators.settings import check_alpha
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

BLOCK_ELEMENTS = 2**17


def conformal_threshold(scores: FloatArray, alpha: Decimal) -> float:
    """Return the rank-th smallest score, rank = ceil((n + 1)(1 - alpha)) in exact arithmetic.

    Args:
        scores: (n,) float64, of the labels of the calibration points.

    Returns:
        The threshold; inf if rank > n.

    Examples:
        >>> conformal_threshold(np.arange(1.0, 20.0), Decimal("0.1"))
        18.0
    """
    check_alpha(alpha)
    rank = int(conformal_rank(np.array([len(scores)]), alpha)[0])
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf


def sets_within(logits: FloatArray, threshold: FloatArray | float) -> tuple[IntArray, BoolArray]:
    """Return the predictions argmax pi and the sets { c : 1 - pi^c <= threshold }, each with its prediction.

    The computation goes in blocks of rows.

    Args:
        logits: (n, C) float64, finite; may be a memory map.
        threshold: One number, or (n,) float64; may be inf.

    Returns:
        The predictions, (n,) int64, with ties to the lower class, and the sets, (n, C) bool.
    """
    if logits.ndim != 2:
        raise InvalidInputError(f"expected logits (n, C), got shape {logits.shape}; pass one row per point")
    bound = np.broadcast_to(np.asarray(threshold, dtype=np.float64), len(logits))
    predicted = np.empty(len(logits), dtype=np.int64)
    included = np.empty(logits.shape, dtype=np.bool_)
    step = max(1, BLOCK_ELEMENTS // max(1, logits.shape[1]))
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        block = logits[rows]
        included[rows] = 1.0 - softmax(block) <= bound[rows, np.newaxis]  # (rows, C)
        predicted[rows] = block.argmax(axis=1)
    included[np.arange(len(logits)), predicted] = True
    return predicted, included
