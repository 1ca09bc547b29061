"""Settings to choose from: which there are, what each admits, and what is left out."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tests.core.comparison.test_selective import C, K, drawn, shuffled
from venn_admit.core.approximation.knn import network_prediction, nonconformity
from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, select_on_average
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import CalibratorSettings, ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.calibrators.venn_abers.crossfit import cross_fit, fold_of
from venn_admit.core.calibrators.venn_abers.reliability import fit_reliability, scored_points
from venn_admit.core.calibrators.venn_admit.crossfit import PointsLocalizer, crossfitted_lower
from venn_admit.core.calibrators.venn_admit.undivided_crossfit import undivided_folds
from venn_admit.core.comparison.candidates import CrossFitted, CrossFitting, cross_fitted_candidates
from venn_admit.core.comparison.held_out import HeldOutPoints
from venn_admit.core.types import CalibrationPoints
from venn_admit.errors import InvalidInputError

RNG = np.random.default_rng(3)
KNN = drawn(600, RNG)
MC = drawn(3000, RNG, documents=900)
MODEL = fit_reliability(KNN.seen.network_logits, KNN.seen.knn, KNN.label, neighbour_count=K)
COARSE = (0, 1, 2, 6, 10)


def localizer_of(mc: HeldOutPoints) -> PointsLocalizer:
    """Over points whose vectors are the KNN's logits."""
    vectors = mc.seen.knn.logits.astype(np.float32)
    return PointsLocalizer(lambda rows: vectors[rows], eta_loc=0.5)


def candidates(mc: HeldOutPoints = MC, *, alpha: str = "0.1", with_model: bool = True) -> CrossFitted:
    model, every = MODEL if with_model else None, np.arange(len(mc.label))
    return cross_fitted_candidates(CrossFitting(mc, C, K, 1, model, localizer_of(mc), every), Decimal(alpha))


@pytest.fixture(scope="module")
def found() -> CrossFitted:
    return candidates()


def test_a_few_of_each_method(found: CrossFitted) -> None:
    settings = [one.settings for one in found.found]
    assert [(one.undivided, one.q_bins, one.kappa) for one in settings if isinstance(one, CalibratorSettings)] == [
        (undivided, edges, kappa)
        for undivided in (False, True)
        for edges in (tuple(range(K + 1)), COARSE, (0,))
        for kappa in (1000, 300, 100, 50, 30)
    ]
    assert [(one.score, one.q_bins, one.promise) for one in settings if isinstance(one, VennAbersSettings)] == [
        *((kind, edges, "pointwise") for kind in ScoreKind for edges in (COARSE, (0,))),
        *((kind, (0,), "average") for kind in ScoreKind),
    ]
    assert {one.alpha for one in settings} == {Decimal("0.1")}
    assert found.left_out == ()


def test_venn_abers_admits_what_its_own_choice_of_a_score_counts(found: CrossFitted) -> None:
    network, reliability = (
        scored_points(kind, MODEL, MC.seen.network_logits, MC.seen.knn, neighbour_count=K) for kind in ScoreKind
    )
    by_cells = {
        (one.settings.score, one.settings.q_bins): one
        for one in found.found
        if isinstance(one.settings, VennAbersSettings) and not one.settings.has_policy
    }
    for edges in (COARSE, (0,)):
        settings = by_cells[ScoreKind.NETWORK, edges].settings
        assert isinstance(settings, VennAbersSettings)
        choice = cross_fit(network, reliability, MC.right, MC.keys, seed=1, settings=settings).choice
        assert by_cells[ScoreKind.NETWORK, edges].admitted.mean() == choice.network_share > 0
        assert by_cells[ScoreKind.RELIABILITY, edges].admitted.mean() == choice.reliability_share > 0
    for one in by_cells.values():
        assert one.predicted.tolist() == network_prediction(MC.seen.network_logits).tolist()


def test_the_average_promise_admits_more_and_is_that_of_the_other_folds(found: CrossFitted) -> None:
    points = scored_points(ScoreKind.NETWORK, MODEL, MC.seen.network_logits, MC.seen.knn, neighbour_count=K)
    pointwise, average = (
        next(
            one
            for one in found.found
            if isinstance(one.settings, VennAbersSettings)
            and (one.settings.score, one.settings.q_bins, one.settings.promise) == (ScoreKind.NETWORK, (0,), promise)
        )
        for promise in (AskedPromise.POINTWISE, AskedPromise.AVERAGE)
    )
    fold = fold_of(MC.keys, seed=1)
    others = LabelledCells(points, MC.label, MC.keys).take(fold != 0)
    policy = select_on_average(others, NO_TRAFFIC, class_count=C, alpha=Decimal("0.1")).policy
    expected = admit(points.score[fold == 0], points.predicted[fold == 0], policy)
    assert average.admitted[fold == 0].tolist() == expected.tolist()
    assert average.admitted.mean() > pointwise.admitted.mean()


def test_venn_admit_admits_what_reaches_the_threshold(found: CrossFitted) -> None:
    view = MC.seen.knn
    points = CalibrationPoints(
        MC.label, view.predicted, view.match_count, view.distance, nonconformity(view.logits, MC.label)
    )
    fold = fold_of(MC.keys, seed=1)
    by_bands = [one for one in found.found if isinstance(one.settings, CalibratorSettings)]
    for one in by_bands:
        assert isinstance(one.settings, CalibratorSettings)
        given = points, view.logits, fold, one.settings, (one.settings.kappa,)
        if one.settings.undivided:
            (lower,) = undivided_folds(*given, class_count=C, growth=Fraction(2), judged=np.arange(len(fold)))
        else:
            (lower,) = crossfitted_lower(*given, class_count=C, localizer=localizer_of(MC))
        assert one.admitted.tolist() == (np.nan_to_num(lower) >= 0.9).tolist()
        assert one.predicted.tolist() == view.predicted.tolist()
    assert any(one.admitted.any() for one in by_bands)


def test_the_order_of_points_does_not_matter(found: CrossFitted) -> None:
    order = np.random.default_rng(8).permutation(len(MC.label))
    for one, again in zip(found.found, candidates(shuffled(MC, order)).found, strict=True):
        assert again.admitted.tolist() == one.admitted[order].tolist()


def test_what_cannot_be_computed_is_left_out_and_said() -> None:
    few = candidates(shuffled(MC, np.arange(4)), with_model=False)
    assert [what for what, _ in few.left_out] == ["Venn-ADMIT", "Venn-Abers, score reliability"]
    assert [why for _, why in few.left_out if "ingest" in why or "fit again" in why] == [why for _, why in few.left_out]
    assert {type(one.settings) for one in few.found} == {VennAbersSettings}
    with pytest.raises(InvalidInputError, match="alpha must"):
        candidates(alpha="1")
