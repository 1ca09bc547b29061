"""Lower probabilities of points of `mc` by cross-fitting, without a look at `vp` (docs/PROCEDURE.md, section 10).

Each fold is scored by the others, which serve as `mc` and as `vp`. As `mc` they give the thresholds of the ADMIT sets
of the scored points. As `vp` they give the categories: the set of each of their points is made from the folds that hold
neither that point nor the scored ones. So no label bears on the decision on its own document, and no label of a
category bears on its own set.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations

import numpy as np

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex, smallest_class_count
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, venn_probabilities
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import BoolArray, CalibrationPoints, Float32Array, FloatArray, IntArray
from venn_admit.errors import NotReadyError

LEAST_FOLDS = 3
"""One is scored, one has its sets made, and one makes them."""

_ROW_BYTES = 4 * 8  # of an ADMIT set with its evidence, for each point and class


@dataclass(frozen=True, slots=True, eq=False)
class PointsLocalizer:
    """The localizer over some points, which weighs categories of these points for any of them.

    Attributes:
        vectors: Returns the vectors of some of the points, (m, D) float32, by their rows (m,) int64, in the order in
            which they are given; may return a memory map.
    """

    vectors: Callable[[IntArray], Float32Array]
    eta_loc: float


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """What every kappa makes sets of m points from: each is a singleton if its band holds kappa points of every class.

    Attributes:
        singleton: (m,) bool, whether the set is one, kappa aside.
        smallest: (m,) int64, min_c n_c.
    """

    singleton: BoolArray
    smallest: IntArray


def alike(settings: Sequence[CalibratorSettings]) -> list[list[int]]:
    """The numbers of the settings whose sets are the same, kappa aside, in groups."""
    found: dict[tuple[Decimal, float, tuple[int, ...], bool], list[int]] = defaultdict(list)
    for number, one in enumerate(settings):
        found[one.alpha, one.delta, one.q_bins, one.undivided].append(number)
    return list(found.values())


def crossfitted_lower(
    points: CalibrationPoints,
    logits: FloatArray,
    fold: IntArray,
    settings: CalibratorSettings,
    kappas: Sequence[int],
    *,
    class_count: int,
    localizer: PointsLocalizer | None,
    judged: IntArray | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the lower probability of points of `mc` from the points of the other folds, for some kappas.

    A kappa is a number of points out of all of `mc`. In those folds that stand in for `mc`, bands must hold the same
    part of it, rounded up: otherwise a setting would seem to starve because folds are smaller than `mc`.

    Args:
        points: n points of `mc`.
        logits: (n, C) float64, finite, KNN(x).
        fold: (n,) int64, the fold of each point; points of one document share a fold.
        settings: For alpha, delta and the bins of q; their kappa and thresholds are ignored.
        kappas: k numbers of points, each at least 1.
        judged: (m,) int64, the rows of the points to return; None for all of them.

    Returns:
        (k, m) float64 in [0, 1]; NaN for a point whose set is not a singleton.

    Raises:
        NotReadyError: There are too few folds with points, or too few points in some of them for the band radius.
    """
    check_lengths(points=points.label, logits=logits, fold=fold)
    numbers = np.unique(fold).tolist()
    if len(numbers) < LEAST_FOLDS:
        raise NotReadyError(
            f"cross-fitting needs documents of mc in at least {LEAST_FOLDS} folds, got them in {len(numbers)}; "
            "ingest more held-out data"
        )
    work = AdmitParts(points, logits, settings, class_count, localizer, memory_budget)
    rows_judged = np.arange(len(fold)) if judged is None else judged
    is_judged = np.zeros(len(fold), dtype=np.bool_)
    is_judged[rows_judged] = True
    sets = {}
    for pair in combinations(numbers, 2):
        reference = np.flatnonzero(~np.isin(fold, pair))
        index, _ = work.index(reference)
        for playing in pair:
            sets[playing, pair] = work.sets(index, np.flatnonzero(fold == playing)), len(reference)
    lower = np.empty((len(kappas), len(fold)))
    for scored in numbers:
        rows, others = np.flatnonzero((fold == scored) & is_judged), np.flatnonzero(fold != scored)
        index, omega = work.index(others)
        own = work.sets(index, rows)
        playing = [number for number in numbers if number != scored]
        role = [(fold[others] == number, *sets[number, tuple(sorted((number, scored)))]) for number in playing]
        singleton = np.empty((len(kappas), len(others)), dtype=np.bool_)
        for members, of_members, reference_size in role:
            singleton[:, members] = work.singletons(of_members, kappas, reference_size)
        lower[:, rows] = work.lower(rows, work.singletons(own, kappas, len(others)), others, singleton, omega)
    return lower[:, rows_judged]


@dataclass(frozen=True, slots=True, eq=False)
class AdmitParts:
    """What parts of one `mc` say of each other: some serve as `mc`, and others as `vp`.

    Attributes:
        points: n points of `mc`.
        logits: (n, C) float64, finite, KNN(x).
        settings: For alpha, delta and the bins of q; their kappa and thresholds are ignored.
        localizer: Over the points, for weighted probabilities; None for plain ones.
    """

    points: CalibrationPoints
    logits: FloatArray
    settings: CalibratorSettings
    class_count: int
    localizer: PointsLocalizer | None
    memory_budget: int

    def index(self, rows: IntArray) -> tuple[AdmitIndex, float]:
        """Return the index of the ADMIT sets that some points make as `mc`, and the radius of their bands.

        Raises:
            NotReadyError: The points are too few for the radius, or it is 0.
        """
        reference = self.points.take(rows)
        omega = band_radius(reference, self.settings.delta).omega
        if omega == 0:
            raise NotReadyError(
                "the band radius is 0, because all points of mc that have q > 0 and are predicted correctly lie at the "
                "same distance to training; check whether the vectors are the right ones"
            )
        settings = replace(self.settings, kappa=1)
        return AdmitIndex(reference, class_count=self.class_count, settings=settings, omega=omega), omega

    def sets(self, index: AdmitIndex, rows: IntArray) -> _Sets:
        """The sets of m points, in blocks.

        Args:
            index: That which `index` made of other points.
        """
        singleton, smallest = np.empty(len(rows), dtype=np.bool_), np.empty(len(rows), dtype=np.int64)
        step = block_rows(self.memory_budget, _ROW_BYTES * self.class_count)
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            found = index.sets(
                self.logits[block],
                self.points.predicted[block],
                self.points.match_count[block],
                self.points.distance[block],
                memory_budget=self.memory_budget,
            )
            singleton[start : start + step] = found.singleton
            smallest[start : start + step] = smallest_class_count(found.band_size)
        return _Sets(singleton, smallest)

    def singletons(self, sets: _Sets, kappas: Sequence[int], reference_size: int) -> BoolArray:
        """Which of m sets are singletons under kappas out of all of `mc`, made from `reference_size` points of it.

        Args:
            sets: Those of `sets`.
            kappas: Numbers of points, each at least 1.
            reference_size: The number of points that they were made from.

        Returns:
            (kappas, m) bool.
        """
        parts = np.array([-(-kappa * reference_size // len(self.points.label)) for kappa in kappas])
        return sets.singleton & (sets.smallest >= parts[:, np.newaxis])

    def lower(
        self, rows: IntArray, singleton: BoolArray, others: IntArray, singleton_of_others: BoolArray, omega: float
    ) -> FloatArray:
        """The lower probabilities of m points from the categories that n other points make as `vp`, for some kappas.

        The distances that weigh categories are those of all kappas, so they are computed once.

        Args:
            singleton: (kappas, m) bool, as `singletons` returns it.
            others: (n,) int64, the rows of these.
            singleton_of_others: (kappas, n) bool, the same of these.

        Returns:
            (kappas, m) float64; NaN for a point whose set is not a singleton.
        """
        playing = self.points.take(others)
        # Sorted as if every set were a singleton; those that are not count in no category.
        index = VennIndex(
            playing,
            np.ones(len(others), dtype=np.bool_),
            class_count=self.class_count,
            settings=self.settings,
            omega=omega,
        )
        band = index.categories(
            np.logical_or.reduce(singleton),
            self.points.predicted[rows],
            self.points.match_count[rows],
            self.points.distance[rows],
        )
        members = singleton_of_others[:, index.order]
        is_right = (playing.label == playing.predicted)[index.order]
        size, correct = (_counts(counted, band.low, band.high) for counted in (members, members & is_right))
        weight = None
        if self.localizer is not None:
            weight, weighed = np.zeros(singleton.shape), np.flatnonzero((singleton & (size > 0)).any(axis=0))
            if weighed.size:
                support = LocalizerSupport(
                    self.localizer.vectors(others[index.order]),
                    self.localizer.eta_loc,
                    memory_budget=self.memory_budget,
                )
                weight[:, weighed] = support.weights_of_members(
                    self.localizer.vectors(rows[weighed]), band.low[weighed], band.high[weighed], members
                )
        every = singleton.ravel(), size.ravel(), correct.ravel(), None if weight is None else weight.ravel()
        return venn_probabilities(*every).lower.reshape(singleton.shape)


def _counts(counted: BoolArray, low: IntArray, high: IntArray) -> IntArray:
    """How many of (k, n) points count in each of m windows, (k, m)."""
    before = np.zeros((len(counted), counted.shape[1] + 1), dtype=np.int64)
    np.cumsum(counted, axis=1, out=before[:, 1:])
    return before[:, high] - before[:, low]
