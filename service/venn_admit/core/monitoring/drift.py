"""Whether recent traffic still resembles the calibration data: q and d side by side, and the decisions made.

Sources: Stephens, M. A. (1970), Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics without
extensive tables, JRSS B 32 (significance of the statistic); Kish, L. (1965), *Survey Sampling* (effective size).

Discrepancies between the KNN and the network at the fit are compared with those since. Source: Rao, J. N. K., & Scott,
A. J. (1992), A simple method for the analysis of clustered binary data, Biometrics 48 (the design effect of documents).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist

import numpy as np

from venn_admit.core.documents import Documents
from venn_admit.core.reasons import ADMITTED, Reason
from venn_admit.core.types import Approximation, BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

LEVEL = 0.01
"""The p-value below which discrepancies count as grown."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
SHIFTED = 0.1
"""A quantity counts as shifted if its distribution functions differ by at least this much, allowing for chance.

If the distribution functions of two samples differ by s, the samples differ by at least s in total variation, and a
guarantee of 1 - alpha for one may amount to only 1 - alpha - s for the other: at 0.1, twice the errors that alpha 0.1
allows.
"""
_TERMS = np.arange(1, 101)
_CERTAIN = 0.2
"""Below this value, the significance is 1 to twelve digits, and the series would need ever more terms."""
_CRITICAL = sqrt(-log(LEVEL / 2) / 2)
"""The scaled statistic whose significance is `LEVEL`, by the first term of the series."""


@dataclass(frozen=True, slots=True)
class Discrepancies:
    """Points on which the predictions of KNN and network differ.

    Attributes:
        design_effect: >= 1, the factor by which the variance of the share exceeds that of independent points.
    """

    differing: int
    points: int
    design_effect: float = 1.0

    @property
    def share(self) -> float:
        """The share of points that differ, in [0, 1]; NaN if there are no points."""
        return self.differing / self.points if self.points else float("nan")


def discrepancies_of_documents(points: IntArray, differing: IntArray, documents: IntArray) -> Discrepancies:
    """Sum up discrepancies by document; a point that stands alone is a document of one point.

    The design effect (Rao & Scott 1992) is the variance of the share among documents as units, m / (m - 1) sum_i (x_i -
    n_i p)^2 / n^2, over p (1 - p) / n. It is at least 1, and 1 if the variance is not known.

    Args:
        points: (g,) int64, the number of points of each document of a kind.
        differing: (g,) int64, how many of these points differ.
        documents: (g,) int64, the number of documents of that kind.
    """
    n, x, m = int(points @ documents), int(differing @ documents), int(documents.sum())
    if m < 2 or x in (0, n):
        return Discrepancies(x, n)
    p = x / n
    among = m / (m - 1) * float(documents @ (differing - points * p) ** 2) / n**2
    return Discrepancies(x, n, max(1.0, among / (p * (1 - p) / n)))


def growth_p_value(before: Discrepancies, after: Discrepancies) -> float:
    """Return the probability of so much growth by chance: one-sided two-proportion z-test with pooled variance.

    The test takes two samples because the share at the fit is an estimate as well; a binomial test would treat it as
    exact. Both counts are divided by their design effects (Rao & Scott 1992). The dev half chose the epoch, which makes
    its share a little low.

    Returns:
        In [0, 1]; 1 if a sample is empty, or if none or all points of both differ.

    Examples:
        >>> round(growth_p_value(Discrepancies(20, 500), Discrepancies(35, 500)), 4)
        0.0187
    """
    if not (before.points and after.points):
        return 1.0
    n, m = before.points / before.design_effect, after.points / after.design_effect
    pooled = (before.share * n + after.share * m) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m)
    if variance <= 0:
        return 1.0
    return NormalDist().cdf((before.share - after.share) / sqrt(variance))


def has_grown(before: Discrepancies, after: Discrepancies) -> bool:
    """Return whether discrepancies have grown by more than chance, at `LEVEL`."""
    return growth_p_value(before, after) < LEVEL


@dataclass(frozen=True, slots=True)
class KolmogorovSmirnov:
    """The result of the two-sample test.

    Attributes:
        statistic: In [0, 1], the largest difference between the distribution functions of the samples.
        least: In [0, 1]. With confidence 1 - `LEVEL`, the distribution functions that the samples were drawn from
            differ by at least this much.
    """

    statistic: float
    p_value: float
    least: float


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """A quantity, q or d, in the calibration data and in the points decided on.

    Attributes:
        calibrated: (5,) float64, values at `QUANTILES` (inverse of the distribution function).
        decided: (5,) float64, the same for the points decided on.
    """

    calibrated: FloatArray
    decided: FloatArray
    test: KolmogorovSmirnov

    @property
    def is_large(self) -> bool:
        """Whether the distributions differ by at least `SHIFTED`."""
        return self.test.least >= SHIFTED


@dataclass(frozen=True, slots=True, eq=False)
class DecidedPoints:
    """Recent traffic: the newest decision on each of n exemplars, whichever snapshot made it.

    Attributes:
        calibration_ids: (n,) int64, the snapshot that decided.
        approximation: The KNN's view: logits, prediction, q and d, as decided on.
        reason: (n,) int64, the code of a `Reason`, or `ADMITTED`.
        comparable: (n,) bool, whether q, d and logits rest on the same training data and KNN parameters as the
            snapshot's.
        is_random: (n,) bool, whether the label was chosen at random.
        seen_count: The number of exemplars left out because the snapshot that decided on them was made with them.
    """

    exemplar_ids: IntArray
    calibration_ids: IntArray
    weighted: BoolArray
    require_full_match: BoolArray
    predicted: IntArray
    approximation: Approximation
    reason: IntArray
    comparable: BoolArray
    label: IntArray
    is_random: BoolArray
    seen_count: int


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The outcome of `points` points under some options.

    Attributes:
        rejected: The number of points rejected for each reason, in the order of `Reason`.
    """

    weighted: bool
    require_full_match: bool
    points: int
    admitted: int
    rejected: Mapping[Reason, int]


def outcomes(decided: DecidedPoints, counted: BoolArray | None = None) -> tuple[OutcomeCounts, ...]:
    """Count admitted and rejected points under each combination of options that occurs.

    Weighted decisions come first, and among these the ones without a condition on q.

    Args:
        counted: (n,) bool, which points to count; None counts all.
    """
    every = np.ones(len(decided.reason), dtype=np.bool_) if counted is None else counted
    found = []
    for weighted in (True, False):
        for full in (False, True):
            options = (decided.weighted == weighted) & (decided.require_full_match == full)
            reasons = decided.reason[every & options]
            rejected = {reason: int((reasons == reason.code).sum()) for reason in Reason}
            if len(reasons):
                admitted = int((reasons == ADMITTED).sum())
                found.append(OutcomeCounts(weighted, full, len(reasons), admitted, rejected))
    return tuple(found)


def shift(calibrated: FloatArray, decided: FloatArray, calibrated_size: float, decided_size: float) -> Shift:
    """Compare a quantity of n calibration points with that of m points decided on; the order of neither matters."""
    return Shift(
        calibrated=_quantiles(calibrated),
        decided=_quantiles(decided),
        test=kolmogorov_smirnov(calibrated, decided, calibrated_size, decided_size),
    )


def kolmogorov_smirnov(
    first: FloatArray, second: FloatArray, first_size: float, second_size: float
) -> KolmogorovSmirnov:
    """Run the two-sample Kolmogorov-Smirnov test, two-sided, by its asymptotic distribution (Stephens 1970).

    If values tie, as those of q do, the p-value is larger than an exact one would be.

    Args:
        first: (n,) float64, not empty.
        second: (m,) float64, not empty.
        first_size: The number of independent points that the first sample is worth, n if all are independent; see
            `effective_size`.
        second_size: The same for the second sample.

    Examples:
        >>> kolmogorov_smirnov(np.arange(100.0), np.arange(50.0, 150.0), 100, 100).statistic
        0.5
    """
    if not (first.size and second.size):
        raise InvalidInputError(
            f"expected two samples that are not empty, got {first.size} and {second.size} points; decide on more points"
        )
    values = np.concatenate([first, second])
    first_below = np.searchsorted(np.sort(first), values, side="right") / first.size
    second_below = np.searchsorted(np.sort(second), values, side="right") / second.size
    statistic = float(np.abs(first_below - second_below).max())
    root = sqrt(first_size * second_size / (first_size + second_size))
    scale = root + 0.12 + 0.11 / root
    # This is the triangle inequality, because each sample differs from its own distribution by no more than chance
    # allows.
    return KolmogorovSmirnov(statistic, _significance(scale * statistic), max(0.0, statistic - _CRITICAL / scale))


def effective_size(count: int, documents: Documents | None) -> float:
    """Return how many independent points `count` points are worth if those of a document all say the same (Kish 1965).

    It is (sum_i n_i)^2 / sum_i n_i^2 over documents of n_i points. Points of a document agree less than completely, so
    that a test based on this size errs towards finding nothing.
    """
    if documents is None:
        return float(count)
    points = np.bincount(documents.code, minlength=documents.count)
    return count**2 / float(points @ points)


def _quantiles(values: FloatArray) -> FloatArray:
    return np.quantile(values, QUANTILES, method="inverted_cdf")


def _significance(scaled: float) -> float:
    """Kolmogorov's 2 sum_k (-1)^(k-1) exp(-2 k^2 scaled^2), within [0, 1]."""
    if scaled < _CERTAIN:
        return 1.0
    signs = np.where(_TERMS % 2, 1.0, -1.0)
    return float(np.clip(2 * (signs * np.exp(-2.0 * (_TERMS * scaled) ** 2)).sum(), 0.0, 1.0))
