"""Monitors that older programs started go on as they were."""

import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.running import Bench
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, plan_of
from venn_admit.core.monitoring.anytime.state import advance, initial_state
from venn_admit.core.monitoring.anytime.stored import plan_document, state_document
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.store.database import schema

KEPT = (
    "SELECT id, plan::text FROM monitor",
    "SELECT documents, event, digest, state::text FROM monitor_state ORDER BY documents",
    "SELECT * FROM monitor_reading ORDER BY lamp, number",
    "SELECT id, lamp, number, label_event_id, created_at FROM monitor_alarm ORDER BY id",
)
# What the program of revision 0065 wrote of the plan and state below, and its digest of the points.
WRITTEN_AT_0065 = (
    "d7a3e17fbd1e710f65d9e23da3bb37fc",
    "1e27b2bdad42a57111260fd33971f5ae",
    "953a47ae953fb7b5e37f6ad2fe808da4",
)


def test_plans_and_states_of_classes_are_written_as_they_were() -> None:
    law = Law(right=(0.7, 0.8, 0.85, 0.9, 0.95, 0.95), size=3, together=0.4)
    plan = plan_of(law.draw(np.random.default_rng(0), 400), class_count=CLASSES, alpha=ALPHA)
    plan = replace(plan, from_starts=False, compares_sample=False)
    state, points = initial_state(plan), law.draw(np.random.default_rng(1), 200)
    advance(plan, state, points, LEVEL)
    written = (json.dumps(plan_document(plan)).encode(), json.dumps(state_document(state)).encode(), points.digest())
    assert tuple(blake2b(one, digest_size=16).hexdigest() for one in written) == WRITTEN_AT_0065


def test_a_running_monitor_goes_on(restored: Engine, tmp_path: Path) -> None:
    """One whose games start once, as the program of the first baseline had them, keeps its plan and its states."""
    schema.upgrade_engine(restored)
    bench = Bench(restored, tmp_path)

    def kept() -> list[list[tuple[Any, ...]]]:
        return [[tuple(row) for row in bench.rows(query)] for query in KEPT]

    before, name = kept(), str(bench.value("SELECT classifier FROM report.monitor_v1 LIMIT 1"))
    found = update_monitor(restored, name)
    assert (found.from_starts, found.computed) == (False, 0)
    assert kept() == before
    assert {alarm.about.lamp for alarm in found.alarms} <= {Lamp.PROMISE, Lamp.TRUE_CLASSES}
    again = update_monitor(restored, name, restart=True)
    assert (again.documents, again.from_starts) == (0, True)
