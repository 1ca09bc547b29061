"""Whether the KNN still predicts what the network does: discrepancies at the fit against those since.

Source: Rao, J. N. K., & Scott, A. J. (1992), A simple method for the analysis of clustered binary data, Biometrics 48
(the design effect of documents).
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from venn_admit.core.types import IntArray

LEVEL = 0.01
"""The p-value below which discrepancies count as grown."""


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

    Args:
        before: Discrepancies at the fit.
        after: Discrepancies since.

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
    """Return whether discrepancies have grown by more than chance, at `LEVEL`.

    Args:
        before: Discrepancies at the fit.
        after: Discrepancies since.
    """
    return growth_p_value(before, after) < LEVEL
