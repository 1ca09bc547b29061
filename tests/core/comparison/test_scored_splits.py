"""Splits under the scores of Venn-Abers: no point that proposes is scored by a model that has seen its own label."""

from dataclasses import replace

import numpy as np
import pytest

from tests.core.comparison.test_selective import K, drawn
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.venn_abers.crossfit import fold_of
from venn_admit.core.calibrators.venn_abers.reliability import fit_reliability, reliability_score
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.core.comparison.held_out import HeldOutPoints, ScoredSplits
from venn_admit.core.types import FloatArray

RNG = np.random.default_rng(8)
KNN, MC, VP = drawn(600, RNG, 150), drawn(400, RNG), drawn(300, RNG)


def splits(knn: HeldOutPoints | None = KNN) -> ScoredSplits:
    model = fit_reliability(KNN.seen.network_logits, KNN.seen.knn, KNN.label, neighbour_count=K)
    return ScoredSplits(knn, [MC, VP], model, neighbour_count=K, seed=1)


def scores(of: ScoredSplits) -> FloatArray:
    return of.cells(ScoreKind.RELIABILITY).points.score


def test_points_of_knn_are_scored_by_models_of_the_other_folds_and_others_by_the_model_of_all() -> None:
    found, fold = splits(), fold_of(KNN.keys, seed=1)
    for number in range(5):
        rows, rest = fold == number, fold != number
        model = fit_reliability(
            KNN.seen.network_logits[rest], KNN.seen.knn.take(rest), KNN.label[rest], neighbour_count=K
        )
        expected = reliability_score(model, KNN.seen.network_logits[rows], KNN.seen.knn.take(rows), neighbour_count=K)
        assert np.array_equal(scores(found)[found.of_knn][rows], expected)
    model = fit_reliability(KNN.seen.network_logits, KNN.seen.knn, KNN.label, neighbour_count=K)
    others = [reliability_score(model, of.seen.network_logits, of.seen.knn, neighbour_count=K) for of in (MC, VP)]
    assert np.array_equal(scores(found)[~found.of_knn], np.concatenate(others))


def test_labels_of_a_document_do_not_bear_on_its_own_scores() -> None:
    document = np.array(KNN.keys) == KNN.keys[0]
    changed = replace(KNN, label=np.where(document, (KNN.label + 1) % 3, KNN.label))
    before, after = (scores(splits(knn))[: len(document)] for knn in (KNN, changed))
    assert np.array_equal(before[document], after[document])
    assert not np.array_equal(before, after)


def test_the_networks_score_needs_no_folds() -> None:
    found = splits().cells(ScoreKind.NETWORK)
    parts = (KNN, MC, VP)
    assert np.array_equal(found.points.score, np.concatenate([network_score(of.seen.network_logits) for of in parts]))
    assert list(found.keys) == [key for of in parts for key in of.keys]


@pytest.mark.parametrize(("knn", "least", "most"), [(KNN, 600, 600), (None, 40, 110)])
def test_points_of_knn_propose_or_one_document_in_ten_of_the_others(
    knn: HeldOutPoints | None, least: int, most: int
) -> None:
    found = splits(knn)
    assert least <= np.count_nonzero(found.proposing) <= most
    if knn is not None:
        assert np.array_equal(found.proposing, found.of_knn)
