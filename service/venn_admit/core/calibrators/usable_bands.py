"""The share of points whose bands hold kappa points of every class, under settings to choose from.

A band with fewer than kappa points of any class makes the ADMIT set all classes (docs/PROCEDURE.md, section 4), so that
a single rare class closes bands to the predictions of every class. Everything here is computed from `mc` alone: section
3 requires a taxonomy that is fixed before `vp` is looked at, and a setting chosen by these shares is fixed in that way.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

import numpy as np

from venn_admit.core.calibrators.bands import WindowIndex, bin_of
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.types import CalibrationPoints, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

NEARLY_NOTHING = 0.1
"""Below this share of usable points, a setting rejects at least nine points of ten and is stored only on request."""

ENOUGH = 0.5
"""A setting is proposed if this share of the points is usable, so that at least half of them may be admitted."""

KAPPAS = (1000, 300, 100, 50, 30)
"""Values of kappa to choose from: the paper's, usual ones for some ten thousand points, and some for few points."""

COARSE_BINS = (0, 1, 6, 16, 25)
"""Lower edges of the coarse bins of q for K = 25, which docs/PROCEDURE.md proposes; scaled for another K."""


@dataclass(frozen=True, slots=True, eq=False)
class UsableShares:
    """Shares of usable points under a setting that was asked for, and under alternatives.

    Attributes:
        asked: The setting that was asked for.
        asked_share: In [0, 1], the share of points whose band is usable under it.
        scarcest_class: The class that has the fewest points in most of the bands that are not usable; -1 if all are
            usable.
        scarcest_share: The share of those bands for which that is true.
        class_count: (C,) int64, points of each class in mc.
        kappas: (k,), descending.
        q_bins: b alternatives, from fine to coarse.
        shares: (k, b) float64.
    """

    asked: CalibratorSettings
    asked_share: float
    scarcest_class: int
    scarcest_share: float
    class_count: IntArray
    kappas: tuple[int, ...]
    q_bins: tuple[tuple[int, ...], ...]
    shares: FloatArray

    @property
    def nearly_nothing(self) -> bool:
        """Whether the setting that was asked for leaves less than `NEARLY_NOTHING` usable."""
        return self.asked_share < NEARLY_NOTHING

    def proposal(self) -> tuple[CalibratorSettings, float]:
        """Return the setting to try next, and its share of usable points.

        It has the largest kappa, and then the finest bins, that leave `ENOUGH` usable. A single bin, which ignores q,
        comes last. If no setting leaves that much, the proposal is the one that leaves the most.
        """
        cells = [
            (k, b) for of_one_bin in (False, True) for k in range(len(self.kappas)) for b in self._bins(of_one_bin)
        ]
        enough = [cell for cell in cells if self.shares[cell] >= ENOUGH]
        k, b = enough[0] if enough else max(cells, key=lambda cell: float(self.shares[cell]))
        return replace(self.asked, kappa=self.kappas[k], q_bins=self.q_bins[b]), float(self.shares[k, b])

    def _bins(self, of_one_bin: bool) -> list[int]:
        return [b for b, edges in enumerate(self.q_bins) if (len(edges) == 1) == of_one_bin]


def usable_shares(
    mc: CalibrationPoints,
    settings: CalibratorSettings,
    *,
    class_count: int,
    neighbour_count: int,
    omega: float,
    growth: Fraction = Fraction(1),
) -> UsableShares:
    """Count, for each point of mc, the other points of its band, under the setting asked for and under alternatives.

    A kappa at which no class could ever be left out of a set, because its rank exceeds kappa, is raised to the least
    kappa at which one could.

    Args:
        mc: The points, not empty.
        settings: The setting asked for.
        omega: Band radius, which depends on neither kappa nor bins.
        growth: How many times as many points bands will hold, if those of other splits are to join those of mc.

    Raises:
        InvalidInputError: There are no points.
    """
    if not len(mc.label):
        raise InvalidInputError(
            "shares of usable points need at least one point of mc, got none; ingest and label held-out data"
        )
    kappas = kappas_to_choose_from(settings.alpha)
    families = _bin_families(settings.q_bins, neighbour_count)
    smallest = [
        _grown(smallest_in_band(mc, mc, class_count, edges, omega, apart=True)[0], growth) for edges in families
    ]
    asked, scarcest = smallest_in_band(mc, mc, class_count, settings.q_bins, omega, apart=True)
    asked = _grown(asked, growth)
    per_class = np.bincount(scarcest[asked < settings.kappa], minlength=class_count)
    starved = int(per_class.sum())
    return UsableShares(
        asked=settings,
        asked_share=float((asked >= settings.kappa).mean()),
        scarcest_class=int(per_class.argmax()) if starved else -1,
        scarcest_share=float(per_class.max()) / starved if starved else float("nan"),
        class_count=np.bincount(mc.label, minlength=class_count),
        kappas=kappas,
        q_bins=families,
        shares=np.array([[(counts >= kappa).mean() for counts in smallest] for kappa in kappas]),
    )


def _grown(counts: IntArray, growth: Fraction) -> IntArray:
    return counts * growth.numerator // growth.denominator


def smallest_in_band(
    mc: CalibrationPoints,
    points: CalibrationPoints,
    class_count: int,
    q_bins: tuple[int, ...],
    omega: float,
    *,
    apart: bool = False,
) -> tuple[IntArray, IntArray]:
    """Return min_c n_c of the band of each of m points, and the class c that attains it (the lowest if several do).

    One class is counted at a time, so that the memory does not grow with the number of classes.

    Args:
        mc: The points that bands are made of.
        apart: Whether the points are those of mc, each of which is left out of its own band.

    Returns:
        Two arrays (m,) int64.
    """
    windows = WindowIndex(bin_of(mc.match_count, q_bins) * class_count + mc.label, mc.distance)
    first_group = bin_of(points.match_count, q_bins) * class_count
    smallest = np.full(len(points.label), len(mc.label) + 1, dtype=np.int64)
    scarcest = np.zeros(len(points.label), dtype=np.int64)
    for label in range(class_count):
        low, high = windows.windows(first_group + label, points.distance, omega)
        count = high - low - (points.label == label if apart else 0)
        scarcest[count < smallest] = label
        np.minimum(smallest, count, out=smallest)
    return smallest, scarcest


def kappas_to_choose_from(alpha: Decimal) -> tuple[int, ...]:
    """Return `KAPPAS`, each raised to the least number of points that its conformal rank does not exceed; descending.

    Examples:
        >>> kappas_to_choose_from(Decimal("0.01"))
        (1000, 300, 100, 99)
    """
    least = max(1, ceil(1 / Fraction(alpha)) - 1)
    return tuple(sorted({max(kappa, least) for kappa in KAPPAS}, reverse=True))


def coarse_bins(neighbour_count: int) -> tuple[int, ...]:
    """Return `COARSE_BINS` for K neighbours.

    Examples:
        >>> coarse_bins(25), coarse_bins(10), coarse_bins(1)
        ((0, 1, 6, 16, 25), (0, 1, 2, 6, 10), (0, 1))
    """
    scale = neighbour_count / COARSE_BINS[-1]
    return tuple(sorted({0, 1, *(max(1, round(edge * scale)) for edge in COARSE_BINS[2:])}))


def _bin_families(asked: tuple[int, ...], neighbour_count: int) -> tuple[tuple[int, ...], ...]:
    """Every q its own bin, coarse bins, the bins asked for, and one bin; each once, the finest first."""
    families = {tuple(range(neighbour_count + 1)), coarse_bins(neighbour_count), asked, (0,)}
    return tuple(sorted(families, key=lambda edges: (-len(edges), edges)))
