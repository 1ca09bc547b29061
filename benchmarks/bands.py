"""ADMIT sets and Venn categories of a batch against NumPy point by point, on a sample of the points."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.data import calibration_points, draw_view, generator
from benchmarks.measure import Measurement, compare
from service.core.admit import AdmitIndex
from service.core.approximation import softmax
from service.core.bands import band_radius
from service.core.calibrator_settings import make_settings
from service.core.types import (
    AdmitSets,
    Approximation,
    BoolArray,
    CalibrationPoints,
    CalibratorSettings,
    FloatArray,
    IntArray,
)
from service.core.venn_admit import Categories, VennIndex

_NEIGHBOUR_COUNT = 25
_SAMPLE = 400


def measure(large: bool) -> Iterator[Measurement]:
    scored, calibrating = (200_000, 100_000) if large else (20_000, 25_000)
    for class_count in (3, 50):
        case = _Case.draw(class_count, calibrating=calibrating, scored=scored)
        yield from _measure(case)


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """Points of mc and vp and to be scored; the default settings, with a kappa that most bands reach."""

    class_count: int
    settings: CalibratorSettings
    omega: float
    mc: CalibrationPoints
    vp: CalibrationPoints
    vp_view: Approximation
    scored: Approximation

    @classmethod
    def draw(cls, class_count: int, *, calibrating: int, scored: int) -> "_Case":
        rng = generator()
        mc_view, mc_label = draw_view(rng, calibrating, class_count, _NEIGHBOUR_COUNT)
        vp_view, vp_label = draw_view(rng, calibrating, class_count, _NEIGHBOUR_COUNT)
        settings = make_settings(class_count, _NEIGHBOUR_COUNT, kappa=100 // class_count)
        mc = calibration_points(mc_view, mc_label)
        return cls(
            class_count=class_count,
            settings=settings,
            omega=band_radius(mc, settings.delta).omega,
            mc=mc,
            vp=calibration_points(vp_view, vp_label),
            vp_view=vp_view,
            scored=draw_view(rng, scored, class_count, _NEIGHBOUR_COUNT)[0],
        )

    def sets(self, view: Approximation) -> AdmitSets:
        index = AdmitIndex(self.mc, class_count=self.class_count, settings=self.settings, omega=self.omega)
        return index.sets(view.logits, view.predicted, view.match_count, view.distance)

    def categories(self, vp_singleton: BoolArray, singleton: BoolArray) -> Categories:
        index = VennIndex(self.vp, vp_singleton, class_count=self.class_count, settings=self.settings, omega=self.omega)
        return index.categories(singleton, self.scored.predicted, self.scored.match_count, self.scored.distance)


def _measure(case: _Case) -> Iterator[Measurement]:
    count = len(case.scored.predicted)
    sample = np.linspace(0, count - 1, _SAMPLE).astype(np.int64)
    size = f"{count:,} by {len(case.mc.label):,}, C={case.class_count}"
    against = "NumPy, point by point"
    sets, vp_singleton = case.sets(case.scored), case.sets(case.vp_view).singleton
    categories = case.categories(vp_singleton, sets.singleton)
    assert np.array_equal(sets.included[sample], _sets_point_by_point(case, sample))
    found = _categories_point_by_point(case, vp_singleton, sets.singleton, sample)
    assert np.array_equal(np.stack((categories.size, categories.correct), axis=1)[sample], found)
    yield compare(
        "ADMIT sets",
        size,
        against,
        lambda: case.sets(case.scored),
        lambda: _sets_point_by_point(case, sample),
        turns=5,
        peer_share=_SAMPLE / count,
    )
    yield compare(
        "Venn categories",
        size,
        against,
        lambda: case.categories(vp_singleton, sets.singleton),
        lambda: _categories_point_by_point(case, vp_singleton, sets.singleton, sample),
        turns=5,
        peer_share=_SAMPLE / count,
    )


def _in_band(case: _Case, points: CalibrationPoints, row: int) -> BoolArray:
    """Whether each calibration point is in a scored point's band, (n,)."""
    distance = case.scored.distance[row]
    in_band: BoolArray = points.match_count == case.scored.match_count[row]
    in_band &= (points.distance >= distance - case.omega) & (points.distance <= distance + case.omega)
    return in_band


def _sets_point_by_point(case: _Case, rows: IntArray) -> BoolArray:
    """The ADMIT sets of some scored points as anyone would write them, (len(rows), C)."""
    confidence = 1 - Fraction(case.settings.alpha)
    scores = 1.0 - softmax(case.scored.logits[rows])
    included = np.empty(scores.shape, dtype=np.bool_)
    for place, row in enumerate(rows.tolist()):
        in_band = _in_band(case, case.mc, row)
        label, score = case.mc.label[in_band], case.mc.score[in_band]
        fewest = len(label)
        for known in range(case.class_count):
            of_class = score[label == known]
            fewest = min(fewest, len(of_class))
            rank = -(-(len(of_class) + 1) * confidence.numerator // confidence.denominator)
            included[place, known] = scores[place, known] <= _rank_smallest(of_class, rank)
        included[place, case.scored.predicted[row]] = True
        if fewest < case.settings.kappa:
            included[place] = True
    return included


def _rank_smallest(values: FloatArray, rank: int) -> float:
    return float(np.partition(values, rank - 1)[rank - 1]) if rank <= len(values) else np.inf


def _categories_point_by_point(case: _Case, vp_singleton: BoolArray, singleton: BoolArray, rows: IntArray) -> IntArray:
    """|T| and how many of T are right, of some scored points, (len(rows), 2)."""
    counts = np.zeros((len(rows), 2), dtype=np.int64)
    right = case.vp.label == case.vp.predicted
    for place, row in enumerate(rows.tolist()):
        if singleton[row]:
            alike = vp_singleton & (case.vp.predicted == case.scored.predicted[row])
            category = _in_band(case, case.vp, row) & alike
            counts[place] = np.count_nonzero(category), np.count_nonzero(category & right)
    return counts
