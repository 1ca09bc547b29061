"""Venn-ADMIT without a division: its sets, categories and probabilities are those of a loop over bags of points."""

from dataclasses import fields
from decimal import Decimal
from math import inf
from typing import Any

import numpy as np
import pytest

from tests.reference import joined_bags
from venn_admit.core.approximation.knn import nonconformity, softmax
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex, joined_probabilities
from venn_admit.core.types import CalibrationPoints, FloatArray

K = 3


def drawn(rng: np.random.Generator, count: int, class_count: int) -> tuple[CalibrationPoints, FloatArray]:
    """Points of any q that are mostly right, with their logits; equal scores and distances are among them."""
    label = rng.integers(0, class_count, count)
    logits = np.round(rng.normal(size=(count, class_count)) + 2 * np.eye(class_count)[label], 1)
    distance = np.round(64 * rng.random(count)) / 64  # so that no end of a band is rounded
    match_count, predicted = rng.integers(0, K + 1, count), logits.argmax(axis=1)
    return CalibrationPoints(label, predicted, match_count, distance, nonconformity(logits, label)), logits


def settings(class_count: int, kappa: int, q_bins: tuple[int, ...], delta: float = 1.0) -> CalibratorSettings:
    return make_settings(class_count, K, alpha=Decimal("0.2"), kappa=kappa, q_bins=q_bins, delta=delta, undivided=True)


@pytest.mark.parametrize(
    ("class_count", "kappa", "q_bins", "omega"),
    [(2, 4, (0, 2), 0.25), (2, 1, (0,), inf), (3, 2, (0,), 0.375), (4, 2, (0,), inf)],
)
def test_sets_and_probabilities_are_those_of_a_loop_over_bags(
    class_count: int, kappa: int, q_bins: tuple[int, ...], omega: float
) -> None:
    rng, under = np.random.default_rng(class_count + kappa), settings(class_count, kappa, q_bins)
    (points, logits), (others, of_others) = drawn(rng, 60, class_count), drawn(rng, 16, class_count)
    index = UndividedIndex(points, logits, class_count=class_count, settings=under, omega=omega)
    evidence = of_others, others.predicted, others.match_count, others.distance
    sets = index.admit.sets(*evidence)
    categories = index.categories(sets.singleton, *evidence)
    found = joined_probabilities(sets.singleton, others.predicted, categories)
    scores, own, moved = 1 - softmax(logits), 1 - softmax(of_others), 0
    for row in range(len(of_others)):
        one = CalibrationPoints(*(getattr(others, each.name)[row : row + 1] for each in fields(others)))
        joined = joined_bags(points, scores, one, own[row], under, omega)
        members = [bag.members(len(points.label)) for bag in joined]
        assert set(np.flatnonzero(sets.included[row])) == set.union(*members)
        if not sets.singleton[row]:
            assert np.isnan([found.lower[row], found.upper[row]]).all()
            continue
        predicted = int(others.predicted[row])
        labels = [bag.labels_of_category() for bag in joined]
        shares = [of_bag.count(predicted) / len(of_bag) for of_bag in labels]
        assert (found.lower[row], found.upper[row]) == (min(shares), max(shares))
        assert categories.size[row].tolist() == [len(of_bag) - 1 for of_bag in labels]
        assert found.category_size[row] == len(labels[shares.index(min(shares))]) - 1
        by_label = index.label_counts(of_others[row], predicted, int(others.match_count[row]), others.distance[row])
        assert (by_label + np.eye(class_count, dtype=int)).tolist() == [
            [of_bag.count(c) for c in range(class_count)] for of_bag in labels
        ]
        moved += len(set(categories.size[row].tolist())) > 1
    assert sets.singleton.sum() > 3
    assert moved or omega == inf


def test_a_point_moves_categories_of_others() -> None:
    """Without that, no probability would be calibrated: the test above would pass without a single finite cut."""
    rng, under = np.random.default_rng(8), settings(2, 1, (0,))
    (points, logits), (others, of_others) = drawn(rng, 60, 2), drawn(rng, 200, 2)
    index = UndividedIndex(points, logits, class_count=2, settings=under, omega=0.25)
    evidence = of_others, others.predicted, others.match_count, others.distance
    sizes = index.categories(np.ones(200, np.bool_), *evidence).size
    assert (sizes[:, 0] != sizes[:, 1]).sum() > 5


def test_own_sets_are_those_of_each_point_scored_by_the_others() -> None:
    rng, under = np.random.default_rng(3), settings(3, 2, (0, 2))
    points, logits = drawn(rng, 60, 3)
    index = UndividedIndex(points, logits, class_count=3, settings=under, omega=0.25)
    found = index.own_sets()
    for row in range(60):
        kept = np.arange(60) != row
        rest = CalibrationPoints(*(getattr(points, each.name)[kept] for each in fields(points)))
        others = UndividedIndex(rest, logits[kept], class_count=3, settings=under, omega=0.25)
        alone = others.admit.sets(
            logits[[row]], points.predicted[[row]], points.match_count[[row]], points.distance[[row]]
        )
        for name in ("included", "band_size", "singleton", "starved"):
            assert np.array_equal(getattr(alone, name)[0], getattr(found, name)[row]), name


def test_the_order_of_points_and_the_company_of_others_change_no_bit() -> None:
    rng, under = np.random.default_rng(4), settings(3, 2, (0,))
    (points, logits), (others, of_others) = drawn(rng, 80, 3), drawn(rng, 30, 3)
    turned = rng.permutation(80)
    again = CalibrationPoints(*(getattr(points, each.name)[turned] for each in fields(points)))
    one, other = (
        UndividedIndex(each, of_each, class_count=3, settings=under, omega=0.25, memory_budget=budget)
        for each, of_each, budget in ((points, logits, 1 << 30), (again, logits[turned], 1))
    )
    every, evidence = np.ones(30, np.bool_), (of_others, others.predicted, others.match_count, others.distance)
    together = joined_probabilities(every, others.predicted, one.categories(every, *evidence))
    for row in range(30):
        alone: Any = tuple(column[[row]] for column in evidence)
        found = joined_probabilities(every[:1], others.predicted[[row]], other.categories(every[:1], *alone))
        assert (found.lower[0], found.upper[0]) == (together.lower[row], together.upper[row])
