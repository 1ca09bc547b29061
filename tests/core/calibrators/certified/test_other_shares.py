"""What a policy does under other class shares, in laws whose truth is known, with thresholds chosen to mislead."""

from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from venn_admit.core.calibrators.certified.shares.other_shares import under_shares
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

SHARES = [(1 - share, share) for share in (Decimal(number) / 20 for number in range(1, 20))]
LEVEL, POINTS, PLACES = 0.1, 400, 8
# How often a point of each true class (rows) is predicted as each class with each score: errors fade with the score.
LAW = np.stack(
    [
        [np.full(PLACES, 0.86 / PLACES), 0.14 * np.arange(PLACES, 0, -1) / 36],
        [0.10 * np.arange(PLACES, 0, -1) / 36, np.full(PLACES, 0.90 / PLACES)],
    ]
)


def draw(rng: np.random.Generator, count: int, of_class_1: float) -> tuple[IntArray, IntArray, IntArray]:
    """The label, the prediction and the place of the score of each point."""
    label = (rng.random(count) < of_class_1).astype(np.int64)
    upto = LAW.reshape(2, -1).cumsum(axis=1)[:, :-1]
    cell = (rng.random(count)[:, np.newaxis] > upto[label]).sum(axis=1)
    return label, cell // PLACES, cell % PLACES


def truth(starts: tuple[int, int], q: FloatArray) -> FloatArray:
    """The share wrong of what is admitted as each class, (2,), if scores from these places are."""
    rate = np.array([[LAW[y, c, starts[c] :].sum() for y in (0, 1)] for c in (0, 1)])
    wrong: FloatArray = 1 - np.diag(rate) * q / (rate @ q)
    return wrong


def test_bounds_hold_under_all_shares_at_thresholds_that_look_best() -> None:
    """Where a threshold is chosen by its estimate, that estimate is too low in most draws, and a bound seldom is."""
    kept, below, draws = 0, 0, 60
    for seed in range(draws):
        label, predicted, place = draw(np.random.default_rng(seed), POINTS, 0.3)

        def looks(start: int, of: int, at: tuple[IntArray, ...] = (label, predicted, place)) -> float:
            rows = (at[1] == of) & (at[2] >= start)
            return float((at[0][rows] != of).mean()) if rows.sum() >= 20 else 1.0

        starts = (
            min(range(PLACES), key=lambda start: looks(start, 0)),
            min(range(PLACES), key=lambda start: looks(start, 1)),
        )
        found = under_shares(label, predicted, place >= np.array(starts)[predicted], SHARES, class_count=2, level=LEVEL)
        true = np.array([truth(starts, np.array(one.shares, dtype=float)) for one in found])
        kept += bool((true <= np.array([one.most_wrong for one in found])).all())
        below += bool((true > np.array([one.wrong for one in found])).any())
        assert [one.shares for one in found] == SHARES
    assert kept >= (1 - LEVEL) * draws
    assert below > draws / 2


def test_with_many_labels_bounds_and_estimates_come_near_the_truth() -> None:
    label, predicted, place = draw(np.random.default_rng(1), 40_000, 0.5)
    found = under_shares(label, predicted, place >= 3, SHARES, class_count=2, level=LEVEL)
    for one in found:
        q = np.array(one.shares, dtype=float)
        true = truth((3, 3), q)
        assert one.wrong == pytest.approx(true, abs=0.02)
        assert (true <= one.most_wrong).all()
        assert one.most_wrong == pytest.approx(true, abs=0.08)
        assert one.admitted == pytest.approx(float(q @ LAW[:, :, 3:].sum(axis=(1, 2))), abs=0.01)
    worst = [one.most_wrong[1] for one in found]
    assert worst == sorted(worst, reverse=True), "the rarer a class is, the more of what is taken for it is not"


def test_the_bound_is_what_the_definition_says() -> None:
    label = np.repeat([0, 1, 2], [50, 30, 20])
    predicted = np.concatenate([np.repeat([0, 1], [46, 4]), np.repeat([0, 1], [2, 28]), np.repeat([0, 2], [1, 19])])
    q = (Decimal("0.2"), Decimal("0.5"), Decimal("0.3"))
    (found,) = under_shares(label, predicted, predicted < 2, [q], class_count=3, level=0.09)
    right = stats.beta.ppf(0.01 / 50, 46, 5)
    errors = [float(q[y]) * stats.beta.isf(0.01 / n, k + 1, n - k) for y, k, n in ((1, 2, 30), (2, 1, 20))]
    assert found.most_wrong[0] == pytest.approx(sum(errors) / (sum(errors) + 0.2 * right), rel=1e-8)
    parts = 0.2 * 46 / 50, 0.5 * 2 / 30, 0.3 / 20
    assert found.wrong[0] == pytest.approx(1 - parts[0] / sum(parts))
    assert np.isnan([found.wrong[2], found.most_wrong[2]]).all()


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (("0.5", "0.3", "0.2"), "expected one share for each of 2 classes, in their order, got 3"),
        (("0.5", "0.4"), "shares from 0 to 1 that sum to 1 exactly, got 0.5, 0.4"),
        (("1.5", "-0.5"), "shares from 0 to 1"),
        (("NaN", "0.5"), "shares from 0 to 1"),
    ],
)
def test_refused(shares: tuple[str, ...], message: str) -> None:
    both = np.array([0, 1])
    with pytest.raises(InvalidInputError, match=message):
        under_shares(both, both, both >= 0, [tuple(map(Decimal, shares))], class_count=2, level=0.1)
    with pytest.raises(InvalidInputError, match="got none of class 1"):
        under_shares(both[:1], both[:1], both[:1] >= 0, [SHARES[0]], class_count=2, level=0.1)
