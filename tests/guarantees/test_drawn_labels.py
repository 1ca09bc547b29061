"""Simulated: lamps that count labels of drawn points by their probability, while the policy that fixes these moves.

What was rejected is drawn more often than what was admitted, and points of one class more often than those of another.
After every hundred points, the share right among the labels so far moves the threshold from which points are admitted.
Beside the draws, random points are labelled, of which those count that were not drawn: more and more of them as time
goes on, and more where labels so far were wrong.
"""

from dataclasses import replace
from decimal import Decimal
from math import sqrt

import numpy as np
import pytest

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.guarantees.draws import Draws, until_settled
from venn_admit.core.audits import drawn as are_drawn
from venn_admit.core.monitoring.anytime.documents import LabelledPoints, labelled_points
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, MonitorPlan, plan_of
from venn_admit.core.monitoring.anytime.state import MonitorState, advance, initial_state
from venn_admit.core.types import BoolArray, FloatArray, IntArray

CALIBRATION, TRAFFIC, BLOCK = 300, 1_500, 100
LEVELS = (LEVEL, 0.05, 0.2)
ADMITTED, REJECTED = np.array([0.1, 0.4]), 0.8
BORDER = Law()


def traffic(
    rng: np.random.Generator, right: FloatArray | float, *, is_counted_later: bool, random_share: float
) -> LabelledPoints:
    """The labelled points of the traffic.

    right: the probability that a prediction is right, by tenths of the score.
    is_counted_later: whether a later policy, which admits all, decides on points that an earlier one drew.
    random_share: of the points, the largest share that is labelled at random.
    """
    points, score, uniform = BORDER.draw(rng, TRAFFIC), rng.random(TRAFFIC), rng.random(TRAFFIC)
    is_wrong = rng.random(TRAFFIC) >= np.broadcast_to(right, 10)[(score * 10).astype(np.int64)]
    points = replace(points, label=np.where(is_wrong, 1 - points.predicted, points.predicted))
    admitted, probability, labelled = np.empty(TRAFFIC, dtype=np.bool_), np.empty(TRAFFIC), np.zeros(TRAFFIC, np.bool_)
    threshold, labels, wrong = 0.5, 0, 0
    for first in range(0, TRAFFIC, BLOCK):
        block = slice(first, first + BLOCK)
        admitted[block] = score[block] >= threshold
        probability[block] = np.where(admitted[block], ADMITTED[points.predicted[block]], REJECTED)
        share = random_share * (first / TRAFFIC + (wrong > labels * float(ALPHA))) / 2
        labelled[block] = (uniform[block] < probability[block]) | (rng.random(BLOCK) < share)
        labels, wrong = labels + labelled[block].sum(), wrong + (labelled[block] & is_wrong[block]).sum()
        threshold = 0.2 if wrong <= labels * float(ALPHA) else 0.7
    drawn = uniform < probability

    def weights(least: FloatArray | float, most: FloatArray | float) -> FloatArray:
        return np.where(drawn, least / probability, (1 - most) / (1 - probability))

    of_all = weights(min(ADMITTED.min(), REJECTED), max(ADMITTED.max(), REJECTED))
    of_admitted = weights(ADMITTED.min(), ADMITTED.max())
    found = replace(
        points,
        admitted=admitted | is_counted_later,
        weight=of_all if is_counted_later else np.ones(TRAFFIC),
        weight_of_admitted=of_all if is_counted_later else of_admitted,
        is_ranked=rng.random(TRAFFIC) < of_all,
    )
    return taken(found, labelled)


def taken(points: LabelledPoints, rows: BoolArray) -> LabelledPoints:
    columns = {name: getattr(points, name)[rows] for name in points.__slots__ if name != "groups"}
    return LabelledPoints(**{**columns, "document": np.arange(rows.sum())})


def unweighted(points: LabelledPoints) -> LabelledPoints:
    ones = np.ones(len(points.label))
    return replace(points, weight=ones, weight_of_admitted=ones, is_ranked=ones.astype(np.bool_))


def watched(
    seed: int,
    right: FloatArray | float,
    *,
    is_counted_later: bool,
    random_share: float = 0.0,
    by_weight: bool = True,
) -> tuple[MonitorPlan, MonitorState]:
    rng = np.random.default_rng(seed)
    plan = plan_of(BORDER.draw(rng, CALIBRATION), class_count=CLASSES, alpha=ALPHA)
    state = initial_state(plan)
    points = traffic(rng, right, is_counted_later=is_counted_later, random_share=random_share)
    advance(plan, state, points if by_weight else unweighted(points), LEVEL)
    return plan, state


def is_lit(plan: MonitorPlan, state: MonitorState, lamp: Lamp, level: float) -> bool:
    return bool((state.games[lamp].most >= plan.needed(lamp, level)).any())


def share_lit(found: list[tuple[MonitorPlan, MonitorState]], lamp: Lamp, level: float) -> float:
    return float(np.mean([is_lit(*one, lamp, level) for one in found]))


# In all .9, the border; what the policy rejects is worse than what it admits.
GRADED = np.array([0.7] * 3 + [0.69 / 0.7] * 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "is_counted_later", "random_share"),
    [(0.9, False, 0.0), (0.9, False, 0.6), (GRADED, True, 0.6)],
    ids=["by the same", "by the same and at random", "by later and at random"],
)
def test_a_lamp_is_rarely_ever_lit_by_chance(
    right: FloatArray | float, is_counted_later: bool, random_share: float
) -> None:
    lamps, found = (Lamp.PROMISE, Lamp.TRUE_CLASSES, Lamp.PARTITIONS, Lamp.MIX), []
    draws = {(lamp, level): Draws.as_sharp_as(1_000, level) for lamp in lamps for level in LEVELS}
    for seed in until_settled(draws.values()):
        found.append(watched(seed, right, is_counted_later=is_counted_later, random_share=random_share))
        for (lamp, level), of in draws.items():
            of.add(is_lit(*found[-1], lamp, level))
    assert [of for of, one in draws.items() if not one.seldom] == []
    assert all(share_lit(found, lamp, 0.2) > 0 for lamp in lamps), "nor is any never lit"


@pytest.mark.parametrize(
    ("right", "is_counted_later", "lamps"),
    [(0.9, False, (Lamp.TRUE_CLASSES, Lamp.MIX)), (GRADED, True, (Lamp.PROMISE, Lamp.TRUE_CLASSES))],
    ids=["by the same", "by later"],
)
def test_without_weights_lamps_would_be_lit(
    right: FloatArray | float, is_counted_later: bool, lamps: tuple[Lamp, ...]
) -> None:
    """The control: in a hundred streams, these lamps are lit in more than the level of .2 allows."""
    found = [watched(seed, right, is_counted_later=is_counted_later, by_weight=False) for seed in range(100)]
    for lamp in lamps:
        assert share_lit(found, lamp, 0.2) > 0.2 + 3 * sqrt(0.2 * 0.8 / 100), lamp


@pytest.mark.parametrize("is_counted_later", [False, True])
def test_what_falls_short_is_seen(is_counted_later: bool) -> None:
    """A share right of .7, with some hundred labels of admitted points."""
    found = [watched(seed, 0.7, is_counted_later=is_counted_later) for seed in range(40)]
    assert share_lit(found, Lamp.PROMISE, LEVEL) > 0.8


def pairs(seed: int) -> LabelledPoints:
    """Drawn points of documents of two: one is always right, the other .8 right and always drawn; both are admitted."""
    rng, count = np.random.default_rng(seed), 16_000
    is_sure = np.arange(count) % 2 == 0
    is_right = rng.random(count) < np.where(is_sure, 1.0, 0.8)
    probability = np.where(is_sure, 0.1, 1.0)
    rows = np.flatnonzero(rng.random(count) < probability)
    return labelled_points(
        [f"{seed}-{row}" for row in rows],
        rows // 2,
        predicted=np.zeros(len(rows), dtype=np.int64),
        label=1 - is_right[rows],
        match_count=None,
        admitted=np.ones(len(rows), dtype=np.bool_),
        class_count=CLASSES,
        neighbour_count=None,
        seed=0,
        weight=0.1 / probability[rows],
        weight_of_admitted=0.1 / probability[rows],
        stands_alone=np.zeros(len(rows), dtype=np.bool_),
    )


def test_points_of_a_document_that_were_likelier_to_be_drawn_crowd_out_no_others() -> None:
    """One point of a document counts. Weighed, the unsure ones would count almost twice as often."""
    plan, found = plan_of(BORDER.draw(np.random.default_rng(0), CALIBRATION), class_count=CLASSES, alpha=ALPHA), []
    for seed in range(40):
        state = initial_state(plan)
        advance(plan, state, pairs(seed), LEVEL)
        found.append((plan, state))
    assert share_lit(found, Lamp.PROMISE, 0.2) <= 0.2 + 3 * sqrt(0.2 * 0.8 / 40)


@pytest.mark.parametrize(
    ("rate", "is_shared", "least", "most"), [(0.2, False, 0.0, 0.01), (0.05, False, 0.0, 0.01), (0.2, True, 0.1, 0.3)]
)
def test_copies_are_drawn_apart_or_a_lamp_would_be_lit_by_chance(
    rate: float, is_shared: bool, least: float, most: float
) -> None:
    """A twentieth of the points are copies of one, which is always wrong; all others are right."""
    count, streams, lit = 3_000, 200, 0
    calibration = of_one_class(np.zeros(200, dtype=np.int64))
    plan = plan_of(calibration, class_count=2, alpha=Decimal("0.1"), match_groups=1)
    for stream in range(streams):
        rng = np.random.default_rng(stream)
        is_copy = rng.random(count) < 0.05
        of_copy = [b"copy"] * count if is_shared else [f"copy {row}".encode() for row in range(count)]
        contents = [of_copy[row] if one else str(row).encode() for row, one in enumerate(is_copy.tolist())]
        chosen = are_drawn(rng.bytes(16), contents, np.full(count, rate))
        state = initial_state(plan)
        advance(plan, state, of_one_class(is_copy[chosen].astype(np.int64)), LEVEL)
        lit += state.games[Lamp.PROMISE].crossed[0] > 0
    assert least <= lit / streams <= most


def of_one_class(label: IntArray) -> LabelledPoints:
    """Points that are predicted to be of class 0, and admitted, in the order of their labels."""
    count = len(label)
    return labelled_points(
        [str(row) for row in range(count)],
        np.arange(count),
        predicted=np.zeros(count, dtype=np.int64),
        label=label,
        match_count=None,
        admitted=np.ones(count, dtype=np.bool_),
        class_count=2,
        neighbour_count=None,
        seed=0,
    )
