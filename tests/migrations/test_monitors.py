"""Monitors that were running at revision 0065, before groups were watched, go on bit for bit."""

import json
from dataclasses import replace
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic import command

from tests.conftest import fresh_engine
from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.flows.logits import NAME, calibrated, exemplars, make
from tests.migrations.migrating import move
from tests.running import Bench
from venn_admit.core.monitoring.anytime.documents import LabelledPoints
from venn_admit.core.monitoring.anytime.plan import EARLY, LEVEL, Lamp, MonitorPlan, plan_of
from venn_admit.core.monitoring.anytime.state import advance, initial_state
from venn_admit.core.monitoring.anytime.stored import plan_document, state_document
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.store.decisions import monitored

ROWS = 400
TRAFFIC = exemplars("traffic", ROWS, seed=2)
KEPT = (
    "SELECT id, plan::text, settled_event, seen_event FROM monitor",
    "SELECT documents, event, digest, state::text FROM monitor_state ORDER BY documents",
    "SELECT * FROM monitor_reading ORDER BY lamp, number",
    "SELECT id, lamp, number, label_event_id, created_at FROM monitor_alarm ORDER BY id",
)
SHOWN = "SELECT lamp, class_name, labels, e_value, is_lit, is_harmful FROM report.monitor_v1 ORDER BY lamp, class_name"
# What the program of revision 0065 wrote of the plan and state below, and its digest of the points.
WRITTEN_AT_0065 = (
    "d7a3e17fbd1e710f65d9e23da3bb37fc",
    "1e27b2bdad42a57111260fd33971f5ae",
    "953a47ae953fb7b5e37f6ad2fe808da4",
)


def test_plans_and_states_of_classes_are_written_as_they_were() -> None:
    law = Law(right=(0.7, 0.8, 0.85, 0.9, 0.95, 0.95), size=3, together=0.4)
    plan = plan_of(law.draw(np.random.default_rng(0), 400), class_count=CLASSES, alpha=ALPHA)
    plan = replace(plan, from_starts=False)
    state, points = initial_state(plan), law.draw(np.random.default_rng(1), 200)
    advance(plan, state, points, LEVEL)
    written = (json.dumps(plan_document(plan)).encode(), json.dumps(state_document(state)).encode(), points.digest())
    assert tuple(blake2b(one, digest_size=16).hexdigest() for one in written) == WRITTEN_AT_0065


@pytest.fixture
def of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Monitors are started as they were before their games started again with every document."""

    def plan_of_before(*points: LabelledPoints, **rest: Any) -> MonitorPlan:
        return replace(plan_of(*points, **rest), from_starts=False)

    monkeypatch.setattr(monitored, "plan_of", plan_of_before)


@pytest.mark.usefixtures("of_before")
def test_a_running_monitor_goes_on(server_url: str, template_database: str, tmp_path: Path) -> None:
    """One whose database was at 0065 between two updates says in the end what one says whose database was not."""
    said = []
    for back in (True, False):
        with fresh_engine(server_url, template_database) as engine:
            said.append(watched(Bench(engine, tmp_path), back=back))
    assert said[0] == said[1]


def test_a_monitor_with_early_warnings_becomes_one_without(
    server_url: str, template_database: str, tmp_path: Path
) -> None:
    """If its database goes back to 0072: its games start once, and are played again from the labels."""
    with fresh_engine(server_url, template_database) as engine:
        bench = Bench(engine, tmp_path)
        start(bench)
        give(bench, range(200))
        lamps = {alarm.about.lamp for alarm in update_monitor(bench.engine, NAME).alarms}
        assert {Lamp.PROMISE, Lamp.EARLY_PROMISE} <= lamps
        move(bench.engine, "0072", command.downgrade)
        assert {row.lamp for row in bench.rows("SELECT lamp FROM monitor_alarm")} == lamps - set(EARLY.values())
        move(bench.engine, "head", command.upgrade)
        found = update_monitor(bench.engine, NAME)
        assert found.computed == found.documents
        assert {alarm.about.lamp for alarm in found.alarms} == lamps - set(EARLY.values())
        again = update_monitor(bench.engine, NAME, restart=True)
        assert (again.documents, again.from_starts) == (0, True)


def start(bench: Bench) -> None:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    calibrated(bench, alpha=Decimal("0.2"))
    bench.score(NAME, bench.write("traffic.npz", TRAFFIC | {"y": np.full(ROWS, -1)}), weighted=None)


def give(bench: Bench, some: range) -> None:
    """Give points labels of which most differ from what is predicted."""
    wrong, path = (TRAFFIC["y"] + 1) % 3, bench.folder / "labels.csv"
    path.write_text("\n".join(["external_id,label", *(f"traffic-{row},{wrong[row]}" for row in some)]) + "\n")
    label(bench.engine, NAME, LabelFile(path), selection="random", retract=False)


def watched(bench: Bench, *, back: bool) -> list[list[tuple[Any, ...]]]:
    """The states and figures of a monitor after two updates; back: whether the database is at 0065 between them."""

    def kept() -> list[list[tuple[Any, ...]]]:
        return [[tuple(row) for row in bench.rows(query)] for query in KEPT]

    start(bench)
    give(bench, range(200))
    assert update_monitor(bench.engine, NAME).harmful
    before, shown = kept(), bench.rows(SHOWN)
    assert all(before)
    if back:
        for revision, direction in (("0065", command.downgrade), ("head", command.upgrade)):
            move(bench.engine, revision, direction)
            assert kept() == before
            assert bench.rows(SHOWN) == shown
    assert update_monitor(bench.engine, NAME).computed == 0
    give(bench, range(200, ROWS))
    assert update_monitor(bench.engine, NAME).computed == 100, "it goes on from where it was"
    return kept()[1:3]
