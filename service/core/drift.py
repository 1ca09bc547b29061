"""Whether what is decided on still looks like the calibration data: q and d side by side, and what became of it.

Sources: Stephens, M. A. (1970), Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics without
extensive tables, JRSS B 32 (significance of the statistic); Kish, L. (1965), *Survey Sampling* (effective size).
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from service.core.documents import Documents
from service.core.types import BoolArray, CalibrationPoints, FloatArray, IntArray, Reason
from service.errors import InvalidInputError

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

_TERMS = np.arange(1, 101)
_CERTAIN = 0.2
"""Below it the significance is 1 to twelve digits, and the series would need ever more terms."""


@dataclass(frozen=True, slots=True)
class KolmogorovSmirnov:
    """The two-sample test. statistic: largest difference of the distribution functions. Both are in [0, 1]."""

    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """A quantity, q or d, in the calibration data and in what was decided on.

    calibrated, decided: (5,) float64, values at `QUANTILES` (inverse of the distribution function).
    """

    calibrated: FloatArray
    decided: FloatArray
    test: KolmogorovSmirnov


@dataclass(frozen=True, slots=True, eq=False)
class DecidedPoints:
    """The decisions of a snapshot, a row for each exemplar and options, the rows of an exemplar together; n of them.

    exemplar_ids, match_count (q): (n,) int64. weighted, require_full_match: (n,) bool, the options. distance (d):
    (n,) float64. band_size: (n, C) int64. reason: (n,) int64, index into `tuple(Reason)`, -1 where admitted.
    seen_count: exemplars decided on that are left out, because the snapshot was made with them.
    """

    exemplar_ids: IntArray
    weighted: BoolArray
    require_full_match: BoolArray
    match_count: IntArray
    distance: FloatArray
    band_size: IntArray
    reason: IntArray
    seen_count: int

    @property
    def first_rows(self) -> IntArray:
        """One row of each exemplar: q, d and the band do not depend on the options."""
        return np.unique(self.exemplar_ids, return_index=True)[1].astype(np.int64)

    @property
    def starved_rows(self) -> IntArray:
        """One row of each exemplar whose band is below kappa, whatever the options."""
        first = self.first_rows
        starved: IntArray = first[self.reason[first] == list(Reason).index(Reason.BAND_BELOW_KAPPA)]
        return starved


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of `points` points under some options. rejected: by reason, in the order of `Reason`."""

    weighted: bool
    require_full_match: bool
    points: int
    admitted: int
    rejected: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """Of the exemplars decided on: q and d against vp, and the outcomes under each of the options that were used."""

    points: int
    match_count: Shift
    distance: Shift
    outcomes: tuple[Outcome, ...]


def drift(
    vp: CalibrationPoints,
    decided: DecidedPoints,
    vp_documents: Documents | None,
    decided_documents: Documents | None,
) -> Drift:
    """Compare what was decided on with the points of vp; neither empty.

    vp_documents, decided_documents: of the points of vp, and of the exemplars decided on in the order of
    `first_rows`; None where no two points share one. The tests count the points for `effective_size` of them.
    """
    first = decided.first_rows
    sizes = effective_size(len(vp.label), vp_documents), effective_size(len(first), decided_documents)
    return Drift(
        points=len(first),
        match_count=shift(vp.match_count.astype(np.float64), decided.match_count[first].astype(np.float64), *sizes),
        distance=shift(vp.distance, decided.distance[first], *sizes),
        outcomes=outcomes(decided),
    )


def outcomes(decided: DecidedPoints) -> tuple[Outcome, ...]:
    """Admitted and rejected points, under the options that occur; weighted and without a condition on q first."""
    found = []
    for weighted in (True, False):
        for full in (False, True):
            reasons = decided.reason[(decided.weighted == weighted) & (decided.require_full_match == full)]
            admitted, *rejected = np.bincount(reasons + 1, minlength=len(Reason) + 1).tolist()
            if len(reasons):
                found.append(Outcome(weighted, full, len(reasons), admitted, tuple(rejected)))
    return tuple(found)


def shift(
    calibrated: FloatArray,
    decided: FloatArray,
    calibrated_size: float,
    decided_size: float,
) -> Shift:
    """Compare a quantity of n calibration points with that of m points decided on; the order of neither matters.

    calibrated: (n,), decided: (m,), float64, finite, neither empty. The sizes: see `kolmogorov_smirnov`.
    """
    return Shift(
        calibrated=_quantiles(calibrated),
        decided=_quantiles(decided),
        test=kolmogorov_smirnov(calibrated, decided, calibrated_size, decided_size),
    )


def kolmogorov_smirnov(
    first: FloatArray, second: FloatArray, first_size: float, second_size: float
) -> KolmogorovSmirnov:
    """The two-sample Kolmogorov-Smirnov test, two-sided, by its asymptotic distribution (Stephens 1970).

    first: (n,), second: (m,), float64, neither empty. first_size, second_size: how many independent points they are
    worth, n and m where all are independent; see `effective_size`. Where values tie, as those of q do, the p-value is
    larger than an exact one would be. InvalidInputError for an empty sample.

    >>> kolmogorov_smirnov(np.arange(100.0), np.arange(50.0, 150.0), 100, 100).statistic
    0.5
    """
    if not (first.size and second.size):
        raise InvalidInputError(f"two samples were expected, got one of {first.size} and one of {second.size} points")
    values = np.concatenate([first, second])
    first_below = np.searchsorted(np.sort(first), values, side="right") / first.size
    second_below = np.searchsorted(np.sort(second), values, side="right") / second.size
    statistic = float(np.abs(first_below - second_below).max())
    root = sqrt(first_size * second_size / (first_size + second_size))
    return KolmogorovSmirnov(statistic, _significance((root + 0.12 + 0.11 / root) * statistic))


def effective_size(count: int, documents: Documents | None) -> float:
    """How many independent points `count` points are worth if those of a document all say the same (Kish 1965).

    (sum_i n_i)^2 / sum_i n_i^2 over documents of n_i points; `count` where no two points share one. Points of a
    document agree less than wholly, so a test that takes this for the size errs towards finding nothing.
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
