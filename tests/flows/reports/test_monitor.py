"""The monitor through the flows: the same as from scratch whatever became of the labels, for all classifiers."""

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import fresh_engine
from tests.flows import logits
from tests.patience import wait_until
from tests.running import EXAMPLES, Arrays, Bench
from tests.templates import CopyOf, Filled, reviews_of
from venn_admit.cli.advice import command
from venn_admit.core.monitoring.anytime.plan import EARLY, OF_SAMPLE, Lamp, Watched
from venn_admit.errors import DatabaseError, NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.audits import set_audits
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.label import label
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reports import monitor as flow
from venn_admit.flows.reports.lit_lamps import lit_lamps
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import update_behind
from venn_admit.flows.reports.report import report
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.sections import TextTable
from venn_admit.report.calibration.wording import sections
from venn_admit.report.monitoring.payload import monitor_payload
from venn_admit.report.monitoring.report import MonitorReport
from venn_admit.report.monitoring.tables import verdict_lines
from venn_admit.store.database.engine import transaction
from venn_admit.store.decisions import alarms, counted, monitors
from venn_admit.store.decisions.counted import CountedLabels

REPOSITORY = Path(__file__).parents[3]
POINTS = 1200
SIZE = 3
IDS = tuple(f"film-{row}" for row in range(POINTS))
STATES = """
SELECT documents, event, digest, state::text AS state FROM monitor_state
WHERE monitor_id = :monitor_id ORDER BY documents
"""
READINGS = "SELECT * FROM monitor_reading WHERE monitor_id = :monitor_id ORDER BY lamp, number"
STANDING = """
SELECT lamp, number, label_event_id FROM monitor_alarm WHERE monitor_id = :monitor_id AND ended_at IS NULL ORDER BY 1, 2
"""
WAITING_TO_WRITE_ALARMS = """
SELECT pid FROM pg_stat_activity
WHERE
    datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE monitor_alarm%'
    AND backend_xid IS NOT NULL
"""
UPDATE = """
import sys
from venn_admit.flows.reports import monitor
from venn_admit.store.database.engine import create_engine
monitor.STATE_DOCUMENTS = 100
monitor.update_monitor(create_engine(sys.argv[1]), "reviews")
"""


@cache
def films() -> Arrays:
    with np.load(EXAMPLES / "valid.npz") as valid:
        return {name: valid[name][-POINTS:] for name in ("r", "f", "y")} | {"id": np.array(IDS)}


@cache
def truth() -> dict[str, int]:
    return dict(zip(IDS, films()["y"].tolist(), strict=True))


def write(bench: Bench, file: str, arrays: Arrays) -> Path:
    """Write a file of exemplars, without vectors if the classifier has logits only."""
    has_vectors = bench.value("SELECT dimension IS NOT NULL FROM classifier WHERE name = 'reviews'")
    return bench.write(file, {name: values for name, values in arrays.items() if name != "r" or has_vectors})


def score(bench: Bench) -> None:
    bench.score("reviews", write(bench, "films.npz", films() | {"y": np.full(POINTS, -1)}), weighted=None)


def make_logits_only(bench: Bench) -> None:
    logits.make(bench, "reviews", class_count=2)
    with np.load(EXAMPLES / "valid.npz") as valid:
        held_out = bench.write("valid.npz", {name: valid[name][:3000] for name in ("f", "y")})
    bench.ingest("reviews", held_out, "held-out")


@dataclass(frozen=True)
class Kind:
    """How a classifier is made, and how it is calibrated, once more too."""

    make: Callable[[Bench], object]
    calibrate: Callable[[Bench], object]


KINDS = {
    "venn-admit": Kind(reviews_of(3000), lambda bench: bench.calibrate("reviews", kappa=100)),
    "venn-abers": Kind(reviews_of(3000), lambda bench: bench.calibrate_abers("reviews", score="network")),
    "logits only": Kind(make_logits_only, lambda bench: logits.calibrated(bench, "reviews", alpha=Decimal("0.1"))),
}
KIND = """
SELECT CASE WHEN dimension IS NULL THEN 'logits only' ELSE method END
FROM calibrator
INNER JOIN classifier ON classifier.id = classifier_id
ORDER BY chosen_at DESC
LIMIT 1
"""


def calibrate_again(bench: Bench) -> None:
    KINDS[bench.value(KIND)].calibrate(bench)


without_vectors = pytest.mark.parametrize("template", ["logits only"], indirect=True)
"""For what depends on labels and decisions alone."""


@pytest.fixture(scope="module", params=KINDS)
def template(request: pytest.FixtureRequest, filled: Filled) -> str:
    """The name of a database with scored films, of each kind."""
    kind = KINDS[request.param]
    return filled(score, filled(kind.calibrate, filled(kind.make)))


@pytest.fixture
def scored(server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with fresh_engine(server_url, template) as engine:
        yield Bench(engine, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def watched(server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """With labels, figures and alarms; to be left as it is."""
    with fresh_engine(server_url, template) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("watched"))
        give(bench, flipped(range(300)))
        assert look(bench).harmful
        yield bench


def give(bench: Bench, labels: Mapping[str, int | None], *, selection: str = "random", retract: bool = False) -> None:
    path = bench.folder / "labels.csv"
    lines = [f"{external_id},{'' if number is None else number}" for external_id, number in labels.items()]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    label(bench.engine, "reviews", LabelFile(path), selection=selection, retract=retract)


def of(rows: Iterable[int]) -> dict[str, int]:
    known = truth()
    return {IDS[row]: known[IDS[row]] for row in rows}


def flipped(rows: Iterable[int]) -> dict[str, int]:
    return {external_id: 1 - number for external_id, number in of(rows).items()}


def in_order(bench: Bench) -> list[int]:
    """The films that were labelled, in the order in which they count."""
    query = """
    SELECT external_id FROM label_event INNER JOIN exemplar ON exemplar.id = exemplar_id
    WHERE external_id LIKE 'film-%' GROUP BY external_id ORDER BY min(label_event.id)
    """
    return [IDS.index(row.external_id) for row in bench.rows(query)]


def look(bench: Bench) -> MonitorReport:
    return update_monitor(bench.engine, "reviews")


def stored(bench: Bench, monitor_id: int) -> list[list[tuple[Any, ...]]]:
    """Everything that an update writes, except when it did."""
    return [[tuple(row) for row in bench.rows(query, monitor_id=monitor_id)] for query in (STATES, READINGS, STANDING)]


def assert_as_from_scratch(bench: Bench) -> MonitorReport:
    """What is stored after all that happened is what a computation from the ledger alone stores."""
    found = look(bench)
    before = stored(bench, found.monitor)
    with transaction(bench.engine) as connection:
        for table in ("monitor_state", "monitor_reading", "monitor_alarm"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    again = look(bench)
    assert again.computed == again.documents
    assert stored(bench, again.monitor) == before
    assert again.readings == found.readings
    return again


@pytest.fixture(autouse=True)
def few_documents_between_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "STATE_DOCUMENTS", 100)


def test_labels_are_counted_as_they_come(scored: Bench) -> None:
    assert look(scored).documents == 0
    give(scored, of(range(250)))
    first = look(scored)
    assert (first.documents, first.points, first.computed) == (250, 250, 250)
    give(scored, of(range(250, 320)))
    second = look(scored)
    assert (second.documents, second.computed) == (320, 70)
    assert look(scored).computed == 0
    assert second.monitor == first.monitor
    assert [row.documents for row in scored.rows("SELECT documents FROM monitor_state ORDER BY 1")] == [
        100,
        200,
        300,
        320,
    ]
    assert_as_from_scratch(scored)


def test_an_update_reads_what_is_new(scored: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a state after every hundred documents: those since the last of them that is as it was."""
    read: list[int] = []
    counted_labels = counted.counted_labels

    def counting(*given: Any, **more: Any) -> CountedLabels:
        found = counted_labels(*given, **more)
        read.append(found.points.document_count)
        return found

    monkeypatch.setattr(counted, "counted_labels", counting)
    for rows in (range(430), range(430, 431)):
        give(scored, of(rows))
        look(scored)
    give(scored, flipped(in_order(scored)[250:251]))
    look(scored)
    look(scored)
    assert read == [430, 31, 231, 31]
    assert_as_from_scratch(scored)


@without_vectors
def test_labels_and_decisions_of_transactions_that_end_later_count(scored: Bench) -> None:
    """One began before the labels that were read; it adds an earlier label and a decision from before a label."""
    of_film = "SELECT id FROM exemplar WHERE external_id = :external_id"
    drop, keep = (scored.value(of_film, external_id=IDS[row]) for row in (299, 300))
    columns = "calibration_id, exemplar_id, weighted, require_full_match, support_version, predicted, match_count, "
    columns += "distance, logits, upweight, lower, upper, decision, reason, created_at"
    with transaction(scored.engine) as connection:
        connection.exec_driver_sql(f"CREATE TABLE kept AS SELECT {columns} FROM decision WHERE exemplar_id = {drop}")
        connection.exec_driver_sql(f"DELETE FROM decision WHERE exemplar_id = {drop}")
    with transaction(scored.engine) as late:
        late.exec_driver_sql(
            "INSERT INTO label_event (exemplar_id, label, selection, source) "
            f"VALUES ({keep}, {truth()[IDS[300]]}, 'random', 'late')"
        )
        late.exec_driver_sql(f"INSERT INTO decision ({columns}) SELECT {columns} FROM kept")
        late.exec_driver_sql(f"UPDATE exemplar SET label = {truth()[IDS[300]]} WHERE id = {keep}")
        give(scored, of(range(300)))
        assert look(scored).documents == 299
        assert update_behind(scored.engine, None) == ["reviews"], "what is not settled is read again"
    assert update_behind(scored.engine, None) == ["reviews"]
    assert update_behind(scored.engine, None) == []
    assert assert_as_from_scratch(scored).documents == 301


def test_a_row_counts_admitted_labels(scored: Bench) -> None:
    give(scored, of(range(600)))
    found = look(scored)
    counts = scored.rows(
        "SELECT decision.decision AS number, count(*) AS points, count(*) FILTER (WHERE decision = label) AS correct "
        "FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id "
        "WHERE decision.decision IS NOT NULL AND label IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    rows = [reading for reading in found.readings if reading.about.lamp is Lamp.PROMISE]
    assert [(row.about.number, row.points, row.right) for row in rows] == [tuple(row) for row in counts]
    for row in rows:
        assert row.lower_bound is not None
        assert row.share_right is not None
        assert 0.5 < row.lower_bound < row.share_right
    partitions = [reading.points for reading in found.readings if reading.about.lamp is Lamp.PARTITIONS]
    assert sum(partitions) == sum(row.points for row in rows)
    assert sum(reading.documents for reading in found.readings if reading.about.lamp is Lamp.MIX) <= 600


@without_vectors
def test_selected_labels_and_those_that_came_before_the_decision_do_not_count(scored: Bench) -> None:
    give(scored, of(range(50)), selection="selected")
    assert look(scored).documents == 0
    give(scored, of(range(50)))
    assert look(scored).documents == 50, "the same points, drawn at random after all"
    give(scored, flipped(range(10)), selection="selected")
    assert look(scored).documents == 50, "a correction by a person changes the label alone"
    with np.load(EXAMPLES / "valid.npz") as valid:
        held_out = write(scored, "again.npz", {name: valid[name][:100] for name in ("r", "f", "y")})
    scored.score("reviews", held_out, weighted=None)
    assert look(scored).documents == 50
    assert_as_from_scratch(scored)


DECIDED = """
SELECT decision.id, external_id, predicted, coalesce(lower, (decision IS NOT NULL)::integer) AS score
FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id
WHERE external_id LIKE :prefix ORDER BY 1
"""


def compared_by_hand(bench: Bench, came: Mapping[str, int], prefix: str) -> list[list[list[int]]]:
    """What both lamps of the sample compare: pairs of sixteen decisions, of which one was labelled before the other.

    came: the number of the file that each point was labelled by. prefix: of the ids of the points that make pairs.
    """
    blocks: dict[int, list[Any]] = {}
    for row in bench.rows(DECIDED, prefix=f"{prefix}%"):
        blocks.setdefault(row.id // 16, []).append(row)
    found = np.zeros((2, 2, 2), dtype=int)
    for block in blocks.values():
        ordered = sorted(block, key=lambda row: row.id * 7 % 16)
        for pair in zip(ordered[::2], ordered[1::2], strict=False):
            first, other = sorted(pair, key=lambda row: came.get(row.external_id, 99))
            if came.get(first.external_id, 99) == came.get(other.external_id, 99):
                continue
            if first.predicted != other.predicted:
                found[0, first.predicted, 0] += 1
                found[0, other.predicted, 1] += 1
            elif first.score != other.score:
                found[1, first.predicted, int(first.score < other.score)] += 1
    return found.tolist()


def test_labelled_points_are_compared_with_those_beside_them(scored: Bench) -> None:
    rows = np.random.default_rng(0).permutation(POINTS)[:500]
    came = {IDS[row]: place % 3 for place, row in enumerate(rows.tolist())}
    for file in range(3):
        give(scored, {one: truth()[one] for one, part in came.items() if part == file})
    found = assert_as_from_scratch(scored)
    assert found.documents == 500
    state = scored.value("SELECT state FROM monitor_state ORDER BY documents DESC LIMIT 1")
    expected = compared_by_hand(scored, came, "film-")
    assert state["compared"] == expected
    assert np.sum(expected) > 150
    assert not {alarm.about.lamp for alarm in found.alarms}.intersection(OF_SAMPLE)


@pytest.mark.parametrize("selection", ["review", "random"])
def test_drawn_points_are_compared_with_drawn_ones_and_others_with_others(scored: Bench, selection: str) -> None:
    compared = drawn_films(scored)[0 if selection == "review" else 1]
    with transaction(scored.engine) as connection:
        connection.exec_driver_sql(
            "UPDATE exemplar SET external_id = 'like-' || external_id WHERE external_id = ANY(%s)", (compared,)
        )
    came = {f"like-{one}": place % 2 for place, one in enumerate(compared[::2])}
    for file in range(2):
        labels = {one: truth()[one.removeprefix("like-new-")] for one, part in came.items() if part == file}
        give(scored, labels, selection=selection)
    look(scored)
    state = scored.value("SELECT state FROM monitor_state ORDER BY documents DESC LIMIT 1")
    assert state["compared"] == compared_by_hand(scored, came, "like-")
    assert np.sum(state["compared"]) > 20


def test_labels_of_the_least_sure_points_are_no_random_sample(scored: Bench) -> None:
    rows = sorted(scored.rows(DECIDED, prefix="film-%"), key=lambda row: row.score)
    give(scored, {row.external_id: truth()[row.external_id] for row in rows[: POINTS // 2]})
    found = look(scored)
    of_scores = [alarm for alarm in found.notices if alarm.about.lamp is Lamp.LABELLED_SCORES]
    assert of_scores
    said = "\n".join(verdict_lines(found))
    assert re.search(
        r"Notice: labelled points that are predicted as '[\w ]+' are less sure than those beside them \(0 of", said
    )
    shown = scored.rows("SELECT * FROM report.alarm_v2 WHERE lamp = 'labelled_scores'")
    assert [(row.is_harmful, row.kind) for row in shown] == [(False, "predicted")] * len(of_scores)
    rows = scored.rows("SELECT * FROM report.monitor_v2 WHERE lamp LIKE 'labelled%' AND is_lit ORDER BY class_name")
    assert len(rows) == len([one for one in found.readings if one.about.lamp in OF_SAMPLE and one.lit_at])


RATE = 0.3


@without_vectors
def test_drawn_points_count_by_any_label_and_those_that_were_not_drawn_by_a_random_one(scored: Bench) -> None:
    drawn, unseen = drawn_films(scored)
    give(scored, {one: truth()[one.removeprefix("new-")] for one in drawn}, selection="review")
    found = look(scored)
    assert found.documents == len(drawn)
    admitted = scored.value("SELECT count(*) FROM audit_draw WHERE is_drawn AND is_admitted")
    promised = [row for row in found.readings if row.about.lamp is Lamp.PROMISE]
    assert sum(row.points for row in promised) == admitted
    ranked = sum(row.documents for row in found.readings if row.about.lamp is Lamp.MIX)
    rejected = len(drawn) - admitted
    assert admitted <= ranked < admitted + rejected * 0.6, "of the rejected ones, as many as if all had one rate"
    give(scored, {one: truth()[one.removeprefix("new-")] for one in unseen[50:80]}, selection="review")
    assert look(scored).documents == len(drawn), "these are kept as selected"
    give(scored, {one: truth()[one.removeprefix("new-")] for one in unseen[:50]})
    beside = assert_as_from_scratch(scored)
    assert beside.documents == len(drawn) + 50
    promised = [row for row in beside.readings if row.about.lamp is Lamp.PROMISE]
    assert sum(row.points for row in promised) == admitted + 50, "as all rejected ones are drawn"
    assert sum(row.documents for row in beside.readings if row.about.lamp is Lamp.MIX) == ranked
    give(scored, {drawn[0]: None}, retract=True, selection="review")
    assert assert_as_from_scratch(scored).documents == len(drawn) + 49


@without_vectors
def test_points_of_documents_count_only_if_they_were_drawn(scored: Bench) -> None:
    """The drawn points of a document that counted by another one would come too late."""
    drawn, unseen = drawn_films(scored)
    with transaction(scored.engine) as connection:
        connection.exec_driver_sql("UPDATE exemplar SET document_id = external_id WHERE external_id LIKE 'new-%%'")
    give(scored, {one: truth()[one.removeprefix("new-")] for one in unseen})
    give(scored, {one: truth()[one.removeprefix("new-")] for one in drawn}, selection="review")
    assert assert_as_from_scratch(scored).documents == len(drawn)


@without_vectors
@pytest.mark.parametrize("was_drawn", [True, False])
@pytest.mark.parametrize("by_another", [False, True])
def test_points_that_another_decision_drew_weigh_by_their_probability(
    scored: Bench, by_another: bool, was_drawn: bool
) -> None:
    """With one rate for all that a decision admits of a class, what it drew weighs 1, and so does what it left."""
    rejected = 0.1 if was_drawn else 0.4
    drawn, unseen = drawn_films(scored, rejected)
    if by_another:
        with transaction(scored.engine) as connection:
            connection.exec_driver_sql("UPDATE audit_draw SET created_at = created_at - interval '1 day'")
    labelled = drawn if was_drawn else unseen
    labels = {one: truth()[one.removeprefix("new-")] for one in labelled}
    give(scored, labels, selection="review" if was_drawn else "random")
    look(scored)
    state = scored.value("SELECT state FROM monitor_state ORDER BY documents DESC LIMIT 1")
    admitted = scored.value(f"SELECT count(*) FROM audit_draw WHERE is_drawn = {was_drawn} AND is_admitted")
    for kind in ("predicted", "true"):
        pairs = [pair for rows in state[kind].values() for pair in rows]
        assert sum(pair[2] for pair in pairs) == admitted
        weights = {float.fromhex(pair[3]) for pair in pairs if len(pair) > 3}
        assert weights == ({0.1 / RATE if was_drawn else (1 - 0.4) / (1 - RATE)} if by_another else set())
    assert_as_from_scratch(scored)


def test_points_that_another_decision_drew_weigh_as_among_all_classes(scored: Bench) -> None:
    """The class by which they were drawn may be another one than that which counts."""
    (first, _) = find(scored.engine, "reviews").class_names
    drawn, _ = drawn_films(scored, classes={first: RATE / 2})
    with transaction(scored.engine) as connection:
        connection.exec_driver_sql("UPDATE audit_draw SET created_at = created_at - interval '1 day'")
    give(scored, {one: truth()[one.removeprefix("new-")] for one in drawn}, selection="review")
    look(scored)
    state = scored.value("SELECT state FROM monitor_state ORDER BY documents DESC LIMIT 1")
    weights = {float.fromhex(pair[3]) for rows in state["predicted"].values() for pair in rows if len(pair) > 3}
    assert weights == {0.5}
    assert_as_from_scratch(scored)


def drawn_films(
    bench: Bench, rejected: float = 1.0, classes: Mapping[str, float] | None = None
) -> tuple[list[str], list[str]]:
    """Decide on all films once more, as others, and return which of these are drawn, and which are not."""
    set_audits(bench.engine, "reviews", rate=RATE, rejected=rejected, classes=classes or {})
    arrays = films() | {"id": np.array([f"new-{one}" for one in IDS]), "y": np.full(POINTS, -1)}
    arrays |= {name: arrays[name] + np.float32(1 / 1024) for name in ("r", "f") if name in arrays}
    bench.score("reviews", write(bench, "new.npz", arrays), weighted=None)
    rows = bench.rows("SELECT external_id, is_drawn FROM report.audit_draw_v1 ORDER BY 1")
    assert len(rows) == POINTS
    return [row.external_id for row in rows if row.is_drawn], [row.external_id for row in rows if not row.is_drawn]


def test_corrections_and_labels_taken_back_lead_to_the_state_from_scratch(scored: Bench) -> None:
    give(scored, flipped(range(450)))
    wrong = look(scored)
    assert {alarm.about.lamp for alarm in wrong.harmful} >= {Lamp.PROMISE, Lamp.PARTITIONS}
    films = in_order(scored)
    give(scored, of(films[120:]))
    corrected = look(scored)
    assert corrected.computed == 350, "from the last state that is as it was"
    give(scored, of(films[:120]))
    right = look(scored)
    assert (right.documents, right.computed) == (450, 450)
    assert right.harmful == ()
    ended = "SELECT count(*) FROM monitor_alarm WHERE ended_at IS NOT NULL"
    assert scored.value(ended) >= len(wrong.harmful)
    assert_as_from_scratch(scored)

    give(scored, dict.fromkeys(IDS[row] for row in films[100:]), retract=True)
    assert (look(scored).documents, look(scored).computed) == (100, 0)
    give(scored, dict.fromkeys(IDS[row] for row in films[:100]), retract=True)
    assert look(scored).documents == 0
    give(scored, of(range(50)))
    give(scored, dict.fromkeys(IDS[20:30]), retract=True)
    give(scored, of(range(25, 40)))
    found = assert_as_from_scratch(scored)
    assert found.documents == 45


@without_vectors
def test_labels_in_another_order_lead_to_the_state_from_scratch(scored: Bench) -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(400)
    for part in np.array_split(order, 7):
        give(scored, {IDS[row]: truth()[IDS[row]] for row in part.tolist()})
        if rng.random() < 0.7:
            look(scored)
    found = assert_as_from_scratch(scored)
    assert found.documents == 400
    assert scored.rows("SELECT count(*) FROM monitor")[0][0] == 1


@without_vectors
def test_a_crash_in_the_middle_leaves_the_state_as_before(scored: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    give(scored, of(range(150)))
    before = stored(scored, look(scored).monitor)
    give(scored, flipped(range(100, 420)))

    class Crash(BaseException):
        pass

    written = 0
    add_state = monitors.add_state

    def crash_at_the_second(*given: Any) -> None:
        nonlocal written
        written += 1
        if written == 2:
            raise Crash
        add_state(*given)

    crashing = (
        (monitors, "add_state", crash_at_the_second),
        (alarms, "update_alarms", None),
        (monitors, "settle", None),
    )
    for module, name, replacement in crashing:
        with monkeypatch.context() as patched:
            patched.setattr(module, name, replacement or (lambda *_, **__: (_ for _ in ()).throw(Crash)))
            with pytest.raises(Crash):
                look(scored)
        assert stored(scored, 1) == before
    assert written == 2
    assert look(scored).documents == 420
    assert_as_from_scratch(scored)


@pytest.mark.processes
@without_vectors
def test_an_update_that_is_killed_in_the_middle_leaves_the_state_as_before(scored: Bench) -> None:
    """A process of its own: its states and readings are written, and it waits to write its alarms."""
    give(scored, of(range(150)))
    before = stored(scored, look(scored).monitor)
    give(scored, flipped(range(100, 420)))
    url = scored.engine.url.render_as_string(hide_password=False)
    with transaction(scored.engine) as holder:
        holder.exec_driver_sql("LOCK TABLE monitor_alarm IN EXCLUSIVE MODE")
        with subprocess.Popen([sys.executable, "-W", "error", "-c", UPDATE, url], cwd=REPOSITORY) as updating:
            try:
                wait_until(lambda: scored.rows(WAITING_TO_WRITE_ALARMS) or updating.poll() is not None, "it waits")
                assert updating.poll() is None, "it did not wait"
            finally:
                updating.kill()
        assert updating.returncode == -signal.SIGKILL
    assert stored(scored, 1) == before
    assert look(scored).documents == 420
    assert_as_from_scratch(scored)


def test_it_goes_on_across_snapshots_that_calibrate_with_its_labels(scored: Bench) -> None:
    give(scored, of(range(300)))
    first = look(scored)
    newest = "SELECT max(id) FROM calibration"
    before = scored.value(newest)
    calibrate_again(scored)
    assert scored.value(newest) > before
    score(scored)
    give(scored, of(range(300, 500)))
    second = assert_as_from_scratch(scored)
    assert (second.documents, second.monitor) == (500, first.monitor)


def test_documents_are_the_units_and_count_once(scored: Bench) -> None:
    arrays = films() | {"y": np.full(POINTS, -1), "id": np.array([f"token-{row}" for row in range(POINTS)])}
    arrays["doc"] = np.array([f"doc-{row // SIZE}" for row in range(POINTS)])
    scored.score("reviews", write(scored, "tokens.npz", arrays), weighted=None)
    known = films()["y"].tolist()
    give(scored, {f"token-{row}": known[row] for row in range(600)})
    found = look(scored)
    assert (found.documents, found.points) == (200, 600)
    give(scored, {f"token-{row}": known[row] for row in range(600, 900, SIZE)})
    give(scored, {f"token-{row}": known[row] for row in range(601, 900, SIZE)})
    later = assert_as_from_scratch(scored)
    assert (later.documents, later.points) == (300, 700), "later points of a document do not count"


@without_vectors
def test_a_document_of_which_a_part_calibrates_does_not_count(scored: Bench) -> None:
    """Some of its tokens came with held-out data before, so that it is no new draw."""
    arrays = {name: values[:90] for name, values in films().items()}
    arrays |= {"id": np.array([f"token-{row}" for row in range(90)])}
    arrays["doc"] = np.array([f"doc-{row // SIZE}" for row in range(90)])
    first = np.arange(90) % SIZE == 0
    known = np.arange(90) < 45
    scored.ingest("reviews", write(scored, "a.npz", {k: v[first & known] for k, v in arrays.items()}), "held-out")
    calibrate_again(scored)
    update_monitor(scored.engine, "reviews", restart=True)
    rest = {k: v[~first] for k, v in arrays.items()}
    truth_of_rest = dict(zip(rest["id"].tolist(), rest["y"].tolist(), strict=True))
    scored.score("reviews", write(scored, "b.npz", rest | {"y": np.full(60, -1)}), weighted=None)
    give(scored, truth_of_rest)
    found = assert_as_from_scratch(scored)
    assert (found.documents, found.points) == (15, 30)


@without_vectors
def test_several_who_look_at_once_write_one_state(scored: Bench) -> None:
    give(scored, of(range(350)))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: look(scored), range(4)))
    assert {one.documents for one in found} == {350}
    assert sorted(one.computed for one in found) == [0, 0, 0, 350]
    assert scored.value("SELECT count(*) FROM monitor") == 1
    assert_as_from_scratch(scored)


@pytest.mark.parametrize(
    "wrong",
    [
        "monitor SET after_event = -1",
        "monitor SET knn_parameters_id = CASE WHEN knn_parameters_id IS NULL THEN 1 END",
        "monitor_state SET documents = -1",
        "monitor_state SET digest = ''",
        "monitor_reading SET lamp = 'other'",
        "monitor_reading SET number = -1",
        "monitor_reading SET correct = points + 1",
        "monitor_reading SET lower_bound = 1.5",
        "monitor_reading SET largest_e_value = e_value / 2",
        "monitor_reading SET lit_at = 0",
        "monitor_alarm SET lamp = 'other'",
        "monitor_alarm SET number = -1",
    ],
)
@without_vectors
def test_the_tables_refuse_what_cannot_be(watched: Bench, wrong: str) -> None:
    with pytest.raises(DatabaseError, match="violates check constraint"), transaction(watched.engine) as connection:
        connection.exec_driver_sql(f"UPDATE {wrong}")


@without_vectors
def test_a_few_corrections_do_not_end_an_alarm(scored: Bench) -> None:
    """It stands on a tenth of the evidence that raised it, and ends once the labels show nothing any more."""
    raised: set[Watched] = set()
    wrong = 0
    while not raised:
        give(scored, flipped(range(wrong, wrong + 5)))
        wrong += 5
        raised = {alarm.about for alarm in look(scored).harmful if alarm.about.lamp == Lamp.PROMISE}
    corrected = 0
    while raised <= {reading.about for reading in look(scored).readings if reading.lit_at is not None}:
        give(scored, of(range(corrected, corrected + 1)))
        corrected += 1
    found = look(scored)
    assert raised <= {alarm.about for alarm in found.alarms}
    assert scored.value("SELECT count(*) FROM monitor_alarm WHERE ended_at IS NOT NULL AND lamp = 'promise'") == 0
    give(scored, of(range(corrected, wrong)))
    assert not raised & {alarm.about for alarm in look(scored).alarms}


@without_vectors
def test_an_alarm_stays_if_what_raised_it_is_forgotten(scored: Bench) -> None:
    """The lamp goes out, since what the points have shown is gone with them."""
    give(scored, flipped(range(90)))
    raised = {alarm.about for alarm in look(scored).harmful}
    assert raised
    forget(scored.workspace(), "reviews", IDS[:90])
    give(scored, of(range(300, 320)))
    found = look(scored)
    assert (found.documents, {alarm.about for alarm in found.harmful}) == (20, raised)
    assert not {reading.about for reading in found.readings if reading.lit_at is not None} & raised
    assert update_monitor(scored.engine, "reviews", restart=True).alarms == ()


@without_vectors
def test_starting_again_ends_alarms_and_counts_what_is_decided_on_from_now_on(scored: Bench) -> None:
    """However late the labels of earlier decisions come, and a document if none of its points was decided on before."""
    with np.load(EXAMPLES / "valid.npz") as valid:
        later = {name: valid[name][3000:3121] for name in ("r", "f", "y")}
    ids = [f"later-{row}" for row in range(121)]
    later |= {"id": np.array(ids), "doc": np.array(["both", *ids[1:120], "both"])}
    unlabelled = later | {"y": np.full(121, -1)}
    scored.score("reviews", write(scored, "a.npz", {k: v[:1] for k, v in unlabelled.items()}), weighted=None)
    give(scored, flipped(range(300)))
    assert look(scored).harmful
    restarted = update_monitor(scored.engine, "reviews", restart=True)
    assert (restarted.documents, restarted.alarms) == (0, ())
    assert scored.value("SELECT count(*) FROM monitor_alarm WHERE ended_at IS NULL") == 0
    give(scored, flipped(range(300, 600)))
    assert (look(scored).documents, look(scored).alarms) == (0, ())
    scored.score("reviews", write(scored, "b.npz", {k: v[1:] for k, v in unlabelled.items()}), weighted=None)
    give(scored, dict(zip(ids, later["y"].tolist(), strict=True)))
    found = look(scored)
    assert (found.documents, found.points, found.monitor) == (119, 119, restarted.monitor)
    assert_as_from_scratch(scored)


@pytest.mark.parametrize("template", ["venn-admit", "venn-abers"], indirect=True)
def test_a_new_fit_starts_a_monitor_of_its_own(scored: Bench) -> None:
    give(scored, of(range(60)))
    first = look(scored)
    scored.adopt("reviews", eta_loc=0.5)
    calibrate_again(scored)
    second = look(scored)
    assert second.monitor > first.monitor
    assert second.documents == 0


@without_vectors
def test_what_is_behind_is_updated_once(scored: Bench) -> None:
    assert update_behind(scored.engine, None) == ["reviews"]
    assert update_behind(scored.engine, None) == []
    give(scored, of(range(30)))
    assert update_behind(scored.engine, None) == ["reviews"]
    assert update_behind(scored.engine, None) == []
    assert look(scored).documents == 30


def test_labels_of_other_classifiers_do_not_wait_for_a_monitor(scored: Bench) -> None:
    look(scored)
    scored.create("other", dimension=2)
    scored.ingest("other", scored.write("other.npz", {"r": np.eye(2), "f": 2 * np.eye(2), "y": np.arange(2)}), "train")
    lit = lit_lamps(scored.engine)["reviews"]
    assert lit is not None
    assert not lit.is_behind
    give(scored, of(range(30)))
    lit = lit_lamps(scored.engine)["reviews"]
    assert lit is not None
    assert lit.is_behind


def test_a_classifier_without_a_calibration_cannot_be_watched(bench: Bench) -> None:
    bench.create("new", dimension=2)
    with pytest.raises(NotReadyError, match="no calibration yet"):
        update_monitor(bench.engine, "new")
    assert update_behind(bench.engine, None) == []


@without_vectors
def test_partitions_without_vectors_are_predicted_classes(watched: Bench) -> None:
    found = look(watched)
    labelled = watched.rows(
        "SELECT predicted, decision FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id "
        "WHERE label IS NOT NULL"
    )
    admitted = Counter(row.decision for row in labelled if row.decision is not None)
    drawn = Counter(row.predicted for row in labelled)
    for lamp, expected in ((Lamp.PARTITIONS, admitted), (Lamp.MIX, drawn)):
        assert {row.about.number: row.points for row in found.readings if row.about.lamp is lamp} == expected
    assert {found.name(row.about).q for row in found.readings} == {None}
    shown = watched.rows("SELECT * FROM report.monitor_v2 ORDER BY lamp, class_name")
    assert [(row.lamp, row.class_name, row.labels) for row in shown] == [
        (row.about.lamp, f"class {row.about.number}", row.points)
        for row in sorted(found.readings, key=lambda row: (row.about.lamp, row.about.number))
    ]
    alarms = watched.rows("SELECT * FROM report.alarm_v2 ORDER BY alarm")
    assert [(row.lamp, row.class_name) for row in alarms] == [
        (alarm.about.lamp, f"class {alarm.about.number}") for alarm in found.alarms
    ]
    assert {row.matching_neighbours for row in (*shown, *alarms)} == {None}
    assert {Lamp.PARTITIONS, Lamp.PROMISE} <= {alarm.about.lamp for alarm in found.harmful}


@without_vectors
def test_harm_after_good_labels_is_said_with_where_it_began(scored: Bench) -> None:
    good, early = 400, None
    give(scored, of(range(good)))
    assert not look(scored).alarms
    for first in range(good, POINTS, 20):
        give(scored, flipped(range(first, first + 20)))
        found = look(scored)
        early = early or found
        if not early.alarms:
            early = None
        if found.harmful:
            break
    assert early is not None
    assert {alarm.about.lamp for alarm in early.alarms} <= {*EARLY.values(), Lamp.MIX}
    assert early.documents < found.documents
    for row in found.readings:
        if row.lit_at is not None and row.about.lamp in {*EARLY, *EARLY.values()}:
            assert row.since is not None
            assert abs(row.since - good) <= 20
    payload = monitor_payload(found)
    assert {one["figures"]["since_document"] for one in payload["alarms"] if one["harmful"]} <= {
        row.since for row in found.readings
    }
    assert_as_from_scratch(scored)


def test_a_certificate_says_which_lamps_are_alarms(copy_of: CopyOf, filled: Filled) -> None:
    bench = copy_of(filled(reviews_of(3000)))
    bench.calibrate_abers("reviews", score="network", certify=("true",), confidence=Decimal("0.9"))
    score(bench)
    give(bench, flipped(range(300)))
    found = look(bench)
    assert found.is_harmful(Lamp.TRUE_CLASSES)
    assert not found.is_harmful(Lamp.PROMISE)
    for view in ("monitor_v1", "alarm_v1"):
        rows = bench.rows(f"SELECT DISTINCT lamp, is_harmful FROM report.{view}")
        assert Lamp.TRUE_CLASSES in {row.lamp for row in rows}
        assert {row.lamp: row.is_harmful for row in rows} == {
            row.lamp: found.is_harmful(Lamp(row.lamp)) for row in rows
        }


def test_a_report_shows_the_lamps_as_they_were_left(watched: Bench) -> None:
    said = look(watched)
    found = report(watched.workspace(), "reviews", calibration_id=None)
    assert found.watch.said is not None
    assert replace(found.watch.said, computed=said.computed) == said
    assert not found.watch.is_behind
    (shown,) = [section for section in sections(found, command) if section.title == "Lamps of the monitor"]
    assert [part for part in shown.parts if isinstance(part, str)] == verdict_lines(said)
    (table,) = [part for part in shown.parts if isinstance(part, TextTable)]
    assert [row[-1] for row in table.rows].count("LIT, alarm") == len(said.harmful)
    assert table.rows[0][-1] == "LIT, alarm"
    assert advice(found, command)[0].startswith("The monitor has raised an alarm")


@without_vectors
def test_a_report_says_when_nothing_watches_or_labels_came_since(scored: Bench) -> None:
    def told() -> str:
        found = report(scored.workspace(), "reviews", calibration_id=None)
        (shown,) = [section for section in sections(found, command) if section.title == "Lamps of the monitor"]
        return " ".join(part for part in shown.parts if isinstance(part, str))

    assert told().startswith("Not started:")
    assert "`venn-admit monitor reviews` starts it" in told()
    look(scored)
    assert "No label counts yet" in told()
    give(scored, flipped(range(20)))
    assert "Labels came since it was last looked at: `venn-admit monitor reviews` counts them." in told()
