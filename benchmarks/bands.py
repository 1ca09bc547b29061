"""Bands, ADMIT sets and Venn categories of a batch against NumPy masks for each point and class."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.data import draw_view, generator
from benchmarks.measure import Measurement, compare
from venn_admit.core.approximation.knn import calibration_points, softmax
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import Categories, VennIndex
from venn_admit.core.types import AdmitSets, Approximation, BoolArray, CalibrationPoints, FloatArray, IntArray

_NEIGHBOUR_COUNT = 25
_SAMPLE_SHARE = 1 / 500  # what the peer does of scored points and of vp


def measure(large: bool) -> Iterator[Measurement]:
    scored, calibrating = (100_000, 125_000) if large else (20_000, 25_000)
    for class_count in (3, 50):
        yield _measure(_Case.draw(class_count, calibrating=calibrating, scored=scored))


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

    def batch(self) -> tuple[AdmitSets, AdmitSets, Categories]:
        """Sets of vp and of the scored points, and the categories of these: as the service does it."""
        classes, settings, omega = self.class_count, self.settings, self.omega
        admit = AdmitIndex(self.mc, class_count=classes, settings=settings, omega=omega)
        vp_sets, sets = _sets(admit, self.vp_view), _sets(admit, self.scored)
        venn = VennIndex(self.vp, vp_sets.singleton, class_count=classes, settings=settings, omega=omega)
        view = self.scored
        return vp_sets, sets, venn.categories(sets.singleton, view.predicted, view.match_count, view.distance)


def _sets(admit: AdmitIndex, view: Approximation) -> AdmitSets:
    return admit.sets(view.logits, view.predicted, view.match_count, view.distance)


def _measure(case: _Case) -> Measurement:
    vp_sets, sets, categories = case.batch()
    vp_rows, rows = _sample(case.vp_view), _sample(case.scored)
    counts = np.stack((categories.size, categories.correct), axis=1)
    assert np.array_equal(vp_sets.included[vp_rows], _sets_point_by_point(case, case.vp_view, vp_rows))
    assert np.array_equal(sets.included[rows], _sets_point_by_point(case, case.scored, rows))
    assert np.array_equal(counts[rows], _categories_point_by_point(case, vp_sets.singleton, sets.singleton, rows))

    def point_by_point() -> None:
        _sets_point_by_point(case, case.vp_view, vp_rows)
        _sets_point_by_point(case, case.scored, rows)
        _categories_point_by_point(case, vp_sets.singleton, sets.singleton, rows)

    return compare(
        "bands, sets, categories",
        f"{len(sets.singleton):,} by {len(case.mc.label):,}, C={case.class_count}",
        "NumPy, for each point and class",
        case.batch,
        point_by_point,
        turns=5,
        peer_share=_SAMPLE_SHARE,
    )


def _sample(view: Approximation) -> IntArray:
    count = len(view.predicted)
    return np.linspace(0, count - 1, round(count * _SAMPLE_SHARE)).astype(np.int64)


def _in_band(case: _Case, points: CalibrationPoints, view: Approximation, row: int) -> BoolArray:
    """Whether each calibration point is in a point's band, (n,)."""
    low, high = view.distance[row] - case.omega, view.distance[row] + case.omega
    in_band: BoolArray = points.match_count == view.match_count[row]
    in_band &= (points.distance >= low) & (points.distance <= high)
    return in_band


def _sets_point_by_point(case: _Case, view: Approximation, rows: IntArray) -> BoolArray:
    """The ADMIT sets of some points as anyone would write them, (len(rows), C)."""
    confidence = 1 - Fraction(case.settings.alpha)
    scores = 1.0 - softmax(view.logits[rows])
    included = np.empty(scores.shape, dtype=np.bool_)
    for place, row in enumerate(rows.tolist()):
        fewest = len(case.mc.label)
        for label in range(case.class_count):
            of_class = case.mc.score[_in_band(case, case.mc, view, row) & (case.mc.label == label)]
            fewest = min(fewest, len(of_class))
            rank = -(-(len(of_class) + 1) * confidence.numerator // confidence.denominator)
            included[place, label] = scores[place, label] <= _rank_smallest(of_class, rank)
        included[place, view.predicted[row]] = True
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
            category = _in_band(case, case.vp, case.scored, row) & alike
            counts[place] = np.count_nonzero(category), np.count_nonzero(category & right)
    return counts
