"""Venn-ADMIT without a division: its probabilities are those of a loop, and of the label that comes true calibrated."""

from dataclasses import fields
from decimal import Decimal
from math import ceil, isnan, sqrt

import numpy as np
import pytest

from benchmarks.undivided import Points, Undivided

ALPHA, OMEGA, KAPPA = Decimal("0.2"), 0.25, 3


def drawn(rng: np.random.Generator, count: int) -> Points:
    """Points that are right less often as d grows, of two bins of q, with equal scores and distances among them."""
    distance, margin = np.round(rng.random(count), 2), rng.normal(size=count)
    label = (rng.random(count) < 1 / (1 + np.exp(-3 * margin * (1.2 - distance)))).astype(np.int64)
    pi = np.round(1 / (1 + np.exp(-2 * margin)), 2)
    group = rng.integers(0, 2, count)
    return Points(np.stack([pi, 1 - pi], axis=1), (margin > 0).astype(np.int64), label, group, distance)


def joined(points: Points, point: Points, label: int) -> Points:
    """The points, and at last one more with this label."""
    columns = {field.name: [getattr(points, field.name), getattr(point, field.name)] for field in fields(Points)}
    columns["label"][1] = np.array([label])
    return Points(**{name: np.concatenate(both) for name, both in columns.items()})


def loop_probability(bag: Points) -> float:
    """That of the last point, from the definition."""
    last = len(bag.label) - 1

    def band(row: int) -> list[int]:
        low, high = bag.distance[row] - OMEGA, bag.distance[row] + OMEGA
        return [one for one in range(last + 1) if bag.group[one] == bag.group[row] and low <= bag.distance[one] <= high]

    def is_single(row: int) -> bool:
        for c in (0, 1):
            scores = sorted(bag.scores[one, c] for one in band(row) if bag.label[one] == c)
            rank = ceil((len(scores) + 1) * (1 - ALPHA))
            within = rank > len(scores) or bag.scores[row, c] <= scores[rank - 1]
            if len(scores) < KAPPA or (within and c != bag.predicted[row]):
                return False
        return True

    if not is_single(last):
        return float("nan")
    category = [one for one in band(last) if bag.predicted[one] == bag.predicted[last] and is_single(one)]
    return sum(int(bag.label[one] == bag.predicted[last]) for one in category) / len(category)


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_are_those_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, others = drawn(rng, 100), drawn(rng, 12)
    predictor, singletons = Undivided(points, OMEGA, ALPHA, KAPPA), 0
    for row in range(12):
        point = others.take(slice(row, row + 1))
        expected = [loop_probability(joined(points, point, label)) for label in (0, 1)]
        found = [predictor.probability(point, label) for label in (0, 1)]
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert predictor.lower(point) == pytest.approx(
            min(expected) if not any(map(isnan, expected)) else np.nan, nan_ok=True
        )
        singletons += not isnan(found[0])
    assert singletons > 2


@pytest.mark.slow
def test_the_probability_of_the_label_that_comes_true_is_calibrated() -> None:
    rng, found = np.random.default_rng(5), []
    for _ in range(4000):
        points, point = drawn(rng, 60), drawn(rng, 1)
        label = int(point.label[0])
        found.append((Undivided(points, OMEGA, ALPHA, KAPPA).probability(point, label), label == point.predicted[0]))
    said, right = np.array([one for one in found if not isnan(one[0])]).T
    assert len(said) > 500
    for part in (said < 0.85, said >= 0.85):
        assert part.sum() > 200
        error = sqrt(said[part].mean() * (1 - said[part].mean()) / part.sum())
        assert right[part].mean() == pytest.approx(said[part].mean(), abs=4 * error)
