"""Recent traffic against vp: advice is rare if it is exchangeable, comes if it has shifted, and needs enough points."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.core.scenarios import reordered
from venn_admit.core.approximation.localizer import category_weight
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, venn_probabilities
from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.bands import (
    SnapshotIndex,
    compare_bands,
    lower_of_vp,
    redecide,
    weighted_of_vp,
)
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.traffic import (
    Accuracy,
    Share,
    SharePair,
    Traffic,
    traffic,
)
from venn_admit.core.types import Approximation, BoolArray, CalibrationPoints, FloatArray, IntArray

K = 5
SETTINGS = make_settings(2, K, kappa=30, q_bins=(0, 3))
OWN = 7


def drawn(
    generator: np.random.Generator, count: int, *, moved: float = 0.0, per_document: int = 1
) -> tuple[Approximation, IntArray]:
    """Points of two classes; further away, the network is right less often. Points of a document are all alike."""
    documents = count // per_document
    distance = np.repeat(generator.gamma(9.0, 0.3, documents) + moved, per_document)
    certainty = np.repeat(np.abs(generator.normal(2.5, 1.0, documents)), per_document) / np.maximum(distance - 1, 0.5)
    predicted = np.repeat(generator.integers(0, 2, documents), per_document)
    wrong = np.repeat(generator.random(documents), per_document) > 1 / (1 + np.exp(-2 * certainty))
    match_count = np.clip(np.rint(2 * certainty), 0, K).astype(np.int64)
    logits = np.where(np.arange(2) == predicted[:, None], certainty[:, None], -certainty[:, None])
    return Approximation(logits, predicted, match_count, distance), np.where(wrong, 1 - predicted, predicted)


def as_points(approximation: Approximation, label: IntArray) -> CalibrationPoints:
    shares = np.exp(approximation.logits) / np.exp(approximation.logits).sum(axis=1, keepdims=True)
    score = 1 - shares[np.arange(len(label)), label]
    return CalibrationPoints(label, approximation.predicted, approximation.match_count, approximation.distance, score)


def snapshot(generator: np.random.Generator, count: int = 1500, *, per_document: int = 1) -> SnapshotIndex:
    mc = as_points(*drawn(generator, count))
    of_vp, label = drawn(generator, count, per_document=per_document)
    vp, omega = as_points(of_vp, label), band_radius(mc, 1.0).omega
    admit = AdmitIndex(mc, class_count=2, settings=SETTINGS, omega=omega)
    sets = admit.sets(of_vp.logits, of_vp.predicted, of_vp.match_count, of_vp.distance)
    venn = VennIndex(vp, sets.singleton, class_count=2, settings=SETTINGS, omega=omega)
    return SnapshotIndex(
        settings=SETTINGS,
        neighbour_count=K,
        vp=vp,
        vp_usable=int((~sets.starved).sum()),
        vp_admitted=reaches_threshold(lower_of_vp(venn, vp, sets.singleton)[0], vp.predicted, SETTINGS.thresholds),
        vp_documents=in_documents(count, per_document),
        admit=admit,
        venn=venn,
    )


def in_documents(count: int, per_document: int) -> Documents | None:
    return None if per_document == 1 else Documents(np.arange(count) // per_document, count // per_document)


def decided(
    approximation: Approximation, label: IntArray, *, by: int = OWN, admitted: BoolArray | None = None
) -> DecidedPoints:
    n = len(label)
    always = np.full(n, True)
    return DecidedPoints(
        exemplar_ids=np.arange(n),
        calibration_ids=np.full(n, by),
        weighted=always,
        require_full_match=~always,
        predicted=approximation.predicted,
        approximation=approximation,
        reason=np.where(always if admitted is None else admitted, -1, 0),
        comparable=always,
        label=label,
        is_random=label >= 0,
        seen_count=0,
    )


def summed(index: SnapshotIndex, points: DecidedPoints, documents: Documents | None = None) -> Traffic:
    return traffic(OWN, points, documents, compare_bands(index, points, documents, redecide(index, points)))


def is_unlike_vp(generator: np.random.Generator, count: int, *, moved: float, per_document: int = 1) -> bool:
    index = snapshot(generator, per_document=per_document)
    points = decided(*drawn(generator, count, moved=moved, per_document=per_document))
    comparison = summed(index, points, in_documents(count, per_document)).comparison
    assert comparison is not None
    assert 0.1 < comparison.shares["admitted"].calibrated.share < comparison.shares["usable"].calibrated.share
    return comparison.is_unlike


@pytest.mark.parametrize(("count", "per_document"), [(20, 1), (300, 1), (2000, 1), (600, 20)])
def test_exchangeable_traffic_gives_no_advice(count: int, per_document: int) -> None:
    generator = np.random.default_rng(11)
    alarms = sum(is_unlike_vp(generator, count, moved=0.0, per_document=per_document) for _ in range(50))
    assert alarms == 0


@pytest.mark.parametrize(("count", "per_document"), [(300, 1), (2000, 1), (2000, 20)])
def test_shifted_traffic_does(count: int, per_document: int) -> None:
    generator = np.random.default_rng(12)
    assert all(is_unlike_vp(generator, count, moved=1.0, per_document=per_document) for _ in range(10))


def test_what_would_be_admitted_of_vp_is_decided_without_the_point() -> None:
    index = snapshot(np.random.default_rng(1), 200)
    vp, singleton = index.vp, np.full(200, True)
    venn = VennIndex(vp, singleton, class_count=2, settings=SETTINGS, omega=1.0)
    expected = []
    for row in range(200):
        others = np.arange(200) != row
        apart = CalibrationPoints(
            *(values[others] for values in (vp.label, vp.predicted, vp.match_count, vp.distance, vp.score))
        )
        without = VennIndex(apart, singleton[others], class_count=2, settings=SETTINGS, omega=1.0)
        one = slice(row, row + 1)
        found = without.categories(singleton[one], vp.predicted[one], vp.match_count[one], vp.distance[one])
        expected.append(venn_probabilities(singleton[one], found.size, found.correct, None).lower[0] >= 0.9)
    lower = lower_of_vp(venn, vp, singleton)[0]
    assert reaches_threshold(lower, vp.predicted, SETTINGS.thresholds).tolist() == expected
    assert 0 < sum(expected) < 200


@pytest.mark.parametrize("eta_loc", [0.01, 0.3])
def test_what_weights_would_admit_of_vp_is_decided_without_the_point(eta_loc: float) -> None:
    generator = np.random.default_rng(1)
    index = snapshot(generator, 600)
    vp, vectors = index.vp, generator.normal(size=(600, 3)).astype(np.float32)
    vectors[:, 0] += 3 * vp.predicted
    singleton = np.full(600, True)
    venn = VennIndex(vp, singleton, class_count=2, settings=SETTINGS, omega=1.0)
    admitted = reaches_threshold(lower_of_vp(venn, vp, singleton)[0], vp.predicted, SETTINGS.thresholds)
    index = replace(index, venn=venn, vp_admitted=admitted)
    rows = np.arange(0, 600, 3)
    expected = []
    for row in rows.tolist():
        others = np.flatnonzero(np.arange(600) != row)
        without = VennIndex(reordered(vp, others), singleton[others], class_count=2, settings=SETTINGS, omega=1.0)
        one = slice(row, row + 1)
        found = without.categories(singleton[one], vp.predicted[one], vp.match_count[one], vp.distance[one])
        weight = category_weight(vectors[one], vectors[others][without.order], found.low, found.high, eta_loc)
        expected.append(venn_probabilities(singleton[one], found.size, found.correct, weight).lower[0] >= 0.9)
    share = weighted_of_vp(index, singleton, rows, vectors[venn.order], eta_loc)
    right = (vp.predicted == vp.label)[rows]
    assert (share.points, share.plain) == (200, int(admitted[rows].sum()))
    assert (share.admitted, share.right) == (sum(expected), int((np.array(expected) & right).sum()))
    assert 0 < share.admitted < share.plain


def test_points_of_one_place_rank_alike_whether_they_are_right_or_wrong() -> None:
    right = np.arange(40) % 4 > 0
    vp = CalibrationPoints(
        right.astype(np.int64), np.ones(40, np.int64), np.ones(40, np.int64), np.ones(40), np.zeros(40)
    )
    singleton = np.full(40, True)
    venn = VennIndex(vp, singleton, class_count=2, settings=SETTINGS, omega=1.0)
    without, ranking = lower_of_vp(venn, vp, singleton)
    assert set(without[right]) == {29 / 40}
    assert set(without[~right]) == {30 / 40}
    assert set(ranking) == {30 / 41}


def test_a_share_is_lost_by_its_size_and_not_by_few_points() -> None:
    vp = Share(6000, 10_000, 10_000.0)

    def is_lost(count: int, points: int) -> bool:
        return SharePair(vp, Share(count, points, float(points))).is_lost

    assert is_lost(300, 1000)
    assert not is_lost(550, 1000)  # significantly less, and no loss to act on
    assert not is_lost(0, 3)
    assert is_lost(0, 30)
    assert not SharePair(Share(0, 100, 100.0), Share(0, 100, 100.0)).is_lost
    # Ten documents that each say the same are ten points, however many they hold.
    assert not SharePair(vp, Share(300, 1000, 10.0)).is_lost


def labelled(right: int, wrong: int, *, by: int = OWN, documents: Documents | None = None) -> tuple[Accuracy, ...]:
    """Outcomes of predictions of class 0, all admitted."""
    n = right + wrong
    zeros: IntArray = np.zeros(n, dtype=np.int64)
    ones: FloatArray = np.ones(n)
    label = np.where(np.arange(n) < right, 0, 1)
    points = decided(Approximation(np.zeros((n, 2)), zeros, zeros, ones), label, by=by)
    return summed(snapshot(np.random.default_rng(2), 200), points, documents).accuracy


def test_accuracy_below_the_target_by_interval() -> None:
    target = 1 - float(Decimal("0.1"))
    overall, of_class = labelled(70, 30)
    assert (overall.predicted, of_class.predicted) == (None, 0)
    assert (overall.right, overall.points) == (of_class.right, of_class.points) == (70, 100)
    assert overall.low < 0.7 < overall.high
    assert overall.is_below(target)
    assert not labelled(87, 13)[0].is_below(target)  # below, and no more than chance
    assert not labelled(2, 7)[0].is_below(target)  # too few to judge
    assert not labelled(70, 30, documents=Documents(np.arange(100) // 25, 4))[0].is_below(target)


def test_what_other_calibrations_admitted_is_not_counted_against_this_one() -> None:
    assert labelled(70, 30, by=OWN - 1) == ()


def test_labels_that_were_chosen_do_not_count_unless_all_points_have_one() -> None:
    index = snapshot(np.random.default_rng(4), 200)
    approximation, label = drawn(np.random.default_rng(5), 100)
    chosen = replace(decided(approximation, label), is_random=np.full(100, False))
    assert summed(index, chosen).accuracy[0].points == 100
    in_part = replace(chosen, label=np.where(np.arange(100) < 90, label, -1))
    assert summed(index, in_part).accuracy == ()
