"""Cross-fitted lower probabilities of mc: against the procedure point by point, and what must not bear on them."""

from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests import reference
from tests.core.scenarios import make_labels, reordered, with_labels
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.calibrators.venn_admit.crossfit import PointsLocalizer, crossfitted_lower
from venn_admit.core.types import Approximation, CalibrationPoints, FloatArray, IntArray
from venn_admit.errors import NotReadyError

C, K = 3, 5
KAPPAS = (12, 6, 1)
SETTINGS = make_settings(C, K, alpha=Decimal("0.25"), delta=1.5, q_bins=(0, 2, 5))


def drawn(count: int, seed: int = 0) -> tuple[Approximation, CalibrationPoints, IntArray]:
    """Points with a KNN's view of them, in five folds; the nearer, the clearer."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(count, C))
    logits[np.arange(count), rng.integers(0, C, count)] += 4.0
    view = Approximation(logits, logits.argmax(axis=1), rng.integers(0, K + 1, count), rng.gamma(4.0, size=count))
    return view, with_labels(view, make_labels(rng, view, C)), rng.integers(0, 5, count)


def lower(
    view: Approximation,
    points: CalibrationPoints,
    fold: IntArray,
    settings: CalibratorSettings = SETTINGS,
    memory_budget: int = 1 << 20,
    localizer: PointsLocalizer | None = None,
) -> FloatArray:
    return crossfitted_lower(
        points,
        view.logits,
        fold,
        settings,
        KAPPAS,
        class_count=C,
        localizer=localizer,
        memory_budget=memory_budget,
    )


def slow_lower(
    view: Approximation,
    points: CalibrationPoints,
    fold: IntArray,
    settings: CalibratorSettings,
    kappa: int,
    eta_loc: float | None = None,
) -> FloatArray:
    """Section 10 with the functions of the reference, a point at a time."""
    score = 1 - softmax(view.logits)

    @cache
    def without(scored: int, own: int) -> tuple[CalibrationPoints, CalibratorSettings, float]:
        """The points of the other folds, as mc."""
        rows = np.flatnonzero((fold != scored) & (fold != own))
        part = reordered(points, rows)
        scaled = replace(settings, kappa=-(-kappa * len(rows) // len(fold)))
        return part, scaled, reference.radius(part, settings.delta)

    def set_of(row: int, scored: int) -> frozenset[int]:
        """The set of a point as vp, if another fold is scored; that of a scored one itself."""
        return reference.admit_set(
            score[row],
            int(points.predicted[row]),
            int(points.match_count[row]),
            float(points.distance[row]),
            *without(scored, int(fold[row])),
        ).members

    found = np.full(len(fold), np.nan)
    for scored in range(5):
        others = np.flatnonzero(fold != scored)
        playing = reordered(points, others)
        omega = reference.radius(playing, settings.delta)
        sets = np.array([[c in members for c in range(C)] for members in (set_of(int(j), scored) for j in others)])
        for row in np.flatnonzero(fold == scored).tolist():
            members = set_of(row, scored)
            own = np.array([c in members for c in range(C)])
            if own.sum() != 1:
                continue
            predicted, q, d = int(points.predicted[row]), int(points.match_count[row]), float(points.distance[row])
            rows = reference.category(playing, sets, own, predicted, q, d, settings.q_bins, omega)
            upweight = 1.0
            if eta_loc is not None and len(rows):
                distance = np.linalg.norm(view.logits[others] - view.logits[row], axis=1)
                psi = np.exp(-distance / eta_loc)
                upweight = psi.sum() / psi[rows].sum()
            found[row], _ = reference.venn_interval(playing.label[rows], predicted, C, upweight)
    return found


@pytest.mark.parametrize("delta", [1.5, float("inf")])
def test_it_is_the_procedure_point_by_point(delta: float) -> None:
    view, points, fold = drawn(220)
    settings = replace(SETTINGS, delta=delta)
    found = lower(view, points, fold, settings)
    for kappa, of_kappa in zip(KAPPAS, found, strict=True):
        assert of_kappa.tolist() == pytest.approx(slow_lower(view, points, fold, settings, kappa).tolist(), nan_ok=True)
    singletons = np.isfinite(found).sum(axis=1)
    assert all(fewer < more for fewer, more in pairwise(singletons))


def test_it_is_weighted_by_the_localizer_over_the_other_folds() -> None:
    view, points, fold = drawn(220)
    # The vectors are the KNN's logits, in float32.
    view = replace(view, logits=view.logits.astype(np.float32).astype(np.float64))
    localizer = PointsLocalizer(lambda rows: view.logits[rows].astype(np.float32), eta_loc=2.0)
    found, plain = lower(view, points, fold, localizer=localizer), lower(view, points, fold)
    for kappa, of_kappa in zip(KAPPAS, found, strict=True):
        expected = slow_lower(view, points, fold, SETTINGS, kappa, eta_loc=2.0)
        assert of_kappa.tolist() == pytest.approx(expected.tolist(), nan_ok=True)
    assert (np.nan_to_num(found) <= np.nan_to_num(plain)).all()
    assert np.nansum(found) < np.nansum(plain)


def test_no_label_bears_on_a_decision_in_its_own_fold() -> None:
    view, points, fold = drawn(400)
    before = lower(view, points, fold)
    own = fold == 2
    changed = with_labels(view, np.where(own, (points.label + 1) % C, points.label))
    after = lower(view, changed, fold)
    assert after[:, own].tobytes() == before[:, own].tobytes()
    assert after[:, ~own].tobytes() != before[:, ~own].tobytes()


def test_neither_the_order_of_rows_nor_the_budget_matters() -> None:
    view, points, fold = drawn(400)
    expected = lower(view, points, fold)
    assert lower(view, points, fold, memory_budget=1).tobytes() == expected.tobytes()
    order = np.random.default_rng(1).permutation(400)
    again = lower(view.take(order), reordered(points, order), fold[order])
    assert again.tobytes() == expected[:, order].tobytes()


def test_folds_are_not_held_to_a_kappa_of_all_points() -> None:
    """Every band holds all points, 400 of each class in all of mc: 320 of it score, and 240 make sets."""
    label = np.tile(np.arange(C), 400)
    logits = 9.0 * (label[:, None] == np.arange(C)) + np.random.default_rng(0).normal(size=(len(label), C))
    view = Approximation(logits, label, np.full(len(label), K), np.random.default_rng(0).gamma(4.0, size=len(label)))
    points, fold = with_labels(view, label), np.arange(len(label)) // C % 5
    settings = replace(SETTINGS, delta=float("inf"))
    found = crossfitted_lower(points, logits, fold, settings, (400, 401), class_count=C, localizer=None)
    assert np.isfinite(found[0]).mean() > 0.9
    assert np.isnan(found[1]).all()


def test_too_little_to_cross_fit_is_refused() -> None:
    view, points, fold = drawn(100)
    with pytest.raises(NotReadyError, match="documents of mc in at least 3 folds, got them in 2"):
        lower(view, points, fold % 2)
    with pytest.raises(NotReadyError, match="the band radius needs at least 2 calibration points"):
        lower(view, with_labels(view, (points.predicted + 1) % C), fold)
    same = replace(view, distance=np.ones(100))
    with pytest.raises(NotReadyError, match="the band radius is 0"):
        lower(same, with_labels(same, points.label), fold)
