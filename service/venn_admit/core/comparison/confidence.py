"""The network's confidence: temperature scaling, and the threshold on a confidence that guarantees a risk (SGR).

Temperature scaling finds the T that makes the labels most likely under softmax(f / T): Guo, Pleiss, Sun & Weinberger
(2017), *On Calibration of Modern Neural Networks*. The temperature is fitted to its optimum rather than by a fixed
number of gradient steps. Selective classification with guaranteed risk finds one threshold, with a bound on the error:
Geifman & El-Yaniv (2017), *Selective classification for deep neural networks*, Algorithm 1.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil, inf, log2

import numpy as np

from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.checks import check_labels, check_lengths
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError, NotReadyError

SEARCH_RANGE = 1e6
BLOCK_ELEMENTS = 2**16
_MOST_STEPS = 200
_TOLERANCE = 1e-7  # of the last step; the remaining error is of the order of its square
_HALVINGS = 60


def fit_temperature(logits: Float32Array, label: IntArray) -> float:
    """Return the temperature T > 0 of least negative log-likelihood of the labels under softmax(f / T).

    The negative log-likelihood is convex in b = 1 / T, and its minimum is found by Newton's method on its slope, kept
    inside a bracket. Let s be the greatest difference between two logits of one point: T is sought from s / 10^6 to s *
    10^6. The lower end is returned if every label has the highest logit, so that no T is too small; the upper end if
    the logits tell no more of the labels than chance, or mislead, so that none is too large; and 1 if s is 0, so that T
    changes nothing. Sums are rounded once, so that the order of the points does not show. The computation goes in
    blocks of rows and takes three numbers per point besides.

    Raises:
        NotReadyError: There are no points.

    Examples:
        >>> logits = np.array([[2.0, 0.0]] * 4, dtype=np.float32)
        >>> round(2 / fit_temperature(logits, np.array([0, 0, 0, 1])), 6) == round(math.log(3), 6)
        True
    """
    _check(logits, label)
    spread, label_logit, mean_logit = _extent(logits, label)
    if spread == 0:
        return 1.0
    if not label_logit.any():
        return spread / SEARCH_RANGE
    if math.fsum((mean_logit - label_logit).tolist()) >= 0:
        return spread * SEARCH_RANGE
    return 1.0 / _minimise(logits, label_logit, low=1 / (spread * SEARCH_RANGE), high=SEARCH_RANGE / spread)


def scaled_confidence(logits: Float32Array, temperature: float) -> FloatArray:
    """Return softmax(f / T) of the network's prediction, (n,) float64 in [1 / C, 1]."""
    if not temperature > 0:
        raise InvalidInputError(f"expected a temperature above 0, got {temperature}; fit it on labelled points")
    relative = logits.astype(np.float64)
    # Less their maximum first, so that no quotient overflows.
    relative -= relative.max(axis=1, keepdims=True)
    confidence: FloatArray = softmax(relative / temperature).max(axis=1)
    return confidence


def _minimise(logits: Float32Array, label_logit: FloatArray, low: float, high: float) -> float:
    """The b in [low, high] at which the slope of the negative log-likelihood is 0, or the nearest end."""
    inverse = min(max(1.0, low), high)
    for _ in range(_MOST_STEPS):
        slope, curvature = _derivatives(logits, label_logit, inverse)
        low, high = (low, inverse) if slope > 0 else (inverse, high)
        following = inverse - slope / curvature if curvature > 0 else math.inf
        if not low <= following <= high:
            following = math.sqrt(low) * math.sqrt(high)
        if abs(following - inverse) <= _TOLERANCE * inverse:
            return following
        inverse = following
    return inverse


def _derivatives(logits: Float32Array, label_logit: FloatArray, inverse: float) -> tuple[float, float]:
    """First and second derivative by b of sum_i logsumexp(b z_i) - b z_i^y, where z is f less its maximum."""
    slope, curvature = np.empty(len(logits)), np.empty(len(logits))
    for rows in _blocks(logits):
        relative = _relative(logits[rows])  # (C, rows)
        weight = np.multiply(inverse, relative)
        np.exp(weight, out=weight)
        total = weight.sum(axis=0)
        weight *= relative
        mean = weight.sum(axis=0) / total
        weight *= relative
        slope[rows] = mean - label_logit[rows]
        curvature[rows] = weight.sum(axis=0) / total - mean**2
    return math.fsum(slope.tolist()), math.fsum(curvature.tolist())


def _extent(logits: Float32Array, label: IntArray) -> tuple[float, FloatArray, FloatArray]:
    """The greatest spread of one point's logits; the label's logit and the mean logit, less the highest, (n,) each."""
    spread = 0.0
    label_logit, mean_logit = np.empty(len(logits)), np.empty(len(logits))
    for rows in _blocks(logits):
        relative = _relative(logits[rows])  # (C, rows)
        lowest = float(relative.min())
        if not math.isfinite(lowest):
            raise InvalidInputError("expected finite logits, got NaN or infinity; remove or repair the row")
        spread = max(spread, -lowest)
        known = label[rows]
        label_logit[rows] = relative[known, np.arange(len(known))]
        mean_logit[rows] = relative.mean(axis=0)
    return spread, label_logit, mean_logit


def _relative(logits: Float32Array) -> FloatArray:
    """Logits less the highest of each point, (C, rows): sums over classes then run along contiguous rows."""
    relative = logits.T.astype(np.float64, order="C")
    with np.errstate(invalid="ignore"):  # infinity less infinity, which `_extent` refuses
        relative -= relative.max(axis=0)
    return relative


def _blocks(logits: Float32Array) -> Iterator[slice]:
    # Blocks are of similar size, so that none is a single row unless it is all: numpy sums that in another order.
    most = max(4, BLOCK_ELEMENTS // logits.shape[1])
    bounds = np.linspace(0, len(logits), math.ceil(len(logits) / most) + 1).astype(np.int64).tolist()
    for start, stop in pairwise(bounds):
        yield slice(start, stop)


def _check(logits: Float32Array, label: IntArray) -> None:
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InvalidInputError(
            f"expected logits (n, C) of at least 2 classes, got shape {logits.shape}; pass one row per point"
        )
    check_labels(label, logits)
    if not len(label):
        raise NotReadyError("expected labelled points to fit the temperature on, got none; ingest held-out data")


@dataclass(frozen=True, slots=True)
class GuaranteedRisk:
    """The threshold that was found, and what it rests on.

    Attributes:
        threshold: The least confidence that is admitted; inf if no threshold passed, so that nothing is admitted.
        admitted: How many calibration points reach the threshold.
        wrong: How many of them are wrong.
        bound: The upper bound of the share wrong among what is admitted; 1 if nothing is.
    """

    threshold: float
    admitted: int
    wrong: int
    bound: float


def guaranteed_risk(
    confidence: FloatArray, right: BoolArray, *, alpha: Decimal, level: Decimal = DEFAULT_CONFIDENCE
) -> GuaranteedRisk:
    """Return the lowest threshold found under which at most alpha of all admitted predictions are wrong.

    A binary search over the m sorted confidences tries k = ceil(log2 m) thresholds. A threshold passes if the exact
    binomial upper bound of the share wrong, at confidence 1 - (1 - level) / k, is at most alpha. The search goes on
    with a lower threshold after one that passes, and with a higher one after one that does not. The points must be
    independent of each other and of whatever the confidence was fitted on, and the share wrong must not fall as the
    threshold does: then one path of tests alone leads to a threshold that falls short, which no label decides, and one
    of its k tests is wrong with probability 1 - level at most. The promise is about all admitted points together, and
    about no class. Unlike the paper's, this search returns the last threshold that passed, not the last that it tried.
    Neither the order of the points nor an order among equal confidences matters.

    Args:
        confidence: (m,) float64, finite.
        alpha: The largest share wrong, exact decimal in (0, 1).
        level: The confidence over the calibration data, exact decimal in (0, 1).

    Examples:
        >>> found = guaranteed_risk(np.arange(100) / 100, np.arange(100) >= 20, alpha=Decimal("0.1"))
        >>> found.threshold, found.admitted, found.wrong
        (0.19, 81, 1)
    """
    check_lengths(confidence=confidence, right=right)
    for name, value in (("alpha", alpha), ("the confidence of the guarantee", level)):
        if not (value.is_finite() and 0 < value < 1):
            raise InvalidInputError(f"{name} must lie in (0, 1), got {value}; pass a share such as 0.1 or 0.95")
    if not np.isfinite(confidence).all():
        raise InvalidInputError("expected finite confidences, got NaN or infinity; remove or repair the points")
    ascending = np.sort(confidence)
    wrong_confidence = np.sort(confidence[~right])
    count = len(ascending)
    tests = max(1, ceil(log2(count))) if count else 0
    share = float(1 - level) / max(tests, 1)
    best = GuaranteedRisk(inf, 0, 0, 1.0)
    low, high = 1, count
    for _ in range(tests):
        middle = -(-(low + high) // 2)
        threshold = float(ascending[middle - 1])
        admitted = count - int(np.searchsorted(ascending, threshold))
        wrong = len(wrong_confidence) - int(np.searchsorted(wrong_confidence, threshold))
        if binomial_tail(wrong, admitted, float(alpha)) <= share:
            high, best = middle, GuaranteedRisk(threshold, admitted, wrong, 1.0)
        else:
            low = middle
    if not best.admitted:
        return best
    return GuaranteedRisk(
        best.threshold, best.admitted, best.wrong, binomial_upper_bound(best.wrong, best.admitted, share)
    )


def binomial_upper_bound(wrong: int, count: int, level: float) -> float:
    """Return the share b at which at most `wrong` of `count` points are wrong with probability `level`.

    It is the exact (Clopper-Pearson) upper bound of the share wrong at confidence 1 - level.

    Args:
        wrong: In [0, count].
        count: >= 0; with none, nothing is known, and the bound is 1.
        level: In (0, 1).

    Examples:
        >>> round(binomial_upper_bound(0, 29, 0.05), 4)
        0.0981
    """
    if wrong >= count:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if binomial_tail(wrong, count, middle) > level else (low, middle)
    return high
