"""Mean losses of what is admitted, against sums over points."""

from decimal import Decimal

import numpy as np
import pytest

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.losses import MeanLoss, group_losses, mean_losses
from venn_admit.core.evaluation.tallies import Verdict

MATRIX = np.array([[0.0, 1.0, 0.3], [2.0, 0.0, 1.0], [0.5, 5.0, 0.0]])


@pytest.mark.parametrize("size", [1, 4])
def test_means_are_those_of_the_points_in_whatever_order(size: int) -> None:
    rng = np.random.default_rng(0)
    label, predicted, admitted = rng.integers(0, 3, 400), rng.integers(0, 3, 400), rng.random(400) < 0.6
    documents = None if size == 1 else Documents(np.arange(400) // size, 400 // size)
    found = mean_losses(MATRIX, label, predicted, admitted, documents)
    cost = MATRIX[label, predicted]
    assert found.overall.mean == pytest.approx(cost[admitted].mean())
    for c in range(3):
        assert found.per_predicted_class[c].mean == pytest.approx(cost[admitted & (predicted == c)].mean())
        assert found.per_true_class[c].mean == pytest.approx(cost[admitted & (label == c)].mean())
        assert found.per_true_class[c].count == np.count_nonzero(admitted & (label == c))
    # The interval of independent points is about two standard errors wide on each side.
    if size == 1:
        low, high = found.overall.interval
        assert high - low == pytest.approx(2 * 1.96 * cost[admitted].std() / np.sqrt(admitted.sum()), rel=0.1)
        order = rng.permutation(400)
        again = mean_losses(MATRIX, label[order], predicted[order], admitted[order], documents)
        assert again.overall.mean == found.overall.mean


@pytest.mark.parametrize("size", [1, 4])
def test_means_of_groups_are_those_of_their_points(size: int) -> None:
    rng = np.random.default_rng(1)
    label, predicted, admitted = rng.integers(0, 3, 400), rng.integers(0, 3, 400), rng.random(400) < 0.6
    group = rng.choice(3, 400, p=[0.7, 0.25, 0.05])
    admitted[group == 2] = False
    documents = None if size == 1 else Documents(np.arange(400) // size, 400 // size)
    found = group_losses(MATRIX, label, predicted, group, 3, admitted, documents)
    for place, one in enumerate(found[:2]):
        rows = np.flatnonzero(admitted & (group == place))
        cost = [MATRIX[label[row], predicted[row]] for row in rows]
        assert (one.count, one.documents) == (len(rows), len({row // size for row in rows}))
        assert one.mean == pytest.approx(sum(cost) / len(cost))
        assert one.interval[0] < one.mean < one.interval[1]
    assert (found[2].count, found[2].interval) == (0, (0.0, 5.0))


def test_nothing_admitted_and_nothing_lost_are_not_certain() -> None:
    label = np.zeros(30, dtype=np.int64)
    none = mean_losses(MATRIX, label, label, np.zeros(30, np.bool_), None).overall
    assert (none.count, none.interval, none.verdict(Decimal("0.1"))) == (0, (0.0, 5.0), Verdict.CANNOT_TELL)
    free = mean_losses(MATRIX, label, label, np.ones(30, np.bool_), None).overall
    assert (free.mean, free.interval[0], free.verdict(Decimal("0.1"))) == (0.0, 0.0, Verdict.CANNOT_TELL)
    assert free.interval[1] > 0.1


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((0.0, 0.1), Verdict.MET), ((0.11, 0.2), Verdict.MISSED), ((0.05, 0.2), Verdict.CANNOT_TELL)],
)
def test_a_verdict_follows_from_the_interval(interval: tuple[float, float], verdict: Verdict) -> None:
    assert MeanLoss(0.1, 500, 500, interval).verdict(Decimal("0.1")) is verdict
    assert MeanLoss(0.1, 500, 5, interval).verdict(Decimal("0.1")) is Verdict.CANNOT_TELL
