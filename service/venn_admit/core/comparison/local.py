"""Localized conformal prediction: a threshold for each point, from calibration points weighted by nearness.

Source: Guan (2022), *Localized Conformal Prediction: A Generalized Inference Framework for Conformal Prediction*;
docs/PROCEDURE.md, section 7. The weights are those of the localizer (venn_admit.core.approximation.localizer).
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.approximation.distance_tiles import QUERY_TILE, pairwise_distances
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError, NotReadyError


def local_thresholds(
    queries: Float32Array,
    support: Float32Array,
    score: FloatArray,
    *,
    alpha: Decimal,
    eta_loc: float,
    infinite_mass: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the smallest calibration score at which the localizer's weights reach 1 - alpha, for each query.

        tau(x) = min { s : sum_j psi_j(x) [s_j <= s] >= 1 - alpha },    psi_j = e_j / sum_k e_k,
        e_j = exp(-dist(x, x_j) / eta_loc)

    Guan's form (`infinite_mass`) gives x itself a share at an infinite score, because its own label is not known:

        psi_j = e_j / (1 + sum_k e_k);    tau = inf if sum_j psi_j < 1 - alpha

    The 1 is exp(0), the weight of a distance of 0. If weights fall off exponentially and distances to the nearest
    points are several times eta_loc, it swamps all others, and the set is then all classes. On the `sentiment_small`
    data that leaves no singleton, which is why it is not the default. The default form guarantees no coverage in finite
    samples.

    A result is independent, bit for bit, of the other queries. The computation goes in blocks of queries, of a
    share of the budget or, if that is more, 512 bytes per calibration point.

    Args:
        queries: (m, D) float32; may be a memory map.
        support: (n, D) float32, n >= 1, the calibration points; may be a memory map.
        score: (n,) float64, of the labels of the calibration points.
        alpha: Exact decimal in (0, 1).
        eta_loc: > 0, finite, in the units of the vectors.
        infinite_mass: Whether to use Guan's form.
        memory_budget: In bytes.

    Returns:
        (m,) float64.

    Raises:
        InvalidInputError: The arrays have other shapes or ranges.
        NotReadyError: There are no calibration points.
    """
    _check(support, score, alpha, eta_loc)
    order = np.argsort(score, kind="stable")
    ordered = np.append(score[order], np.inf)  # (n + 1,)
    confidence = float(1 - Fraction(alpha))
    thresholds = np.empty(len(queries))
    step = block_rows(memory_budget, 8 * len(support) * QUERY_TILE) * QUERY_TILE
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        places = _places(queries[rows], support, order, confidence, eta_loc, infinite_mass, memory_budget)
        thresholds[rows] = ordered[places]
    return thresholds


def _places(
    queries: Float32Array,
    support: Float32Array,
    order: IntArray,
    confidence: float,
    eta_loc: float,
    infinite_mass: bool,
    memory_budget: int,
) -> IntArray:
    """For each of some queries (b,): the first place in `order` (n,) at which the weights suffice, or n."""
    weights = pairwise_distances(queries, support, memory_budget=memory_budget)  # (b, n)
    nearest = weights.min(axis=1)
    # The nearest distance is subtracted, so that no eta_loc is too small; a far point may weigh 0.
    np.subtract(nearest[:, np.newaxis], weights, out=weights)
    with np.errstate(over="ignore"):
        weights /= eta_loc
        own_weight = np.exp(nearest / eta_loc) if infinite_mass else np.zeros(len(nearest))
    np.exp(weights, out=weights)
    places = np.empty(len(queries), dtype=np.int64)
    for row, own in enumerate(own_weight.tolist()):
        reached = np.cumsum(weights[row, order])
        # Equal scores are adjacent, so it does not matter at which of them the sum passes.
        places[row] = np.searchsorted(reached, confidence * (reached[-1] + own))
    return places


def _check(support: Float32Array, score: FloatArray, alpha: Decimal, eta_loc: float) -> None:
    check_lengths(support=support, score=score)
    if not len(score):
        raise NotReadyError("expected labelled points to take thresholds from, got none; ingest held-out data")
    if not 0 < alpha < 1:
        raise InvalidInputError(f"expected alpha in (0, 1), got {alpha}; 0.1 is usual")
    if not 0 < eta_loc < np.inf:
        raise InvalidInputError(f"expected eta_loc > 0 and finite, got {eta_loc}; fit the localizer again")
