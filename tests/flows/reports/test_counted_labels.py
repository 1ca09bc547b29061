"""The labels that count, by SQL, against the rule in plain Python on the whole ledger, after random events."""

from typing import Any

import numpy as np
from sqlalchemy import Row

from tests.running import Bench, Golden
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import monitors
from venn_admit.store.decisions.counted import counted_labels
from venn_admit.store.exemplars import classifiers

POINTS, LATER, EARLY, IN_DOCUMENTS, SIZE = 120, 40, 60, 90, 3
ROUNDS, ANOTHER_SNAPSHOT, START_ANEW = 24, 8, 16
EVENTS = "SELECT id, exemplar_id, label, selection, created_at FROM label_event ORDER BY id"
EXEMPLARS = """
SELECT id, coalesce(document_id, external_id) AS key, document_id, label FROM exemplar WHERE external_id LIKE 'p-%'
"""
DECISIONS = "SELECT id, exemplar_id, decision, created_at FROM decision ORDER BY id"

Counted = list[tuple[int, int, bool]]
"""For each point: the label event by which its document counts, its label, and whether it is admitted."""


def by_rule(bench: Bench, after_event: int, after_decision: int) -> Counted:
    events: dict[int, list[Row[Any]]] = {}
    for event in bench.rows(EVENTS):
        events.setdefault(event.exemplar_id, []).append(event)
    documents: dict[str, list[Row[Any]]] = {}
    for exemplar in bench.rows(EXEMPLARS):
        documents.setdefault(exemplar.key, []).append(exemplar)
    decisions = bench.rows(DECISIONS)
    found = []
    for members in documents.values():
        drawn = [event for one in members for event in events.get(one.id, []) if event.selection == "random"]
        if members[0].document_id is not None and any(event.id <= after_event for event in drawn):
            continue
        ids = {one.id for one in members}
        if any(made.id <= after_decision for made in decisions if made.exemplar_id in ids):
            continue
        labelled = [(first_draw(events.get(one.id, [])), one) for one in members if one.label is not None]
        counting = [(event, one) for event, one in labelled if event is not None and event.id > after_event]
        if not counting:
            continue
        first = min((event for event, _ in counting), key=lambda event: event.id)
        for event, one in counting:
            earliest = min(event.created_at for event in events[one.id] if event.selection == "random")
            before = [made for made in decisions if made.exemplar_id == one.id and made.created_at < earliest]
            if event.created_at == first.created_at and before:
                found.append((first.id, one.label, before[0].decision is not None))
    return sorted(found)


def first_draw(events: list[Row[Any]]) -> Row[Any] | None:
    """The first random label since the last one that was taken back."""
    retracted = max((event.id for event in events if event.label is None), default=0)
    return next((event for event in events if event.selection == "random" and event.id > retracted), None)


def both(bench: Bench) -> tuple[Counted, Counted]:
    """Counted by SQL, and by the rule."""
    with consistent_view(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        monitor = monitors.newest(connection, calibrations.latest(connection, classifier))
        assert monitor is not None
        labels = counted_labels(connection, classifier, monitor, from_place=monitor.after_event)
    events = labels.events[labels.points.document]
    columns = (events.tolist(), labels.points.label.tolist(), labels.points.admitted.tolist())
    return sorted(zip(*columns, strict=True)), by_rule(bench, monitor.after_event, monitor.after_decision)


def give(bench: Bench, rng: np.random.Generator, points: int) -> None:
    """Labels of some points and whole documents, new or other ones or none, random or selected."""
    rows = set(rng.choice(points, rng.integers(1, 12), replace=False).tolist())
    for document in rng.choice(IN_DOCUMENTS // SIZE, 4, replace=False).tolist():
        rows |= set(range(document * SIZE, (document + 1) * SIZE))
    numbers = rng.integers(0, 3, points) - 3 * (rng.random(points) < 0.15)
    path = bench.folder / "labels.csv"
    lines = [f"p-{row},{'' if numbers[row] < 0 else numbers[row]}" for row in sorted(rows)]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    selection = "random" if rng.random() < 0.7 else "selected"
    label(bench.engine, "edge", LabelFile(path), selection=selection, retract=True)


def test_the_labels_that_count_follow_the_rule(edge: Bench) -> None:
    """With decisions by two snapshots, of which the second calibrates with labels of the first, and a fresh start.

    After that, further points are decided on, and those of before are once more.
    """
    golden, rng = Golden("edge"), np.random.default_rng(0)
    every = POINTS + LATER
    in_documents = {*range(IN_DOCUMENTS), *range(POINTS, POINTS + LATER // 2)}
    documents = [f"doc-{row // SIZE}" if row in in_documents else f"alone-{row}" for row in range(every)]
    arrays = {name: values[:every] for name, values in golden.exemplars("score").items()}
    arrays |= {"id": np.array([f"p-{row}" for row in range(every)]), "y": np.full(every, -1)}
    arrays["doc"] = np.array(documents)
    first, rest, late = (
        {name: values[rows] for name, values in arrays.items()}
        for rows in (slice(POINTS), slice(EARLY, POINTS), slice(EARLY, None))
    )
    for require_full_match in (False, True):  # the first of the two counts
        edge.score("edge", edge.write("first.npz", first), weighted=False, require_full_match=require_full_match)
    sizes, verdicts = [], set()
    for number in range(ROUNDS):
        if number == ANOTHER_SNAPSHOT:
            edge.calibrate("edge", **golden.settings)
            edge.score("edge", edge.write("rest.npz", rest))
        update_monitor(edge.engine, "edge", restart=number == START_ANEW)
        if number == START_ANEW:
            edge.score("edge", edge.write("late.npz", late))
        give(edge, rng, every if number >= START_ANEW else POINTS)
        counted, expected = both(edge)
        assert counted == expected
        sizes.append(len(counted))
        verdicts |= {admitted for _, _, admitted in counted}
    assert max(sizes[:ANOTHER_SNAPSHOT]) > 30
    assert sizes[-1] > 0
    assert verdicts == {True, False}
