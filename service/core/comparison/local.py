"""Localized conformal prediction: a threshold for each point, from calibration points weighted by nearness.

Source: Guan (2022), *Localized Conformal Prediction: A Generalized Inference Framework for Conformal Prediction*;
docs/PROCEDURE.md, section 7. The weights are the localizer's (service.core.approximation.localizer).
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from service.core.approximation.localizer import QUERY_TILE, pairwise_distances
from service.core.checks import check_lengths
from service.core.types import Float32Array, FloatArray, IntArray
from service.errors import InvalidInputError, NotReadyError

BLOCK_BYTES = 128 * 2**20


def local_thresholds(
    queries: Float32Array,
    support: Float32Array,
    score: FloatArray,
    *,
    alpha: Decimal,
    eta_loc: float,
    infinite_mass: bool = False,
) -> FloatArray:
    """The smallest calibration score at which the localizer's weights reach 1 - alpha, for each of m queries.

    queries: (m, D) float32. support: (n, D) float32, n >= 1, the calibration points. Either may be a memory
    map. score: (n,) float64, of the calibration points' labels. alpha: exact decimal in (0, 1). eta_loc: > 0,
    finite, in the units of the vectors. Returns (m,) float64.

        tau(x) = min { s : sum_j psi_j(x) [s_j <= s] >= 1 - alpha },    psi_j = e_j / sum_k e_k,
        e_j = exp(-dist(x, x_j) / eta_loc)

    Guan's form (infinite_mass) gives x itself a part, at an infinite score, for its own label is not known:

        psi_j = e_j / (1 + sum_k e_k);    tau = inf where sum_j psi_j < 1 - alpha

    Its 1 is exp(0), the weight of a distance of 0. Where weights fall off exponentially, and distances to the
    nearest points are several times eta_loc, it swamps all others: the set is then all classes. On the
    `sentiment_small` data that leaves no singleton, which is why it is not the default. The default form
    promises no coverage in finite samples.

    Independent, bit for bit, of the other queries. Works in blocks of queries, of about 128 MiB or, if that
    is more, 512 bytes a calibration point. Raises InvalidInputError for other shapes or ranges, NotReadyError
    where n is 0.
    """
    _check(support, score, alpha, eta_loc)
    order = np.argsort(score, kind="stable")
    ordered = np.append(score[order], np.inf)  # (n + 1,)
    confidence = float(1 - Fraction(alpha))
    thresholds = np.empty(len(queries))
    step = max(1, BLOCK_BYTES // (8 * len(support) * QUERY_TILE)) * QUERY_TILE
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        places = _places(queries[rows], support, order, confidence, eta_loc, infinite_mass)
        thresholds[rows] = ordered[places]
    return thresholds


def _places(
    queries: Float32Array,
    support: Float32Array,
    order: IntArray,
    confidence: float,
    eta_loc: float,
    infinite_mass: bool,
) -> IntArray:
    """For each of some queries (b,): the first place in `order` (n,) where the weights suffice, or n."""
    weights = pairwise_distances(queries, support)  # (b, n)
    nearest = weights.min(axis=1)
    # Less the nearest distance, so that no eta_loc is too small; a far point may weigh 0.
    np.subtract(nearest[:, np.newaxis], weights, out=weights)
    with np.errstate(over="ignore"):
        weights /= eta_loc
        own_weight = np.exp(nearest / eta_loc) if infinite_mass else np.zeros(len(nearest))
    np.exp(weights, out=weights)
    places = np.empty(len(queries), dtype=np.int64)
    for row, own in enumerate(own_weight.tolist()):
        reached = np.cumsum(weights[row, order])
        # Equal scores stand together, so it does not matter at which of them the sum passes.
        places[row] = np.searchsorted(reached, confidence * (reached[-1] + own))
    return places


def _check(support: Float32Array, score: FloatArray, alpha: Decimal, eta_loc: float) -> None:
    check_lengths(support=support, score=score)
    if not len(score):
        raise NotReadyError("expected labelled points to take thresholds from, got none; ingest held-out data")
    if not 0 < alpha < 1:
        raise InvalidInputError(f"expected alpha in (0, 1), got {alpha}; 0.1 is usual")
    if not 0 < eta_loc < np.inf:
        raise InvalidInputError(f"expected eta_loc > 0 and finite, got {eta_loc}; fit the localizer")
