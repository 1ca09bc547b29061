"""A label deadline: what counts, by SQL, against the rule in plain Python, while days go by and labels come."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Row, text

from tests.running import Bench, Golden
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports import monitor as flow
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import update_behind
from venn_admit.report.monitoring.tables import deadline_lines
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.decisions import monitors
from venn_admit.store.decisions.counted import counted_labels
from venn_admit.store.exemplars import classifiers

POINTS, SIZE, IN_DOCUMENTS, BATCH = 120, 3, 60, 20
DAYS = timedelta(days=5)
EVENTS = "SELECT id, exemplar_id, label, selection, created_at FROM label_event ORDER BY id"
DECISIONS = """
SELECT
    decision.id, exemplar_id, coalesce(document_id, external_id) AS key, label,
    decision.decision IS NOT NULL AS is_admitted, decision.created_at, now() AS read_at
FROM decision
INNER JOIN exemplar ON exemplar.id = exemplar_id
ORDER BY decision.id
"""
STATES = "SELECT documents, event, digest, state::text FROM monitor_state ORDER BY documents"

Counted = list[tuple[int, int, bool]]
"""For each point: the first decision on its document, its label, and whether it is admitted."""


def by_rule(bench: Bench, after: int) -> tuple[Counted, int]:
    """What counts, and how many points have a deadline that passed."""
    events: dict[int, list[Row[Any]]] = {}
    for event in bench.rows(EVENTS):
        events.setdefault(event.exemplar_id, []).append(event)
    rows = bench.rows(DECISIONS)
    passed = next((row.id - 1 for row in rows if row.created_at + DAYS > row.read_at), rows[-1].id)
    points = {row.exemplar_id: row for row in reversed(rows)}
    documents: dict[str, list[Row[Any]]] = {}
    for point in points.values():
        documents.setdefault(point.key, []).append(point)
    found: Counted = []
    for members in documents.values():
        first = min(members, key=lambda point: point.id)
        if after < first.id <= passed:
            for point in members:
                given = events.get(point.exemplar_id, [])
                if point.label is not None and in_time(given, point.created_at, first.created_at + DAYS):
                    found.append((first.id, point.label, point.is_admitted))
    return sorted(found), sum(after < point.id <= passed for point in points.values())


def in_time(events: list[Row[Any]], after: datetime, until: datetime) -> bool:
    """Whether the first random label since the last that was taken back came by a time; none may come too early."""
    retracted = max((event.id for event in events if event.label is None), default=0)
    random = [event for event in events if event.selection == "random"]
    first = next((event for event in random if event.id > retracted), None)
    return first is not None and first.created_at <= until and random[0].created_at > after


def by_sql(bench: Bench) -> Counted:
    with consistent_view(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        monitor = monitors.newest(connection, calibrations.latest(connection, classifier))
        assert monitor is not None
        labels = counted_labels(connection, classifier, monitor, from_place=monitor.before_first)
    places = labels.places[labels.points.document].tolist()
    return sorted(zip(places, labels.points.label.tolist(), labels.points.admitted.tolist(), strict=True))


def pass_days(bench: Bench, days: float) -> None:
    """Everything becomes older."""
    with transaction(bench.engine) as connection:
        for table in ("decision", "label_event"):
            connection.execute(text(f"UPDATE {table} SET created_at = created_at - :time"), {"time": timedelta(days)})


def score(bench: Bench, rows: range) -> None:
    """Decide on points, of which the first are in documents; some of a document before the others."""
    golden = Golden("edge")
    arrays = {name: values[rows] for name, values in golden.exemplars("score").items()}
    arrays |= {"id": np.array([f"p-{row}" for row in rows]), "y": np.full(len(rows), -1)}
    arrays["doc"] = np.array([f"doc-{row // SIZE}" if row < IN_DOCUMENTS else f"alone-{row}" for row in rows])
    bench.score("edge", bench.write("some.npz", arrays), weighted=False)


def give(bench: Bench, rng: np.random.Generator, most: int) -> None:
    rows = rng.choice(most, min(most, 25), replace=False).tolist()
    numbers = rng.integers(0, 3, POINTS) - 3 * (rng.random(POINTS) < 0.1)
    path = bench.folder / "labels.csv"
    lines = [f"p-{row},{'' if numbers[row] < 0 else numbers[row]}" for row in rows]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    label(bench.engine, "edge", LabelFile(path), selection="random" if rng.random() < 0.8 else "selected", retract=True)


def test_documents_count_once_their_deadline_has_passed(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "STATE_DOCUMENTS", 10)
    rng, sizes, after = np.random.default_rng(0), [], 0
    update_monitor(edge.engine, "edge", label_deadline=DAYS)
    for number in range(16):
        if number == 9:
            after = edge.value("SELECT max(id) FROM decision")
            assert update_monitor(edge.engine, "edge", restart=True).documents == 0
            score(edge, range(POINTS - 2 * BATCH, POINTS))  # the first of these were decided on before
        most = min((number + 1) * BATCH, POINTS - BATCH if number < 9 else POINTS)
        if number * BATCH < most:
            score(edge, range(number * BATCH, most))
        give(edge, rng, most)
        pass_days(edge, rng.choice([0.0, 1.0, 2.0]))
        found = update_monitor(edge.engine, "edge")
        counted, decided = by_rule(edge, after)
        assert by_sql(edge) == counted
        assert found.points == len(counted)
        assert found.deadline is not None
        assert found.deadline.decided == decided
        sizes.append(len(counted))
    assert max(sizes) > 40
    assert 0 < sizes[-1] <= BATCH


def test_what_is_stored_is_what_the_ledger_alone_gives(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Monitors are behind once a deadline has passed, and labels that come later change nothing."""
    monkeypatch.setattr(flow, "STATE_DOCUMENTS", 10)
    rng = np.random.default_rng(1)
    started = update_monitor(edge.engine, "edge", label_deadline=DAYS)
    assert deadline_lines(started)[0].endswith("by labels within 5 days: no deadline has passed yet.")
    for first in range(0, POINTS, BATCH):
        score(edge, range(first, first + BATCH))
        give(edge, rng, first + BATCH)
        update_behind(edge.engine, None)
        assert update_behind(edge.engine, None) == []
        pass_days(edge, 2.0)
        assert update_behind(edge.engine, None) == (["edge"] if first >= 2 * BATCH else [])
    found, before = update_monitor(edge.engine, "edge"), edge.rows(STATES)
    assert (found.monitor, found.computed) == (started.monitor, 0)
    assert found.documents > 20
    give(edge, rng, BATCH)
    after = update_monitor(edge.engine, "edge")
    assert after.documents <= found.documents, "labels are changed or taken back, and none is added"
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql("DELETE FROM monitor_state")
    states = edge.rows(STATES)
    again = update_monitor(edge.engine, "edge")
    assert states == [] != before
    assert again.readings == after.readings
    assert again.computed == again.documents


def test_a_deadline_is_fixed_when_a_monitor_is_started(edge: Bench) -> None:
    assert update_monitor(edge.engine, "edge").deadline is None
    with pytest.raises(InvalidInputError, match=r"monitor 1 was started with, none, got 5 days"):
        update_monitor(edge.engine, "edge", label_deadline=DAYS)
    begun = update_monitor(edge.engine, "edge", restart=True, label_deadline=DAYS)
    again = update_monitor(edge.engine, "edge", restart=True)
    for found in (begun, again, update_monitor(edge.engine, "edge", label_deadline=DAYS)):
        assert found.deadline is not None
        assert found.deadline.time == DAYS
    assert again.monitor > begun.monitor
    assert update_monitor(edge.engine, "edge", restart=True, label_deadline=timedelta(0)).deadline is None
