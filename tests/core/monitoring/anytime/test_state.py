"""States: the same to the last bit however documents are batched, stored and read; and what they say."""

from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.core.monitoring.anytime.starts import mixture_and_sum
from venn_admit.core.monitoring.anytime.documents import LabelledPoints, labelled_points
from venn_admit.core.monitoring.anytime.games import Games, GamesFromStarts, excess_factors, play
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, MonitorPlan, plan_of
from venn_admit.core.monitoring.anytime.readings import lower_bound, readings
from venn_admit.core.monitoring.anytime.state import MonitorState, advance, initial_state
from venn_admit.core.monitoring.anytime.stored import (
    plan_document,
    plan_of_document,
    state_document,
    state_of_document,
)
from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError

LAW = Law(right=(0.7, 0.8, 0.85, 0.9, 0.95, 0.95), size=3, together=0.4)


@pytest.fixture(scope="module")
def plan() -> MonitorPlan:
    return plan_of(LAW.draw(np.random.default_rng(0), 400), class_count=CLASSES, alpha=ALPHA)


def after(plan: MonitorPlan, points: LabelledPoints, ends: list[int]) -> MonitorState:
    state = initial_state(plan)
    for first, end in pairwise([0, *ends]):
        advance(plan, state, points.take(first, end), LEVEL)
        state = state_of_document(state_document(state), plan)
    return state


@settings(max_examples=20, deadline=None)
@given(cuts=st.sets(st.integers(1, 199), max_size=5))
def test_a_state_does_not_depend_on_batches_or_storage(plan: MonitorPlan, cuts: set[int]) -> None:
    points = LAW.draw(np.random.default_rng(1), 200)
    at_once = after(plan, points, [200])
    in_parts = after(plan, points, [*sorted(cuts), 200])
    assert state_document(in_parts) == state_document(at_once)
    assert readings(plan, in_parts) == readings(plan, at_once)
    for lamp in Lamp:
        np.testing.assert_array_equal(in_parts.games[lamp].wealth, at_once.games[lamp].wealth)


def test_a_plan_is_stored_whole(plan: MonitorPlan) -> None:
    read = plan_of_document(plan_document(plan))
    for field in fields(MonitorPlan):
        np.testing.assert_array_equal(getattr(read, field.name), getattr(plan, field.name))


def test_wealth_beyond_the_largest_number_stays_there_and_is_stored() -> None:
    law = Law(right=(0.0,) * 6)
    plan = plan_of(Law().draw(np.random.default_rng(0), 300), class_count=CLASSES, alpha=ALPHA)
    state = after(plan, law.draw(np.random.default_rng(1), 3000), [1500, 3000])
    assert np.isinf(state.games[Lamp.PROMISE].most).all()
    assert state_document(state) == state_document(after(plan, law.draw(np.random.default_rng(1), 3000), [3000]))
    (first, *_) = readings(plan, state)
    assert (first.e_value, first.right, first.lower_bound) == (np.inf, 0, 0.0)
    assert first.lit_at is not None


def test_a_row_says_what_was_counted(plan: MonitorPlan) -> None:
    points = LAW.draw(np.random.default_rng(2), 300)
    state = after(plan, points, [300])
    rows = {(row.about.lamp, row.about.number): row for row in readings(plan, state)}
    for number in range(CLASSES):
        inside = points.predicted == number
        row = rows[Lamp.PROMISE, number]
        assert (row.points, row.right) == (inside.sum(), (inside & ~points.wrong).sum())
        assert row.lower_bound is not None
        assert row.share_right is not None
        assert row.lower_bound < row.share_right
        assert row.needed == CLASSES / LEVEL
    for number in np.flatnonzero(plan.tested).tolist():
        assert rows[Lamp.MIX, number].points == (points.partition[::3] == number).sum()


def test_wealth_of_games_that_start_once_follows_from_counts() -> None:
    """Those of monitors that were started before games did so again."""
    plan = plan_of(Law().draw(np.random.default_rng(0), 300), class_count=CLASSES, alpha=ALPHA)
    plan = replace(plan, from_starts=False)
    state = after(plan, Law(right=(0.8,) * 6).draw(np.random.default_rng(1), 250), [250])
    for row in readings(plan, state):
        if row.about.lamp is Lamp.PROMISE:
            assert row.right is not None
            stakes = [Fraction(4, 5) / 2**halvings for halvings in range(9)]
            won, lost = row.points - row.right, row.right
            wealth = [(1 + stake * 9) ** won * (1 - stake) ** lost for stake in stakes]
            assert row.e_value == pytest.approx(float(sum(wealth) / 9), rel=1e-12)


def test_games_start_again_with_every_document_that_counts() -> None:
    plan = plan_of(Law().draw(np.random.default_rng(0), 300), class_count=CLASSES, alpha=ALPHA)
    rng = np.random.default_rng(1)
    points = joined(Law(right=(0.95,) * 6).draw(rng, 300), Law(right=(0.5,) * 6).draw(rng, 120))
    state = after(plan, points, [120, 350, 420])
    for number in range(CLASSES):
        numbers = np.flatnonzero(points.predicted == number)
        mixtures, sums, starts = mixture_and_sum((points.wrong[numbers] * 10.0 - 1).tolist(), numbers.tolist())
        for lamp, values, needed in ((Lamp.PROMISE, mixtures, 200), (Lamp.EARLY_PROMISE, sums, 20_000)):
            games = state.games[lamp]
            assert games.e_value[number] == pytest.approx(values[-1], rel=1e-10)
            first = next(at for at, value in enumerate(values) if value >= needed)
            assert games.crossed[number] == numbers[first] + 1
        early = state.games[Lamp.EARLY_PROMISE]
        assert isinstance(early, GamesFromStarts)
        assert early.since[number] == 1 + round(starts[first])
        assert abs(early.since[number] - 300) < 50, "which is where harm began"


def joined(first: LabelledPoints, then: LabelledPoints) -> LabelledPoints:
    def column(name: str) -> Any:
        return np.concatenate([getattr(first, name), getattr(then, name)])

    columns = {name: column(name) for name in first.__slots__ if name not in {"groups", "document"}}
    document = np.concatenate([first.document, then.document + first.document_count])
    return LabelledPoints(**{**columns, "document": document})


def test_a_document_larger_than_any_of_the_calibration_counts_in_part() -> None:
    plan = plan_of(Law().draw(np.random.default_rng(0), 300), class_count=CLASSES, alpha=ALPHA)
    points = Law(size=50).draw(np.random.default_rng(1), 40)
    state = after(plan, points, [40])
    assert sum(row.points for row in readings(plan, state) if row.about.lamp is Lamp.PROMISE) == 40
    assert np.isfinite(state.games[Lamp.PROMISE].wealth).all()


def test_errors_of_a_partition_count_once_something_of_it_is_admitted() -> None:
    plan = plan_of(Law().draw(np.random.default_rng(0), 300), class_count=CLASSES, alpha=ALPHA)
    points = Law(right=(0.2,) * 6).draw(np.random.default_rng(1), 300)
    points.admitted[:] = False
    rejected = after(plan, points, [300])
    assert (rejected.games[Lamp.PARTITIONS].most == 1).all()
    points.admitted[10:] = True
    assert (after(plan, points, [300]).games[Lamp.PARTITIONS].most > 1).any()


def test_the_bound_is_where_the_game_reaches_its_level() -> None:
    points = LAW.draw(np.random.default_rng(3), 200)
    right = (~points.wrong).reshape(-1, 3).sum(axis=1)[:, None]
    wrong = 3 - right[:, 0]
    documents = {(3.0, float(k)): int(n) for k, n in zip(*np.unique(wrong, return_counts=True), strict=True)}
    bound = lower_bound(documents, 3, level=0.05)

    def wealth_against(share: float) -> float:
        e_values, _ = play(Games.of(1).wealth, excess_factors(right, np.full(right.shape, 3), np.array([3]), share))
        return float(e_values[-1, 0])

    assert wealth_against(bound - 1e-6) > 20 > wealth_against(bound + 1e-6)
    assert lower_bound({}, 1, level=0.05) == 0


def test_points_weigh_by_their_probability_in_shares_and_are_kept_by_it_in_ranks(plan: MonitorPlan) -> None:
    """Counts stay those of labels, and states with weights are stored exactly."""
    rng = np.random.default_rng(4)
    points = LAW.draw(rng, 300)
    plain = after(plan, points, [300])
    count = len(points.label)
    weighted = replace(
        points, weight=rng.choice([0.0, 1 / 3, 1.0], count), weight_of_admitted=rng.choice([0.1, 0.5], count)
    )
    assert weighted.digest() != points.digest()
    unranked = replace(weighted, is_ranked=np.zeros(count, dtype=np.bool_))
    assert unranked.digest() != weighted.digest()
    at_once, in_parts = after(plan, unranked, [300]), after(plan, unranked, [90, 200, 300])
    assert state_document(at_once) == state_document(in_parts)
    assert readings(plan, at_once) == readings(plan, in_parts)
    for lamp in (Lamp.PARTITIONS, Lamp.MIX):
        assert (at_once.games[lamp].most == 1).all()
    rows = {(row.about.lamp, row.about.number): row for row in readings(plan, at_once)}
    for number in range(CLASSES):
        inside = (points.predicted == number) & (weighted.weight > 0)
        row = rows[Lamp.PROMISE, number]
        assert (row.points, row.right) == (inside.sum(), (inside & ~points.wrong).sum())
        sums = at_once.predicted[number]
        found = sum(pair[2] * times for pair, times in sums.items())
        assert found == pytest.approx(weighted.weight[points.predicted == number].sum())
        of_true = sum(pair[2] * times for pair, times in at_once.true[number].items())
        assert of_true == pytest.approx(weighted.weight_of_admitted[points.label == number].sum())
    half = after(plan, replace(points, weight=np.full(count, 0.5)), [300])
    assert (half.games[Lamp.PROMISE].most < plain.games[Lamp.PROMISE].most).any()
    np.testing.assert_array_equal(half.games[Lamp.MIX].most, plain.games[Lamp.MIX].most)


def test_ranks_keep_points_by_a_hash_and_none_of_larger_documents() -> None:
    count = 2_000
    zeros = np.zeros(count, dtype=np.int64)

    def points(**drawn: Any) -> LabelledPoints:
        return labelled_points(
            [f"point-{row}" for row in range(count)],
            np.arange(count),
            predicted=zeros,
            label=zeros,
            match_count=None,
            admitted=np.ones(count, dtype=np.bool_),
            class_count=2,
            neighbour_count=None,
            seed=1,
            **drawn,
        )

    assert points().is_ranked.all()
    weight = np.repeat([0.2, 1.0], count // 2)
    kept = points(chance_in_ranks=weight).is_ranked
    assert kept[count // 2 :].all()
    assert abs(kept[: count // 2].sum() - 200) < 4 * np.sqrt(160)
    alone = np.arange(count) % 2 == 0
    np.testing.assert_array_equal(points(chance_in_ranks=weight, stands_alone=alone).is_ranked, kept & alone)


def test_points_are_drawn_by_their_keys_whatever_their_order() -> None:
    keys, rng = [f"point-{row}" for row in range(40)], np.random.default_rng(0)
    predicted, label, match_count = rng.integers(0, 2, 40), rng.integers(0, 2, 40), rng.integers(0, 6, 40)
    admitted, document = rng.random(40) < 0.5, np.repeat(np.arange(10), 4)

    def made(order: IntArray) -> LabelledPoints:
        return labelled_points(
            [keys[row] for row in order],
            document[order],
            predicted=predicted[order],
            label=label[order],
            match_count=match_count[order],
            admitted=admitted[order],
            class_count=CLASSES,
            neighbour_count=5,
            seed=3,
        )

    first, other = made(np.arange(40)), made(rng.permutation(40))
    assert first.digest() == other.digest()
    np.testing.assert_array_equal(first.partition // CLASSES, other.partition // CLASSES)
    assert ((first.uniform >= 0) & (first.uniform < 1)).all()
    groups = set(
        zip((first.partition // CLASSES).tolist(), (first.partition % CLASSES == first.predicted).tolist(), strict=True)
    )
    assert groups == {(0, True), (1, True), (2, True)}


@pytest.mark.parametrize("column", ["draw", "predicted", "label", "partition", "admitted", "document"])
def test_a_digest_covers_the_documents_and_those_before(column: str) -> None:
    points = LAW.draw(np.random.default_rng(4), 20)
    changed = LAW.draw(np.random.default_rng(4), 20)
    getattr(changed, column)[-1] ^= True
    before, now = points.take(0, 19).digest(), changed.take(0, 19).digest()
    assert before == now
    assert points.digest() != changed.digest()
    last = points.take(19, 20)
    assert last.digest(before) != changed.take(19, 20).digest(now)
    assert len({last.digest(), last.digest(before), last.digest(points.digest())}) == 3


def test_match_counts_beyond_k_are_refused() -> None:
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidInputError, match=r"must lie in \[0, 5\]"):
        labelled_points(
            ["a"],
            one,
            predicted=one,
            label=one,
            match_count=one + 6,
            admitted=one == 0,
            class_count=2,
            neighbour_count=5,
            seed=0,
        )
