"""What a number of documents can show, by the normal approximation, on which no test rests."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from venn_admit.core.types import FloatArray

POWER = 0.8
"""The chance to pass that the number of documents needed is computed for."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the documents of the evidence can show.

    A class whose errors fall short of alpha of the admitted by g points a document, with a standard deviation s, passes
    by about g sqrt(n) / s standard errors. If a document counts for an excess of errors up to b, no valid test can have
    a p-value below about (1 - g / b)^n: that is the chance that n documents show none of the rare ones, all wrong,
    that would make up for g.

    Attributes:
        documents: n, the number of documents.
        points: The number of points in them.
        bounded: Whether the test allows for such documents.
    """

    documents: int
    points: int
    bounded: bool

    @property
    def single_points(self) -> bool:
        """Whether every document is one point, for which the test is the exact binomial one."""
        return self.documents == self.points

    def reserve(self, standard_errors: float, deviation: FloatArray, bound: FloatArray) -> FloatArray:
        """The gain g of a document from which a class is expected to pass by some standard errors.

        Args:
            standard_errors: >= 0; none asks for no gain.
            deviation: s, of any shape.
            bound: b, of that shape.
        """
        gain = standard_errors * deviation / math.sqrt(self.documents)
        if self.bounded and standard_errors:
            gain = np.maximum(gain, -math.log(_tail(standard_errors)) * bound / self.documents)
        return gain

    def expected(self, gain: FloatArray, deviation: FloatArray, bound: FloatArray) -> FloatArray:
        """Return how many standard errors above the threshold classes are expected to be.

        Args:
            gain: (h,) float64, g.
            deviation: (h,) float64, s; 0 for a class of which nothing is admitted, which is expected to pass by none.
            bound: (h,) float64 > 0, b.
        """
        errors = np.zeros(len(gain))
        np.divide(gain * math.sqrt(self.documents), deviation, out=errors, where=deviation > 0)
        if not self.bounded:
            return errors
        least_p = np.exp(-np.maximum(gain, 0) / bound * self.documents)
        limits = [-NormalDist().inv_cdf(min(max(p, 1e-300), 0.5)) for p in least_p.tolist()]
        return np.minimum(errors, limits)


def documents_needed(
    gain: float, deviation: float, boundary: float, bound: float, *, level: float, bounded: bool
) -> int | None:
    """The number of documents with which a class passes with the chance `POWER`; None if it fails at any number.

    Args:
        gain: g of a document, as in `Evidence`.
        deviation: s.
        boundary: The standard deviation that a test reckons with, that of a class which just falls short.
        bound: b.
        bounded: As in `Evidence`.

    Examples:
        >>> documents_needed(0.04, 0.237, 0.3, 0.9, level=0.05, bounded=True)
        301
    """
    if gain <= 0:
        return None
    quantile = NormalDist().inv_cdf
    needed = ((quantile(1 - level) * boundary + quantile(POWER) * deviation) / gain) ** 2
    if bounded:
        needed = max(needed, -math.log(level) * bound / gain)
    return math.ceil(needed)


def _tail(standard_errors: float) -> float:
    return 0.5 * math.erfc(standard_errors / math.sqrt(2))
