"""Split conformal prediction on the score 1 - pi, with one threshold for all points or a local one for each.

Sources: Vovk, Gammerman & Shafer (2005), *Algorithmic Learning in a Random World*; Guan (2022), *Localized Conformal
Prediction: A Generalized Inference Framework for Conformal Prediction*, whose weights are those of the localizer
(venn_admit.core.approximation.localizer); docs/PROCEDURE.md, section 7.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.approximation.distance_tiles import QUERY_TILE, check_eta, pairwise_distances
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.calibrators.order_statistics import conformal_rank
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError, NotReadyError

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
    _check_alpha(alpha)
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


def local_thresholds(
    queries: Float32Array,
    support: Float32Array,
    score: FloatArray,
    *,
    alpha: Decimal,
    eta_loc: float,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the smallest calibration score at which the localizer's weights reach 1 - alpha, for each query.

        tau(x) = min { s : sum_j psi_j(x) [s_j <= s] >= 1 - alpha },    psi_j = e_j / sum_k e_k,
        e_j = exp(-dist(x, x_j) / eta_loc)

    Guan gives x itself a share at an infinite score, because its own label is not known: 1 = exp(0) is added to the
    sum over k. If the nearest points are several times eta_loc away, it swamps all others, and the set is all classes;
    on the `sentiment_small` data that leaves no singleton. This form guarantees no coverage in finite samples.

    A result is independent, bit for bit, of the other queries. The computation goes in blocks of queries, of a
    share of the budget or, if that is more, 512 bytes per calibration point.

    Args:
        queries: (m, D) float32; may be a memory map.
        support: (n, D) float32, n >= 1, the calibration points; may be a memory map.
        score: (n,) float64, of the labels of the calibration points.

    Returns:
        (m,) float64.

    Raises:
        NotReadyError: There are no calibration points.
    """
    check_lengths(support=support, score=score)
    if not len(score):
        raise NotReadyError("expected labelled points to take thresholds from, got none; ingest held-out data")
    _check_alpha(alpha)
    check_eta(eta_loc)
    order = np.argsort(score, kind="stable")
    ordered = np.append(score[order], np.inf)  # (n + 1,)
    confidence = float(1 - Fraction(alpha))
    thresholds = np.empty(len(queries))
    step = block_rows(memory_budget, 8 * len(support) * QUERY_TILE) * QUERY_TILE
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        weights = pairwise_distances(queries[rows], support, memory_budget=memory_budget)  # (b, n)
        # The nearest distance is subtracted, so that no eta_loc is too small; a far point may weigh 0.
        np.subtract(weights.min(axis=1, keepdims=True), weights, out=weights)
        with np.errstate(over="ignore"):
            weights /= eta_loc
        np.exp(weights, out=weights)
        for number, weight in enumerate(weights, start=start):
            reached = np.cumsum(weight[order])
            # Equal scores are adjacent, so it does not matter at which of them the sum passes.
            thresholds[number] = ordered[np.searchsorted(reached, confidence * reached[-1])]
    return thresholds


def _check_alpha(alpha: Decimal) -> None:
    if not 0 < alpha < 1:
        raise InvalidInputError(f"expected alpha in (0, 1), got {alpha}; 0.1 is usual")
