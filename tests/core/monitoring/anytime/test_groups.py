"""The lamp of groups: what is watched of a certificate's groups, against own loops; and states of classes stay."""

from collections import defaultdict
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.core.monitoring.anytime.starts import mixture_and_sum
from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind, PromisedClass
from venn_admit.core.calibrators.certified.points import groups_of
from venn_admit.core.calibrators.certified.policies import GroupThresholds, Policy
from venn_admit.core.monitoring.anytime.documents import LabelledPoints
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, MonitorPlan, plan_of
from venn_admit.core.monitoring.anytime.readings import readings
from venn_admit.core.monitoring.anytime.state import MonitorState, advance, initial_state
from venn_admit.core.monitoring.anytime.stored import plan_document, plan_of_document, state_document, state_of_document

LAW = Law(right=(0.7, 0.8, 0.85, 0.9, 0.95, 0.95), size=3, together=0.4)
REGION, WITHIN, FLOOR = (GroupKind(text) for text in ("group:region", "predicted*group:region", "group:floor"))
KINDS: tuple[Kind, ...] = (ClassKind.PREDICTED, FLOOR, REGION, WITHIN)
REGIONS, FLOORS = ("north", "south", "west"), ("0", "1")
CERTIFIED = Policy(
    (0.5, 0.5),
    groups=(
        GroupThresholds("floor", ({"0": 0.5}, {"0": 0.6})),
        GroupThresholds("region", ({"north": 0.5, "west": 0.7}, {"north": 0.5})),
    ),
)


def with_groups(
    points: LabelledPoints, seed: int, *, known: bool = True
) -> tuple[LabelledPoints, dict[str, list[str]]]:
    """Points of regions, few of which are the west, and of floors; unless all are known, some are of other regions."""
    rng, count = np.random.default_rng(seed), len(points.document)
    regions = REGIONS if known else (*REGIONS, "east")
    drawn = {
        "floor": rng.choice(FLOORS, count).tolist(),
        "region": rng.choice(regions, count, p=[0.6, 0.385, 0.015] if known else [0.5, 0.335, 0.015, 0.15]).tolist(),
    }
    groups = tuple(groups_of(name, drawn[name], values) for name, values in (("floor", FLOORS), ("region", REGIONS)))
    return replace(points, groups=groups), drawn


def plan(kinds: tuple[Kind, ...] = KINDS, policy: Policy | None = CERTIFIED) -> MonitorPlan:
    calibration, _ = with_groups(LAW.draw(np.random.default_rng(0), 400), 0)
    return plan_of(calibration, class_count=CLASSES, alpha=ALPHA, kinds=kinds, policy=policy)


def after(made: MonitorPlan, points: LabelledPoints, cuts: tuple[int, ...] = ()) -> MonitorState:
    state = initial_state(made)
    for first, end in zip((0, *cuts), (*cuts, points.document_count), strict=True):
        advance(made, state, points.take(first, end), LEVEL)
        state = state_of_document(state_document(state), made)
    return state


def test_the_groups_of_the_calibration_data_are_planned() -> None:
    calibration, drawn = with_groups(LAW.draw(np.random.default_rng(0), 400), 0)
    found = plan().groups
    assert found is not None
    counts: dict[PromisedClass, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row, (document, predicted) in enumerate(zip(calibration.document, calibration.predicted, strict=True)):
        floor, region = drawn["floor"][row], drawn["region"][row]
        for of in (
            PromisedClass(FLOOR, None, floor),
            PromisedClass(REGION, None, region),
            PromisedClass(WITHIN, int(predicted), region),
        ):
            counts[of][int(document)] += 1
    assert set(found.classes) == set(counts)
    assert found.kinds == (FLOOR, REGION, WITHIN)
    assert found.values == {"floor": FLOORS, "region": REGIONS}
    assert found.largest.tolist() == [max(counts[of].values()) for of in found.classes]
    assert found.documents.tolist() == [len(counts[of]) for of in found.classes]
    certified = {of for of, is_certified in zip(found.classes, found.certified, strict=True) if is_certified}
    assert certified == {
        PromisedClass(FLOOR, None, "0"),
        PromisedClass(REGION, None, "north"),
        PromisedClass(REGION, None, "west"),
        PromisedClass(WITHIN, 0, "north"),
        PromisedClass(WITHIN, 1, "north"),
        PromisedClass(WITHIN, 0, "west"),
    }
    rare = PromisedClass(WITHIN, 1, "west")
    assert len(counts[rare]) < 30, "it is neither certified nor frequent"
    assert [of for of, tested in zip(found.classes, found.tested, strict=True) if not tested] == [rare]
    assert plan().games(Lamp.GROUPS) == len(counts) - 1


def test_rows_are_those_of_an_own_loop() -> None:
    points, drawn = with_groups(Law(right=(0.8,) * 6, size=4, together=0.3).draw(np.random.default_rng(1), 300), 1)
    points.admitted[:] = np.random.default_rng(2).random(len(points.admitted)) < 0.8
    made = plan()
    assert made.groups is not None
    place = {of: number for number, of in enumerate(made.groups.classes)}
    found = readings(made, after(made, points))
    rows = {(row.about.lamp, row.about.of): row for row in found}
    needed = {Lamp.GROUPS: made.games(Lamp.GROUPS) / LEVEL, Lamp.EARLY_GROUPS: 20_000}
    for of, number in place.items():
        largest = int(made.groups.largest[number])
        gains, numbers, counted, right = [], [], 0, 0
        for document in range(points.document_count):
            inside = [
                row
                for row in np.flatnonzero(points.document == document).tolist()
                if points.admitted[row]
                and of.value == drawn["floor" if of.kind == FLOOR else "region"][row]
                and of.number in (None, int(points.predicted[row]))
            ][:largest]
            wrong = sum(bool(points.wrong[row]) for row in inside)
            counted, right = counted + len(inside), right + len(inside) - wrong
            if inside:
                gains.append((wrong / float(ALPHA) - len(inside)) / largest)
                numbers.append(document)
        mixtures, sums, starts = mixture_and_sum(gains, numbers)
        for lamp, values in ((Lamp.GROUPS, mixtures), (Lamp.EARLY_GROUPS, sums)):
            row = rows[lamp, of]
            assert (row.points, row.right, row.needed) == (counted, right, needed[lamp])
            if not made.groups.tested[number]:
                assert (row.lit_at, row.e_value, row.most) == (None, None, None)
                continue
            first = next((at for at, value in enumerate(values) if value >= needed[lamp]), None)
            assert row.lit_at == (None if first is None else numbers[first] + 1)
            assert row.e_value == pytest.approx(values[-1], rel=1e-10)
            assert row.most == pytest.approx(max(*values, 1.0 if lamp is Lamp.GROUPS else 0.0), rel=1e-10)
            if first is not None and lamp is Lamp.EARLY_GROUPS:
                assert row.since == 1 + round(starts[first])
    for lamp in needed:
        assert {row.lit_at is None for row in found if row.about.lamp is lamp} == {True, False}


def test_batches_and_storage_do_not_show() -> None:
    points, _ = with_groups(LAW.draw(np.random.default_rng(3), 200), 3)
    made = plan_of_document(plan_document(plan()))
    assert plan_document(made) == plan_document(plan())
    assert state_document(after(made, points, (1, 77, 120))) == state_document(after(plan(), points))


def test_a_monitor_without_groups_is_stored_as_before_they_were_watched() -> None:
    """And what it says of classes and partitions does not depend on groups."""
    points, _ = with_groups(LAW.draw(np.random.default_rng(4), 200), 4)
    without, made = (
        replace(plan(kinds), from_starts=False, compares_sample=False) for kinds in ((ClassKind.PREDICTED,), KINDS)
    )
    assert plan_document(without).keys() == {
        "class_count",
        "alpha",
        "largest_predicted",
        "largest_true",
        "largest_partition",
        "documents",
        "wrong",
    }
    alone, beside = state_document(after(without, replace(points, groups=()))), state_document(after(made, points))
    assert alone["games"].keys() == {"promise", "true_classes", "partitions", "mix"}
    assert beside.keys() - alone.keys() == {"groups", "unknown"}
    assert {name: beside[name] for name in alone if name != "games"} == {
        name: value for name, value in alone.items() if name != "games"
    }
    assert {lamp: beside["games"][lamp] for lamp in alone["games"]} == alone["games"]


def test_values_that_are_not_known_count_in_no_group() -> None:
    points, drawn = with_groups(LAW.draw(np.random.default_rng(5), 200), 5, known=False)
    made = plan()
    state = after(made, points, (50,))
    assert state.unknown.tolist() == [0, drawn["region"].count("east")]
    of_groups = [row for row in readings(made, state) if row.about.lamp is Lamp.GROUPS]
    of_regions = [row for row in of_groups if row.about.of.kind == REGION]
    assert sum(row.points for row in of_regions) == len(points.document) - drawn["region"].count("east")


def test_a_digest_covers_groups() -> None:
    points, _ = with_groups(LAW.draw(np.random.default_rng(6), 20), 6)
    changed = replace(points, groups=tuple(replace(of, codes=of.codes.copy()) for of in points.groups))
    changed.groups[1].codes[-1] = -1
    assert points.digest() != changed.digest()
    assert points.take(0, 19).digest() == changed.take(0, 19).digest()
    assert replace(points, groups=()).digest() != points.digest()


def test_a_promise_for_groups_makes_their_lamp_an_alarm() -> None:
    assert Lamp.GROUPS.is_harmful(KINDS)
    assert not Lamp.GROUPS.is_harmful(tuple(ClassKind))
    assert (
        plan_of(
            with_groups(LAW.draw(np.random.default_rng(0), 40), 0)[0], class_count=CLASSES, alpha=Decimal("0.1")
        ).games(Lamp.GROUPS)
        == 1
    )
