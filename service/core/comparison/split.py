"""Split conformal prediction on the score 1 - pi, with one threshold or a threshold a point.

Source: Vovk, Gammerman & Shafer (2005), *Algorithmic Learning in a Random World*; docs/PROCEDURE.md, section 7.
"""

from decimal import Decimal

import numpy as np

from service.core.approximation.knn import softmax
from service.core.conformal import conformal_rank
from service.core.types import BoolArray, FloatArray, IntArray
from service.errors import InvalidInputError

BLOCK_ELEMENTS = 2**17


def conformal_threshold(scores: FloatArray, alpha: Decimal) -> float:
    """The rank-th smallest score, rank = ceil((n + 1)(1 - alpha)) in exact arithmetic; inf where rank > n.

    scores: (n,) float64, of the calibration points' labels. alpha: exact decimal in (0, 1).

    >>> conformal_threshold(np.arange(1.0, 20.0), Decimal("0.1"))
    18.0
    """
    if not 0 < alpha < 1:
        raise InvalidInputError(f"expected alpha in (0, 1), got {alpha}; 0.1 is usual")
    rank = int(conformal_rank(np.array([len(scores)]), alpha)[0])
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf


def sets_within(logits: FloatArray, threshold: FloatArray | float) -> tuple[IntArray, BoolArray]:
    """The prediction argmax pi, and the set { c : 1 - pi^c <= threshold } with the prediction, of n points.

    logits: (n, C) float64, finite; may be a memory map. threshold: one, or (n,) float64; may be inf.
    Returns (n,) int64, ties to the lower class, and (n, C) bool. Works in blocks of rows. Raises InvalidInputError
    for other logits.
    """
    if logits.ndim != 2:
        raise InvalidInputError(f"expected logits (n, C), got shape {logits.shape}; pass one row a point")
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
