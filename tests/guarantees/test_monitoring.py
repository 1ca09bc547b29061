"""Simulated: lamps that are looked at after every label are rarely lit by chance, and harm and change are told apart.

Every stream has calibration data of its own, a finite sample from the same law. Each lamp is judged at several levels,
from the largest e-value of its games. One test looked at after every label is the control: it is lit far too often.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.guarantees.draws import Draws, until_settled
from venn_admit.core.calibrators.certification import ClassKind, GroupKind
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.calibrators.certified.points import PointGroups
from venn_admit.core.calibrators.certified.policies import GroupThresholds, Policy
from venn_admit.core.monitoring.anytime.documents import LabelledPoints
from venn_admit.core.monitoring.anytime.games import Games, excess_factors, play
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, MonitorPlan, plan_of
from venn_admit.core.monitoring.anytime.state import MonitorState, advance, initial_state

STREAMS, CALIBRATION, LABELS = 1000, 600, 600
LEVELS = (LEVEL, 0.05, 0.2)
STANDARD_ERRORS = 3.0

# At the border of the promise, where the false alarms of its lamp are most frequent.
EXCHANGEABLE = {
    "single points": Law(),
    "partitions that differ": Law(right=(0.6, 0.6, 0.85, 0.85, 0.975, 0.975)),
    "documents of eight points": Law(size=8, together=0.5),
    "documents that are right or wrong as a whole": Law(size=5, together=1.0),
}
GOOD = Law(right=(0.95,) * 6)
REGIONS = ("north", "south", "west", "islands")
OF_REGIONS = (0.4, 0.3, 0.2, 0.1)
GROUP_KINDS = (ClassKind.PREDICTED, GroupKind("group:region"), GroupKind("predicted*group:region"))
POLICY = Policy((0.5, 0.5), groups=(GroupThresholds("region", (dict.fromkeys(REGIONS, 0.5),) * 2),))


def watch(seed: int, before: Law, after: Law, labels: int = LABELS) -> tuple[MonitorPlan, MonitorState]:
    """A monitor whose calibration data come from one law, and whose traffic comes from another."""
    rng = np.random.default_rng(seed)
    documents = [max(count // law.size, 60) for count, law in ((CALIBRATION, before), (labels, after))]
    plan = plan_of(before.draw(rng, documents[0]), class_count=CLASSES, alpha=ALPHA)
    state = initial_state(plan)
    advance(plan, state, after.draw(rng, documents[1]), LEVEL)
    return plan, state


def watch_regions(seed: int, law: Law, labels: int, weak: float | None = None) -> tuple[MonitorPlan, MonitorState]:
    """The same with regions, all of which are certified; weak: how often points of the west become right."""
    rng = np.random.default_rng(seed)

    def draw(documents: int) -> LabelledPoints:
        points = law.draw(rng, documents)
        codes = np.repeat(rng.choice(len(REGIONS), documents, p=OF_REGIONS), law.size)
        return replace(points, groups=(PointGroups("region", REGIONS, codes),))

    plan = plan_of(draw(CALIBRATION // law.size), class_count=CLASSES, alpha=ALPHA, kinds=GROUP_KINDS, policy=POLICY)
    points = draw(labels // law.size)
    if weak is not None:
        wrong = rng.random(len(points.document)) >= weak
        west = points.groups[0].codes == REGIONS.index("west")
        label = np.where(wrong, 1 - points.predicted, points.predicted)
        points = replace(points, label=np.where(west, label, points.label))
    state = initial_state(plan)
    advance(plan, state, points, LEVEL)
    return plan, state


def is_lit(plan: MonitorPlan, state: MonitorState, lamp: Lamp, level: float) -> bool:
    """Whether a lamp was ever lit."""
    return bool((state.games[lamp].most >= plan.needed(lamp, level)).any())


def share_lit(watched: list[tuple[MonitorPlan, MonitorState]], lamp: Lamp, level: float) -> float:
    """The share of streams in which a lamp was ever lit."""
    return float(np.mean([is_lit(*one, lamp, level) for one in watched]))


def allowed(level: float, streams: int) -> float:
    return level + STANDARD_ERRORS * sqrt(level * (1 - level) / streams)


@pytest.mark.parametrize("law", EXCHANGEABLE.values(), ids=EXCHANGEABLE.keys())
def test_a_lamp_is_rarely_lit_by_chance(law: Law) -> None:
    lamps, watched = [lamp for lamp in Lamp if lamp.warned_of is None], []
    draws = {(lamp, level): Draws.as_sharp_as(STREAMS, level) for lamp in lamps for level in LEVELS}
    for seed in until_settled(draws.values()):
        watched.append(watch(seed, law, law))
        for (lamp, level), of in draws.items():
            of.add(is_lit(*watched[-1], lamp, level))
    assert [of for of, one in draws.items() if not one.seldom] == []
    crossed = [bool(state.games[Lamp.PROMISE].crossed.any()) for _, state in watched]
    assert np.mean(crossed) == share_lit(watched, Lamp.PROMISE, LEVEL)


@pytest.mark.parametrize("law", [Law(), Law(size=8, together=0.5)], ids=["single points", "documents"])
def test_the_lamp_of_groups_is_rarely_lit_by_chance(law: Law) -> None:
    """Where every group, and every predicted class within it, is at the border of the promise."""
    watched, draws = [], {level: Draws.as_sharp_as(STREAMS // 2, level) for level in LEVELS}
    for seed in until_settled(draws.values()):
        watched.append(watch_regions(seed, law, LABELS))
        for level, of in draws.items():
            of.add(is_lit(*watched[-1], Lamp.GROUPS, level))
    most = 3 * len(REGIONS)
    # Predicted classes within a region of few documents are not tested.
    assert all(most - 3 <= plan.games(Lamp.GROUPS) <= most for plan, _ in watched)
    assert [level for level, of in draws.items() if not of.seldom] == []
    assert share_lit(watched, Lamp.GROUPS, 0.2) > 0, "nor is it never lit"


def test_a_group_that_falls_short_is_seen_where_no_class_does() -> None:
    """The west, a fifth of the traffic, falls from .97 to .70 right; all together stay at .916 of .9."""
    watched = [watch_regions(seed, Law(right=(0.97,) * 6), 1200, weak=0.70) for seed in range(200)]
    assert share_lit(watched, Lamp.GROUPS, LEVEL) > 0.95
    for plan, state in watched:
        assert plan.groups is not None
        lit = {of.value for of, at in zip(plan.groups.classes, state.games[Lamp.GROUPS].crossed, strict=True) if at}
        assert lit <= {"west"}
    for lamp in (Lamp.PROMISE, Lamp.TRUE_CLASSES):
        assert share_lit(watched, lamp, LEVEL) <= allowed(LEVEL, 200)


def test_one_test_looked_at_after_every_label_is_lit_too_often() -> None:
    """The control: with the exact binomial test of each class at its share of the level."""
    tails = {(n, k): 1 - binomial_tail(k - 1, n, float(ALPHA)) for n in range(10, 301, 10) for k in range(1, n + 1)}
    lit = 0
    for seed in range(300):
        points = Law().draw(np.random.default_rng(seed), LABELS)
        for number in range(CLASSES):
            errors = np.cumsum(points.wrong[points.predicted == number])
            looks = range(10, min(len(errors), 300) + 1, 10)
            if any(errors[n - 1] and tails[n, int(errors[n - 1])] <= LEVEL / CLASSES for n in looks):
                lit += 1
                break
    assert lit / 300 > allowed(LEVEL, 300)


def test_a_changed_mix_alone_does_not_light_the_harmful_lamps() -> None:
    """Where the partitions differ in how often they are right, and every class stays above 1 - alpha."""
    right = (0.91, 0.91, 0.93, 0.93, 0.98, 0.98)
    before, after = Law(right=right), Law(right=right, share=(0.2, 0.2, 0.2, 0.2, 0.1, 0.1))
    watched = [watch(seed, before, after) for seed in range(300)]
    assert share_lit(watched, Lamp.MIX, LEVEL) > 0.95
    for lamp in (Lamp.PROMISE, Lamp.PARTITIONS):
        assert lamp.is_harmful()
        assert share_lit(watched, lamp, LEVEL) <= allowed(LEVEL, 300)


@pytest.mark.parametrize("law", [Law(right=(0.75,) * 6), Law(right=(0.75,) * 6, size=4, together=0.2)])
def test_harm_lights_the_harmful_lamps_and_not_that_of_the_mix(law: Law) -> None:
    watched = [
        watch(seed, GOOD if law.size == 1 else Law(right=GOOD.right, size=4, together=0.2), law) for seed in range(200)
    ]
    assert share_lit(watched, Lamp.PROMISE, LEVEL) > 0.9
    if law.size == 1:
        assert share_lit(watched, Lamp.PARTITIONS, LEVEL) > 0.9
    assert share_lit(watched, Lamp.MIX, LEVEL) <= allowed(LEVEL, 200)


def test_more_errors_before_the_promise_fails_are_seen_inside_partitions() -> None:
    watched = [watch(seed, Law(right=(0.99,) * 6), Law(right=(0.92,) * 6)) for seed in range(200)]
    assert share_lit(watched, Lamp.PARTITIONS, LEVEL) > 0.5
    assert share_lit(watched, Lamp.PROMISE, LEVEL) <= allowed(LEVEL, 200)


@pytest.mark.parametrize("law", [Law(right=(0.95,) * 6), Law(right=(0.95,) * 6, size=8, together=0.5)])
def test_the_lower_bound_holds_at_all_times(law: Law) -> None:
    """It exceeds the share right as soon as the game against that share reaches 1 / level."""
    highest = []
    for seed in range(STREAMS):
        points = law.draw(np.random.default_rng(seed), LABELS // law.size)
        right = (~points.wrong).reshape(-1, law.size).sum(axis=1)[:, None]
        largest = np.array([law.size])
        factors = excess_factors(right, np.full(right.shape, law.size), largest, 0.95)
        e_values, _ = play(Games.of(1).wealth, factors)
        highest.append(e_values.max())
    for level in (0.05, 0.5):
        assert np.mean(np.array(highest) >= 1 / level) <= allowed(level, STREAMS)
    assert np.mean(np.array(highest) >= 2) > 0.02, "the bound is not far too low either"
