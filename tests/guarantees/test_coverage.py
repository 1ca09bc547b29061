"""Simulated: at least 1 - alpha of what Venn-ADMIT admits is right, over all and per predicted class.

The law is known and its points are independent, so calibration points and scored points are exchangeable.
Each draw calibrates afresh and scores fresh points; shares are pooled over the draws. Plain weights: those of
the localizer only lower the probabilities.

Under this law the share of right predictions varies with d, as it does in data. A law all of whose categories
lie just short of 1 - alpha would be no test: which of them are admitted is then a matter of luck.
"""

from dataclasses import dataclass
from decimal import Decimal
from math import ceil, sqrt

import numpy as np
import pytest

from venn_admit.core.approximation.knn import nonconformity, softmax
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, select, venn_probabilities
from venn_admit.core.types import AdmitSets, Approximation, BoolArray, CalibrationPoints, FloatArray, IntArray

CLASS_COUNT, NEIGHBOUR_COUNT = 3, 10
RARE_CLASS = 2
SETTINGS = make_settings(CLASS_COUNT, NEIGHBOUR_COUNT, alpha=Decimal("0.1"), kappa=20)
PROMISED_SHARE = 0.9
DRAWS, CALIBRATION_SIZE, SCORED_SIZE = 600, 1200, 400
SELECTIONS = ("venn_admit", "admit", "split_conformal")

# Bounds on a share lie this far from what was counted: 99.87 % one-sided.
STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Points:
    """Points of the law, as the KNN sees them and as a calibration does."""

    view: Approximation
    label: IntArray

    @property
    def calibration_points(self) -> CalibrationPoints:
        view, score = self.view, nonconformity(self.view.logits, self.label)
        return CalibrationPoints(self.label, view.predicted, view.match_count, view.distance, score)


@dataclass(frozen=True)
class Share:
    """The share of right predictions among the selected, and the part of all points that is selected.

    The standard error is that of a ratio of sums over draws: points of one draw share a calibration, draws
    share nothing.
    """

    right: float
    standard_error: float
    selected: float

    @property
    def least(self) -> float:
        return self.right - STANDARD_ERRORS * self.standard_error

    @property
    def most(self) -> float:
        return self.right + STANDARD_ERRORS * self.standard_error


def draw_points(rng: np.random.Generator, count: int) -> Points:
    """The law: a region with matches (q = K) where the network is good, one without (q = 0) where it is not.

    The share of right predictions falls with d and is lower for the rare class, which the network predicts
    more often where it is not good. Its confidence is the same everywhere and says nothing about being right.
    """
    matched = rng.random(count) < 0.7
    distance, uniform = rng.random(count), rng.random(count)
    predicted = np.where(matched, np.searchsorted([0.5, 0.9], uniform), np.searchsorted([0.4, 0.8], uniform))
    rare = predicted == RARE_CLASS
    share_if_matched = np.where(rare, 0.98 - 0.15 * distance, 0.995 - 0.1 * distance)
    share_if_unmatched = np.where(rare, 0.6, 0.8) - 0.3 * distance
    right = rng.random(count) < np.where(matched, share_if_matched, share_if_unmatched)
    label = np.where(right, predicted, mistaken_label(rng, predicted))

    logits = rng.normal(0.0, 0.5, (count, CLASS_COUNT))
    logits[np.arange(count), predicted] = logits.max(axis=1) + rng.uniform(1.0, 6.0, count)
    match_count = np.where(matched, NEIGHBOUR_COUNT, 0)
    return Points(Approximation(logits, predicted, match_count, distance), label)


def mistaken_label(rng: np.random.Generator, predicted: IntArray) -> IntArray:
    """A label other than predicted, seldom the rare class."""
    to_rare = (rng.random(len(predicted)) < 0.1) & (predicted != RARE_CLASS)
    other_common = np.where(predicted == RARE_CLASS, rng.integers(0, RARE_CLASS, len(predicted)), 1 - predicted)
    return np.where(to_rare, RARE_CLASS, other_common)


def venn_admit(mc: Points, vp: Points, scored: Points) -> tuple[BoolArray, BoolArray]:
    """What Venn-ADMIT admits of the scored points, and which of them have an ADMIT singleton."""
    omega = band_radius(mc.calibration_points, SETTINGS.delta).omega
    admit_index = AdmitIndex(mc.calibration_points, class_count=CLASS_COUNT, settings=SETTINGS, omega=omega)

    def sets_of(view: Approximation) -> AdmitSets:
        return admit_index.sets(view.logits, view.predicted, view.match_count, view.distance)

    vp_singleton = sets_of(vp.view).singleton
    venn_index = VennIndex(vp.calibration_points, vp_singleton, class_count=CLASS_COUNT, settings=SETTINGS, omega=omega)
    view, sets = scored.view, sets_of(scored.view)
    categories = venn_index.categories(sets.singleton, view.predicted, view.match_count, view.distance)
    selection = select(
        sets,
        venn_probabilities(sets.singleton, categories.size, categories.correct, None),
        view.predicted,
        view.match_count,
        neighbour_count=NEIGHBOUR_COUNT,
        thresholds=SETTINGS.thresholds,
        require_full_match=False,
    )
    return selection.decision >= 0, sets.singleton


def split_conformal(calibration_scores: FloatArray, scored: Points) -> BoolArray:
    """Marginal split conformal sets of the scored points (m, C), the prediction always in."""
    rank = ceil((len(calibration_scores) + 1) * PROMISED_SHARE)
    included: BoolArray = 1.0 - softmax(scored.view.logits) <= np.sort(calibration_scores)[rank - 1]
    np.put_along_axis(included, scored.view.predicted[:, None], True, axis=1)
    return included


@dataclass(frozen=True)
class Simulation:
    """Counts of all draws; for each selection (draws, C + 1): per predicted class and, last, over all.

    covered: (draws,), how many labels split conformal's sets hold.
    """

    selected: dict[str, IntArray]
    right: dict[str, IntArray]
    covered: IntArray

    def share(self, selection: str, predicted: int) -> Share:
        """The share of right predictions of one class; of all for `predicted` -1."""
        selected, right = self.selected[selection][:, predicted], self.right[selection][:, predicted]
        ratio = right.sum() / selected.sum()
        residual = right - ratio * selected
        return Share(
            right=float(ratio),
            standard_error=sqrt(np.square(residual).sum()) / float(selected.sum()),
            selected=float(selected.sum()) / (DRAWS * SCORED_SIZE),
        )


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    selected = {name: np.zeros((DRAWS, CLASS_COUNT + 1), dtype=np.int64) for name in SELECTIONS}
    right = {name: np.zeros_like(counts) for name, counts in selected.items()}
    covered = np.zeros(DRAWS, dtype=np.int64)
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        mc, vp = draw_points(rng, CALIBRATION_SIZE), draw_points(rng, CALIBRATION_SIZE)
        scored = draw_points(rng, SCORED_SIZE)
        admitted, admit_singleton = venn_admit(mc, vp, scored)
        sets = split_conformal(np.r_[mc.calibration_points.score, vp.calibration_points.score], scored)
        covered[draw] = np.take_along_axis(sets, scored.label[:, None], axis=1).sum()
        predicted = scored.view.predicted
        masks = zip(SELECTIONS, (admitted, admit_singleton, sets.sum(axis=1) == 1), strict=True)
        for name, mask in masks:
            mask_right = mask & (scored.label == predicted)
            selected[name][draw] = [*np.bincount(predicted[mask], minlength=CLASS_COUNT), mask.sum()]
            right[name][draw] = [*np.bincount(predicted[mask_right], minlength=CLASS_COUNT), mask_right.sum()]
    return Simulation(selected, right, covered)


EACH_CLASS_AND_ALL = pytest.mark.parametrize("predicted", [0, 1, RARE_CLASS, -1])


@EACH_CLASS_AND_ALL
def test_venn_admit_keeps_its_promise(simulation: Simulation, predicted: int) -> None:
    share = simulation.share("venn_admit", predicted)
    assert share.least >= PROMISED_SHARE
    assert share.selected > (0.02 if predicted == RARE_CLASS else 0.2)


@EACH_CLASS_AND_ALL
def test_split_conformals_singletons_fall_short_on_the_same_draws(simulation: Simulation, predicted: int) -> None:
    assert simulation.share("split_conformal", predicted).most < PROMISED_SHARE


def test_split_conformal_covers_all_the_same(simulation: Simulation) -> None:
    coverage = simulation.covered / SCORED_SIZE
    assert coverage.mean() + STANDARD_ERRORS * coverage.std() / sqrt(DRAWS) >= PROMISED_SHARE


def test_admit_singletons_alone_fall_short_for_the_rare_class(simulation: Simulation) -> None:
    """ADMIT's thresholds are per true class; the share per predicted class is what the Venn predictor adds."""
    assert simulation.share("admit", RARE_CLASS).most < PROMISED_SHARE


def test_sets_of_bands_that_overlap_need_not_hold_the_label() -> None:
    """Where bands part the points they do. Points at 0 and 2 share their band with the many at 1, which are right."""
    settings = make_settings(CLASS_COUNT, NEIGHBOUR_COUNT, alpha=Decimal("0.1"), kappa=20)
    covered = {1.0: 0.0, np.inf: 0.0}
    for draw in range(20):
        rng = np.random.default_rng(draw)
        mc, scored = (points_at_three_distances(rng, count) for count in (4000, 4000))
        for omega in covered:
            index = AdmitIndex(mc.calibration_points, class_count=CLASS_COUNT, settings=settings, omega=omega)
            view = scored.view
            sets = index.sets(view.logits, view.predicted, view.match_count, view.distance)
            covered[omega] += float(np.take_along_axis(sets.included, scored.label[:, None], axis=1).mean()) / 20
    assert covered[1.0] == pytest.approx(0.82, abs=0.01)
    assert covered[np.inf] >= PROMISED_SHARE - 0.005


def points_at_three_distances(rng: np.random.Generator, count: int) -> Points:
    """Points at 1 are right, those at 0 and 2 wrong: nine in a hundred each."""
    distance = rng.choice(3, size=count, p=[0.09, 0.82, 0.09])
    label = rng.integers(CLASS_COUNT, size=count)
    predicted = np.where(distance == 1, label, (label + 1) % CLASS_COUNT)
    logits = rng.uniform(0.0, 0.1, (count, CLASS_COUNT))
    logits[np.arange(count), predicted] += 3.0
    return Points(Approximation(logits, predicted, np.zeros(count, dtype=np.int64), distance.astype(float)), label)
