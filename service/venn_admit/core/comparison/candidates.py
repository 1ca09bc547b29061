"""Settings of each method of calibration to choose from, and what each admits of `mc` by cross-fitting.

Settings that share a pass over the folds are computed in one: thresholds and, for Venn-Abers, alpha judge the same
lower probabilities, and every kappa of Venn-ADMIT uses the same folds. Nothing here sees `vp`, so that what is chosen
by it is fixed before `vp` is looked at (docs/PROCEDURE.md, section 10).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np

from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, select_on_average
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import (
    CalibratorSettings,
    MethodSettings,
    ScoreKind,
    VennAbersSettings,
    make_settings,
    make_venn_abers_settings,
)
from venn_admit.core.calibrators.usable_bands import coarse_bins, kappas_to_choose_from
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.calibrators.venn_abers.crossfit import choose_score, fold_of
from venn_admit.core.calibrators.venn_abers.crossfit import crossfitted_lower as abers_lower
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel, scored_points
from venn_admit.core.calibrators.venn_admit.crossfit import PointsLocalizer, alike
from venn_admit.core.calibrators.venn_admit.crossfit import crossfitted_lower as admit_lower
from venn_admit.core.calibrators.venn_admit.undivided_crossfit import USUAL_GROWTH, undivided_folds
from venn_admit.core.comparison.held_out import HeldOutPoints
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import NotReadyError

WITHOUT_VECTORS = "the classifier has logits only, and this needs vectors"
NEEDING_VECTORS = ("Venn-ADMIT", "Venn-Abers, score reliability", "bins of q")
"""What is left out of a comparison without vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A setting, and what it admits of m points of `mc`.

    Attributes:
        predicted: (m,) int64, the predictions that its method decides on: the network's, or the KNN's.
        admitted: (m,) bool, whether they are admitted by the points of the other folds.
    """

    settings: MethodSettings
    predicted: IntArray
    admitted: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """The settings to choose from.

    Attributes:
        found: Settings by method, those of a method from fine to coarse bins and from large to small kappas.
        left_out: What could not be computed, each with the reason in words.
    """

    found: tuple[Candidate, ...]
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitting:
    """What settings are cross-fitted on: whole documents of `mc`, of which m points are judged.

    Attributes:
        neighbour_count: K; None if the classifier has logits only, of which all settings must be Venn-Abers with the
            network's score.
        reliability: The model of that score; None if there is none, which leaves out settings that ask for it.
        judged: (m,) int64, rows of `mc`.
        growth: As in `undivided_lower`.
    """

    mc: HeldOutPoints
    class_count: int
    neighbour_count: int | None
    seed: int
    reliability: ReliabilityModel | None
    localizer: PointsLocalizer | None
    judged: IntArray
    growth: Fraction = USUAL_GROWTH
    memory_budget: int = DEFAULT_MEMORY_BUDGET


def cross_fitted_candidates(given: CrossFitting, alpha: Decimal) -> CrossFitted:
    """Cross-fit the settings to choose from; one for each promise if the classifier has logits only."""
    class_count, neighbour_count = given.class_count, given.neighbour_count
    if neighbour_count is None:
        alone = [
            make_venn_abers_settings(class_count, None, alpha=alpha, promise=promise)
            for promise in (AskedPromise.POINTWISE, AskedPromise.AVERAGE)
        ]
        return CrossFitted(
            tuple(cross_fitted_settings(given, alone)), tuple((what, WITHOUT_VECTORS) for what in NEEDING_VECTORS)
        )
    every, coarse, one = tuple(range(neighbour_count + 1)), coarse_bins(neighbour_count), (0,)
    base = make_settings(class_count, neighbour_count, alpha=alpha)
    bands = [
        replace(base, q_bins=edges, kappa=kappa, undivided=undivided)
        for undivided in (False, True)
        for edges in dict.fromkeys((every, coarse, one))
        for kappa in kappas_to_choose_from(alpha)
    ]
    kinds = [kind for kind in ScoreKind if kind is not ScoreKind.RELIABILITY or given.reliability is not None]
    cells = [
        make_venn_abers_settings(class_count, neighbour_count, alpha=alpha, q_bins=edges, score=str(kind))
        for kind in kinds
        for edges in dict.fromkeys((coarse, one))
    ]
    average = AskedPromise.AVERAGE
    cells += [
        make_venn_abers_settings(class_count, neighbour_count, alpha=alpha, score=str(kind), promise=average)
        for kind in kinds
    ]
    found: list[Candidate] = []
    left_out = []
    try:
        found += cross_fitted_settings(given, bands)
    except NotReadyError as error:
        left_out.append(("Venn-ADMIT", str(error)))
    left_out += [
        (f"Venn-Abers, score {kind}", "the parameters have no model of it; fit again to get one")
        for kind in ScoreKind
        if kind not in kinds
    ]
    return CrossFitted((*found, *cross_fitted_settings(given, cells)), tuple(left_out))


def cross_fitted_settings(given: CrossFitting, settings: Sequence[MethodSettings]) -> list[Candidate]:
    """Cross-fit settings; Venn-Abers decides by plain probabilities.

    Args:
        settings: Those to try, of either method; a score that is left to `auto` is chosen for each of them.

    Returns:
        A candidate for each of the settings, in their order; its settings have the score that was chosen.

    Raises:
        NotReadyError: Venn-ADMIT cannot be cross-fitted on these points.
    """
    fold = fold_of(given.mc.keys, seed=given.seed)
    by_bands = iter(_by_bands(given, fold, [one for one in settings if isinstance(one, CalibratorSettings)]))
    cells = _Cells(given, fold)
    return [next(by_bands) if isinstance(one, CalibratorSettings) else cells.candidate(one) for one in settings]


def _by_bands(given: CrossFitting, fold: IntArray, settings: Sequence[CalibratorSettings]) -> list[Candidate]:
    """Venn-ADMIT under settings; those that differ in kappa and thresholds alone share the folds."""
    if not settings:
        return []
    mc, knn = given.mc, given.mc.seen.knn
    points, predicted = calibration_points(knn, mc.label), knn.predicted[given.judged]
    step = block_rows(given.memory_budget, 8 * len(fold))
    admitted: dict[int, BoolArray] = {}
    for numbers in alike(settings):
        kappas = sorted({settings[number].kappa for number in numbers})
        for start in range(0, len(kappas), step):
            block = kappas[start : start + step]
            cross_fit = partial(undivided_folds, growth=given.growth)
            if not settings[numbers[0]].undivided:
                cross_fit = partial(admit_lower, localizer=given.localizer)
            lower = cross_fit(
                points,
                knn.logits,
                fold,
                settings[numbers[0]],
                block,
                class_count=given.class_count,
                judged=given.judged,
                memory_budget=given.memory_budget,
            )
            for number in numbers:
                if settings[number].kappa in block:
                    # No comparison with NaN, the lower probability without a singleton, holds.
                    of_kappa = lower[block.index(settings[number].kappa)]
                    admitted[number] = reaches_threshold(of_kappa, predicted, settings[number].thresholds)
    return [Candidate(one, predicted, admitted[number]) for number, one in enumerate(settings)]


class _Cells:
    """Venn-Abers under settings; those that differ in alpha and thresholds alone share their probabilities."""

    def __init__(self, given: CrossFitting, fold: IntArray) -> None:
        self._given, self._mc, self._fold = given, given.mc, fold
        self._lower: dict[tuple[ScoreKind, tuple[int, ...]], tuple[IntArray, FloatArray]] = {}

    def candidate(self, settings: VennAbersSettings) -> Candidate:
        if settings.score is not None:
            return self._candidate(settings, *self._admitted(settings.score, settings))
        by_score = {kind: self._admitted(kind, settings) for kind in ScoreKind}
        (_, by_network), (_, by_reliability) = (by_score[kind] for kind in (ScoreKind.NETWORK, ScoreKind.RELIABILITY))
        kind = choose_score(by_network, by_reliability, self._mc.keys).kind
        return self._candidate(replace(settings, score=kind), *by_score[kind])

    def _candidate(self, settings: VennAbersSettings, predicted: IntArray, admitted: BoolArray) -> Candidate:
        return Candidate(settings, predicted[self._given.judged], admitted[self._given.judged])

    def _admitted(self, kind: ScoreKind, settings: VennAbersSettings) -> tuple[IntArray, BoolArray]:
        """The network's predictions, and which of them are admitted."""
        if settings.promise is AskedPromise.AVERAGE:
            return self._on_average(kind, settings)
        predicted, lower = self._of_score(kind, settings.q_bins)
        return predicted, reaches_threshold(lower, predicted, settings.thresholds)

    def _on_average(self, kind: ScoreKind, settings: VennAbersSettings) -> tuple[IntArray, BoolArray]:
        """The same by the average promise, each point by a policy of the other folds."""
        points, mc = self._scored(kind), self._mc
        admitted = np.zeros(len(mc.label), dtype=np.bool_)
        for number in np.unique(self._fold).tolist():
            rows = self._fold == number
            others = LabelledCells(points, mc.label, mc.keys).take(~rows)
            if others.keys:
                found = select_on_average(others, NO_TRAFFIC, class_count=self._given.class_count, alpha=settings.alpha)
                admitted[rows] = admit(points.score[rows], points.predicted[rows], found.policy)
        return points.predicted, admitted

    def _scored(self, kind: ScoreKind) -> CellPoints:
        return scored_points(
            kind,
            self._given.reliability,
            self._mc.seen.network_logits,
            self._mc.seen.view,
            neighbour_count=self._given.neighbour_count,
        )

    def _of_score(self, kind: ScoreKind, q_bins: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
        """The network's predictions, and their lower probabilities."""
        if (kind, q_bins) not in self._lower:
            points = self._scored(kind)
            right = points.predicted == self._mc.label
            lower = abers_lower(points, right, self._fold, class_count=self._given.class_count, q_bins=q_bins)
            self._lower[kind, q_bins] = points.predicted, lower
        return self._lower[kind, q_bins]
