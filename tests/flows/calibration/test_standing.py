"""A certificate that stands while labels arrive: labels of the ledger advance it, each document once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from tests.flows.decisions.test_venn_abers import RELIABILITY
from tests.flows.logits import ALPHA, CLASSES, NAME, calibrated, exemplars, make, with_vectors
from tests.flows.recalibration import REQUEST, Computing, NoShell
from tests.running import Bench
from tests.templates import CopyOf, Filled
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.certification import ClassKind, PromisedClass
from venn_admit.core.calibrators.certified.certificate import Certificate, LaterChain
from venn_admit.core.monitoring.anytime.plan import Lamp
from venn_admit.core.standing.against import to_document
from venn_admit.core.standing.state import admitting, certified_counts, initial_state, start
from venn_admit.core.types import KnnParameters
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration import calibrate
from venn_admit.flows.calibration.generations import create_generation, switch
from venn_admit.flows.calibration.in_use import use
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import update_behind
from venn_admit.flows.reports.report import report
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.cells.certified import certificate_section, lacking_texts
from venn_admit.report.calibration.sections import TextTable
from venn_admit.report.monitoring.tables import chain_lines, verdict_lines
from venn_admit.report.standing import BEGIN, REMEDY, standing_text
from venn_admit.store.calibrations import calibrators, chains, listing, point_changes, venn_abers
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import approximations, classifiers

STANDING: dict[str, Any] = {"standing": True, "promise": None, "alpha": "0.2", "score": "network"}
ONCE = "once"
NEWEST_STANDING = (
    "SELECT max(calibration.id) FROM calibration INNER JOIN calibrator ON calibrator_id = calibrator.id WHERE standing"
)
NEW = exemplars("new", 1200, seed=2)
"""Documents of two points, in the order in which their labels come."""
LABELS = dict(zip(NEW["id"].tolist(), NEW["y"].tolist(), strict=True))


def begin(bench: Bench, name: str = NAME) -> None:
    """Held-out data, a chain, and points that were scored and wait for their labels."""
    make(bench, name)
    bench.ingest(name, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    calibrated(bench, name, **STANDING)
    unlabelled = {column: values for column, values in NEW.items() if column != "y"}
    bench.score(name, bench.write("new.npz", unlabelled), weighted=None)


def begin_once_more(bench: Bench) -> None:
    begin(bench, ONCE)


def begin_with_vectors(bench: Bench, name: str) -> None:
    """Held-out data with vectors, and a chain."""
    bench.create(name, dimension=2, class_count=CLASSES, neighbour_count=3)
    for split, number, seed in (("train", 40, 5), ("mc", 200, 1), ("vp", 200, 2)):
        bench.ingest(name, with_vectors(bench, exemplars(split, number, seed), seed=seed), split)
    bench.adopt(name, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
    bench.calibrate_abers(name, standing=True, certify=("predicted",), score="network", alpha=Decimal("0.2"))


def give(bench: Bench, first: int, end: int, name: str = NAME, **changed: int | None) -> None:
    """Let labels of some rows come, together, with those that change."""
    labels = {key: LABELS[key] for key in NEW["id"][first:end].tolist()}
    labels |= {f"new-{key.removeprefix('row')}": value for key, value in changed.items()}
    path = bench.folder / "labels.csv"
    lines = [f"{key},{'' if value is None else value}" for key, value in labels.items()]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    label(bench.engine, name, LabelFile(path), selection="random", retract=True)


def advance(bench: Bench, name: str = NAME, keep: int | None = None) -> list[int]:
    """Serve what is due; return the snapshots."""
    served = recalibrate(replace(bench.workspace(), keep_calibrations=keep), name, shell=NoShell())
    assert all(step is None or step.error is None for _, step in served), served
    return [step.calibrated.calibration_id for _, step in served if step is not None and step.calibrated is not None]


def calibrator(bench: Bench, name: str) -> int:
    query = (
        "SELECT max(calibrator.id) FROM calibrator INNER JOIN classifier ON classifier_id = classifier.id "
        "WHERE name = :name AND standing"
    )
    found: int = bench.value(query, name=name)
    return found


def certificate(bench: Bench, name: str = NAME) -> Certificate:
    query = "SELECT max(id) FROM calibration WHERE calibrator_id = :id"
    with connect(bench.engine) as connection:
        found = venn_abers.certificate_of(connection, bench.value(query, id=calibrator(bench, name)))
    assert found is not None
    assert found.standing is not None
    return found


OF_CLASS_0 = frozenset({(ClassKind.PREDICTED, 0)})


def refuted(found: Certificate) -> list[int]:
    assert found.standing is not None
    return [of.number for of in found.standing.classes if of.refuted is not None]


def certified(bench: Bench) -> tuple[int, ...]:
    found = certificate(bench).standing
    assert found is not None
    return tuple(of.certified for of in found.classes)


def everything(bench: Bench, name: str = NAME) -> tuple[Any, ...]:
    """What is certified, and the state to the last bit."""
    with connect(bench.engine) as connection:
        chain = chains.newest(connection, calibrator(bench, name))
        at = chains.position(connection, chain)
        state = chains.state_at(connection, chain, at.documents)
    bits = [getattr(of, part).tobytes() for of in state for part in ("wealth", "most", "admitted", "right", "capped")]
    assert all(of.against is not None for of in state), "something is certified, and labels came since"
    bits += [to_document(of.against) for of in state if of.against is not None]
    found = certificate(bench, name)
    return found.policy, found.documents, found.points, found.classes, found.lacking, bits


def count(bench: Bench, table: str) -> int:
    found: int = bench.value(f"SELECT count(*) FROM {table}")
    return found


@pytest.fixture(scope="module")
def begun_template(filled: Filled) -> str:
    return filled(begin)


@pytest.fixture
def begun(copy_of: CopyOf, begun_template: str) -> Bench:
    return copy_of(begun_template)


@pytest.fixture
def begun_twice(copy_of: CopyOf, filled: Filled, begun_template: str) -> Bench:
    """Two classifiers alike, `NAME` and `ONCE`."""
    return copy_of(filled(begin_once_more, begun_template))


def test_it_begins_with_the_labels_that_a_certificate_made_once_tests(begun: Bench) -> None:
    began, evidence = certificate(begun), count(begun, "standing_evidence")
    made = calibrated(begun, certify="predicted", score="network").made
    assert isinstance(made, MadeByAbers)
    once = made.certificate
    assert once is not None
    assert (began.documents, began.points, began.proposing) == (once.documents, once.points, once.proposing)
    assert (began.points, evidence) == (evidence, once.points)
    assert began.standing is not None
    assert began.standing.chain == 1
    assert began.standing.level == pytest.approx(0.025)


def test_labels_advance_it_and_what_is_certified_only_grows(begun: Bench) -> None:
    grown, documents = [certified(begun)], certificate(begun).documents
    for first in range(0, 1200, 300):
        give(begun, first, first + 300)
        (made,) = advance(begun)
        assert made == begun.value("SELECT calibration_id FROM calibration_in_use_v1")
        grown.append(certified(begun))
        documents += 150
        assert certificate(begun).documents == documents
    assert all(a <= b for one, other in pairwise(grown) for a, b in zip(one, other, strict=True))
    assert sum(grown[-1]) > sum(grown[0])


def test_only_positions_that_something_goes_back_to_are_kept(begun: Bench) -> None:
    advances = CLASSES + 3
    for first in range(0, 2 * advances, 2):
        give(begun, first, first + 2)
        advance(begun)
    assert count(begun, "standing_position") <= CLASSES + 1
    assert begun.value("SELECT max(documents) FROM standing_position") == certificate(begun).documents


@pytest.mark.parametrize("parts", [2, 6])
def test_by_parts_it_is_what_it_is_at_once_to_the_last_bit(begun_twice: Bench, parts: int) -> None:
    """With labels that are corrected, or taken back and given again, before and after they counted."""
    bench, size = begun_twice, 1200 // parts
    for name in (NAME, ONCE):
        for part in range(parts):
            give(bench, part * size, part * size + size, name)
            wrong = (LABELS[f"new-{part}"] + 1) % CLASSES
            give(bench, 0, 0, name, **{f"row{part}": wrong, f"row{20 + part}": None})
            if name == NAME:
                advance(bench)
            give(bench, 0, 0, name, **{f"row{part}": LABELS[f"new-{part}"], f"row{20 + part}": 0})
        advance(bench, name)
    assert everything(bench) == everything(bench, ONCE)


def test_a_document_whose_first_label_was_taken_back_does_not_count_by_later_ones(begun_twice: Bench) -> None:
    """Whether its first label had counted or not."""
    bench = begun_twice
    for name in (NAME, ONCE):
        give(bench, 0, 1, name)
        give(bench, 2, 100, name)
        if name == NAME:
            advance(bench)
        give(bench, 0, 0, name, row0=None)
        give(bench, 1, 2, name)
        advance(bench, name)
    assert everything(bench) == everything(bench, ONCE)


def test_a_report_counts_the_labels_that_an_advance_would_use(begun: Bench) -> None:
    def pending() -> tuple[int, int, int]:
        found = report(begun.workspace(), NAME, calibration_id=None).changes
        return found.arrived, found.changed, found.left

    assert pending() == (0, 0, 0)
    give(begun, 0, 300)
    assert pending() == (300, 0, 0)
    advance(begun)
    assert pending() == (0, 0, 0)
    give(begun, 0, 0, row0=(LABELS["new-0"] + 1) % CLASSES, row1=None)
    assert pending() == (0, 1, 1)
    advance(begun)
    assert pending() == (0, 0, 0)


def test_a_view_counts_the_labels_that_advance_it_apart(begun: Bench) -> None:
    """Those of the calibration that decided are, too, since later ones of its chain rest on them."""
    query = (
        "SELECT points, certifying, admitted IS NOT NULL AND share_admitted IS NULL AS is_empty "
        "FROM report.selective_accuracy_v4 WHERE per = 'all' AND NOT q_equals_k"
    )
    give(begun, 0, 300)
    assert [tuple(row) for row in begun.rows(query)] == [(300, 0, False)]
    advance(begun)
    assert [tuple(row) for row in begun.rows(query)] == [(0, 300, True)]
    give(begun, 300, 400)
    assert [tuple(row) for row in begun.rows(query)] == [(100, 300, False)]


def test_a_document_counts_once_by_the_labels_that_came_first(begun: Bench) -> None:
    before = certificate(begun).points
    give(begun, 0, 1)
    give(begun, 1, 2)
    advance(begun)
    assert certificate(begun).points == before + 1
    calibration = certificate(begun)
    give(begun, 2, 3)
    advance(begun)
    give(begun, 3, 4)
    assert advance(begun) == [begun.value("SELECT max(id) FROM calibration")]
    assert certificate(begun).points == calibration.points + 1


def test_nothing_new_is_a_no_op(begun: Bench) -> None:
    give(begun, 0, 100)
    advance(begun)
    before, calibrations = everything(begun), count(begun, "calibration")
    request_again(begun)
    assert advance(begun) == [begun.value("SELECT max(id) FROM calibration")]
    assert everything(begun) == before
    assert count(begun, "calibration") == calibrations
    assert not begun.rows(REQUEST)


def request_again(bench: Bench) -> None:
    with transaction(bench.engine) as connection:
        connection.exec_driver_sql(
            "INSERT INTO recalibration_request (calibrator_id, first_requested_at, last_requested_at, reason) "
            "SELECT id, now(), now(), 'labels' FROM calibrator"
        )


def test_a_correction_withdraws_what_the_labels_no_longer_show(begun: Bench) -> None:
    give(begun, 0, 600)
    advance(begun)
    before = certificate(begun)
    assert before.policy is not None
    give(begun, 0, 0, **{f"row{row}": (LABELS[f"new-{row}"] + 1) % CLASSES for row in range(600)})
    advance(begun)
    update_behind(begun.engine, None)
    after = certificate(begun)
    assert (after.documents, after.points) == (before.documents, before.points)
    assert sum(of.admitted for of in after.classes) < sum(of.admitted for of in before.classes)
    # It admits far less, and is in use all the same.
    assert begun.value("SELECT calibration_id FROM calibration_in_use_v1") == begun.value(
        "SELECT max(id) FROM calibration"
    )
    give(begun, 0, 0, **{f"row{row}": LABELS[f"new-{row}"] for row in range(600)})
    advance(begun)
    # They had refuted what is certified, and its alarm ends once the monitor looks again.
    assert certificate(begun).withdrawn
    assert not refuted(certificate(begun))
    assert update_behind(begun.engine, None) == [NAME]
    said = chain_lines(update_monitor(begun.engine, NAME))
    assert said[0].endswith(f"{BEGIN} {REMEDY}")
    classes = ", ".join(f"predicted class {number}" for number in range(CLASSES))
    assert said[1:] == [
        f"The next recalibration gives back what was certified, as no alarm stands any more for {classes}."
    ]
    advance(begun)
    assert certificate(begun) == before


def test_a_correction_of_a_label_at_the_start_is_bet_on_again(begun: Bench) -> None:
    give(begun, 0, 300)
    advance(begun)
    of_start = "(SELECT max(exemplar_id) FROM standing_evidence WHERE document < 5)"
    key = begun.value(f"SELECT external_id FROM exemplar WHERE id = {of_start}")
    path = begun.folder / "labels.csv"
    path.write_text(f"external_id,label\n{key},\n")
    label(begun.engine, NAME, LabelFile(path), selection="random", retract=True)
    advance(begun)
    with connect(begun.engine) as connection:
        chain = chains.newest(connection, calibrator(begun, NAME))
        found = chains.state_at(connection, chain, chains.position(connection, chain).documents)
        state = start(chain.chain, initial_state(chain.chain), chains.evidence(connection, chain, first=0))
    assert chain.chain.at_start > 5
    assert [of.wealth.tobytes() for of in found] == [of.wealth.tobytes() for of in state]
    assert all(of.wealth.shape[1] == 8 for of in found)


def test_two_at_once_count_each_label_once(begun_twice: Bench) -> None:
    bench, before = begun_twice, count(begun_twice, "standing_evidence")
    start = certificate(bench).points
    give(bench, 0, 600)
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(advance, bench) for _ in range(4)]:
            done.result()
    assert certificate(bench).points - start == count(bench, "standing_evidence") - before == 600
    give(bench, 0, 600, ONCE)
    advance(bench, ONCE)
    assert everything(bench) == everything(bench, ONCE)


def test_a_crash_leaves_it_as_it_was(begun: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    give(begun, 0, 600)
    before = everything(begun)

    class CrashError(Exception):
        pass

    def crash(*_: object, **__: object) -> None:
        raise CrashError

    monkeypatch.setattr(calibrate, "put_in_use_unless_far_less", crash)
    with pytest.raises(CrashError):
        advance(begun)
    assert everything(begun) == before
    monkeypatch.undo()
    advance(begun)
    assert certificate(begun).documents == before[1] + 300


def test_decisions_are_replayed_by_the_chain_as_it_stood(begun: Bench) -> None:
    decided = [row.id for row in begun.rows("SELECT id FROM decision ORDER BY id")][::50]
    stored = [replay(begun.workspace(), one) for one in decided]
    give(begun, 0, 1200)
    advance(begun)
    for one, before in zip(decided, stored, strict=True):
        again = replay(begun.workspace(), one)
        assert again.differing == ()
        assert (again.computed, again.policy) == (before.computed, before.policy)


def test_the_next_chain_has_a_smaller_part_of_eps_and_counts_later_labels_alone(begun: Bench) -> None:
    give(begun, 0, 600)
    advance(begun)
    in_use = begun.value("SELECT calibration_id FROM calibration_in_use_v1")
    done = calibrated(begun, **STANDING)
    found = certificate(begun)
    assert found.standing is not None
    assert found.standing.chain == 2
    assert found.standing.level == pytest.approx(0.05 / 6)
    assert (found.documents, found.policy, found.proposing) == (0, None, 1400)
    # It certifies nothing yet, so the first one stays in use, and its labels advance it until it admits about as much.
    assert done.withheld is not None
    assert begun.value("SELECT calibration_id FROM calibration_in_use_v1") == in_use
    give(begun, 600, 1200)
    (made,) = advance(begun)
    assert certificate(begun).documents == 300
    assert begun.value("SELECT calibration_id FROM calibration_in_use_v1") in (in_use, made)
    for row in begun.rows("SELECT id FROM decision ORDER BY id")[::100]:
        assert replay(begun.workspace(), row.id).differing == ()


def test_what_a_deleted_generation_has_spent_stays_spent(begun: Bench) -> None:
    looks = "SELECT looks, joint_confidence::float FROM report.certificate_look_v2"
    for generation in (2, 3):
        create_generation(begun.engine, NAME)
        begun.ingest(f"{NAME}@{generation}", begun.write("again.npz", exemplars("again", 800, seed=4)), "held-out")
        calibrated(begun, f"{NAME}@{generation}", **{**STANDING, "alpha": "0.3"})
        switch(begun.engine, f"{NAME}@{generation}")
        delete(begun.workspace(), f"{NAME}@{generation - 1}")
        found = certificate(begun).standing
        assert found is not None
        assert found.chain == generation
        assert found.level == pytest.approx(0.05 / (generation * (generation + 1)))
        assert [tuple(row) for row in begun.rows(looks)] == [
            (generation, pytest.approx(1 - 0.05 * (1 - 1 / (generation + 1)), abs=1e-5))
        ]
    with connect(begun.engine) as connection:
        spent = listing.spent(connection, classifiers.by_name(connection, NAME))
    assert spent[0] == 3
    assert float(spent[1]) == pytest.approx(0.05 * 3 / 4, abs=1e-5)


def test_it_takes_over_once_it_admits_about_as_much_as_what_is_in_use(bench: Bench) -> None:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 60, seed=1)), "held-out")
    calibrated(bench, alpha="0.3")
    calibrated(bench, **STANDING)
    assert certificate(bench).policy is None
    fixed = bench.value("SELECT calibration_id FROM calibration_in_use_v1")
    bench.ingest(NAME, bench.write("more.npz", exemplars("more", 4000, seed=4)), "held-out")
    advance(bench)
    assert certificate(bench).policy is not None
    used = bench.value("SELECT calibration_id FROM calibration_in_use_v1")
    assert used == bench.value("SELECT max(id) FROM calibration WHERE calibrator_id = :id", id=calibrator(bench, NAME))
    assert used != fixed


def test_it_does_not_take_over_from_what_was_chosen_later(bench: Bench) -> None:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 60, seed=1)), "held-out")
    calibrated(bench, alpha="0.3")
    assert calibrated(bench, **STANDING).withheld is not None
    chosen = calibrated(bench, alpha="0.25").calibrator_id
    bench.ingest(NAME, bench.write("more.npz", exemplars("more", 4000, seed=4)), "held-out")
    advance(bench)
    assert certificate(bench).policy is not None
    used = bench.value("SELECT calibration_id FROM calibration_in_use_v1")
    assert bench.value("SELECT calibrator_id FROM calibration WHERE id = :id", id=used) == chosen


DECIDED = """
SELECT
    decision.id,
    decision.predicted,
    decision.reason
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE exemplar.external_id LIKE :prefix
"""


def reasons(bench: Bench, name: str) -> tuple[dict[int, set[str | None]], int]:
    """Score further points; why those of each predicted class are rejected, and a decision on one of class 0."""
    points = {column: values for column, values in exemplars(name, 100, seed=4).items() if column != "y"}
    bench.score(NAME, bench.write(f"{name}.npz", points), weighted=None)
    rows = bench.rows(DECIDED, prefix=f"{name}-%")
    found = {of: {row.reason for row in rows if row.predicted == of} for of in range(CLASSES)}
    return found, next(row.id for row in rows if row.predicted == 0)


def test_a_decision_says_that_the_certificate_of_its_class_is_withdrawn(begun: Bench) -> None:
    """One by a snapshot from before that could be said is replayed as it was made."""
    predicted = NEW["f"].argmax(axis=1)
    wrong: dict[str, Any] = {f"row{row}": 1 for row in range(1200) if predicted[row] == 0}
    give(begun, 0, 1200, **wrong)
    assert update_monitor(begun.engine, NAME).alarms
    (snapshot,) = advance(begun)
    found, of_class_0 = reasons(begun, "now")
    assert found == {0: {"certificate withdrawn"}, 1: {None}, 2: {None}}
    assert replay(begun.workspace(), of_class_0).differing == ()
    made = report(begun.workspace(), NAME, calibration_id=snapshot)
    counts = made.part.rejected_of_reference(made)
    assert counts.keys() == {"certificate withdrawn", "score below threshold"}
    assert sum(counts.values()) + made.part.admitted_of_reference == made.snapshot.mc_count
    with transaction(begun.engine) as connection:
        connection.execute(
            text("UPDATE certificate SET document = document - 'withdrawn' WHERE calibration_id = :id"),
            {"id": snapshot},
        )
    found, of_class_0 = reasons(begun, "before")
    assert found[0] == {"score below threshold"}
    assert replay(begun.workspace(), of_class_0).differing == ()


def test_an_alarm_withdraws_its_class_and_leaves_the_others(begun: Bench) -> None:
    """What was certified before stays latched, whatever labels say now, so that it takes the alarm."""
    before = certificate(begun).policy
    assert before is not None
    assert None not in before.thresholds
    predicted = NEW["f"].argmax(axis=1)
    wrong: dict[str, Any] = {f"row{row}": 1 for row in range(1200) if predicted[row] == 0}
    give(begun, 0, 1200, **wrong)
    assert update_monitor(begun.engine, NAME).alarms
    assert advance(begun) == [begun.value("SELECT calibration_id FROM calibration_in_use_v1")]
    found = certificate(begun)
    assert found.withdrawn == OF_CLASS_0
    assert found.policy is not None
    with connect(begun.engine) as connection:
        chain = chains.newest(connection, calibrator(begun, NAME))
        state = chains.state_at(connection, chain, chains.position(connection, chain).documents)
    latched = replace(
        found.policy, thresholds=admitting(chain.chain, certified_counts(chain.chain, state)), withdrawn=()
    )
    assert found.policy.thresholds == (None, *latched.thresholds[1:])
    # It may have got further, once others had left their parts of the level.
    assert (latched.thresholds[0] or 1.0) <= (before.thresholds[0] or 0.0)
    # Nothing more follows from the same alarm; ended by hand, it gives back what was certified.
    update_monitor(begun.engine, NAME)
    assert not begun.rows(REQUEST)
    update_monitor(begun.engine, NAME, restart=True)
    advance(begun)
    assert certificate(begun).policy == latched
    history = report(begun.workspace(), NAME, calibration_id=None).chains
    assert history is not None
    first, last = history.advances[0], history.advances[-1]
    assert [one.calibration for one in history.advances] == [
        row.id for row in begun.rows("SELECT id FROM calibration ORDER BY id")
    ]
    assert (first.chain, first.documents, last.labels) == (1, first.labels // 2, certificate(begun).points)
    assert last.admitted == pytest.approx(certificate(begun).share)
    assert history.advances[-2].admitted < last.admitted
    assert {number for number, part in last.evidence.items() if 0 < part <= 1} == set(range(CLASSES))
    (alarm,) = history.alarms
    assert alarm.about == PromisedClass(ClassKind.PREDICTED, 0, None)
    assert alarm.ended_at is not None
    assert first.created_at < alarm.created_at < alarm.ended_at
    # The wealth of many labels is infinite.
    with transaction(begun.engine) as connection:
        zero = "jsonb_set(document, '{chains,0,steps,-1,classes,0,p_value}', '0')"
        connection.exec_driver_sql(f"UPDATE certificate SET document = {zero}")
    history = report(begun.workspace(), NAME, calibration_id=None).chains
    assert history is not None
    assert history.advances[-1].evidence[0] == 1


def ingest(bench: Bench, prefix: str, count: int, *, wrong: float) -> None:
    """Calibration data that are never decided; a part of what is predicted as class 0 is of another class."""
    rows, rng = exemplars(prefix, count, seed=7), np.random.default_rng(8)
    is_wrong = (rows["f"].argmax(axis=1) == 0) & (rng.random(count) < wrong)
    rows["y"] = np.where(is_wrong, 1, rows["y"])
    bench.ingest(NAME, bench.write("ingested.npz", rows), "held-out")


def test_ingested_labels_withdraw_what_they_refute(begun: Bench) -> None:
    """Until the monitor is started again, and then again."""
    update_behind(begun.engine, None)
    ingest(begun, "good", 400, wrong=0)
    advance(begun)
    begun_with = certificate(begun)
    assert begun_with.policy is not None
    assert not begun_with.withdrawn
    assert not update_monitor(begun.engine, NAME).alarms
    for number in (1, 2):
        ingest(begun, f"bad {number}", 800, wrong=0.4)
        update_behind(begun.engine, None)
        # The advance that counts the labels withdraws the class.
        advance(begun)
        found = certificate(begun)
        assert (found.withdrawn, refuted(found)) == (OF_CLASS_0, [0])
        assert found.policy is not None
        assert found.policy.thresholds[0] is None
        assert found.standing is not None
        of_class = found.standing.classes[0]
        assert of_class.refuted is not None
        assert 0.4 < of_class.refuted.right / of_class.refuted.admitted < 0.8
        names = [f"class {of}" for of in range(CLASSES)]
        assert "class 0 withdrawn, as labels refute it" in standing_text(found, names)
        assert lacking_texts(found, names) == (
            "Never admitted, since what was certified is withdrawn: predicted class 0.",
        )
        (table,) = [part for part in certificate_section(found, names).parts if isinstance(part, TextTable)]
        assert dict(zip(table.columns, table.rows[0], strict=True))["outcome"] == "withdrawn"
        # The alarm follows although no label came since that the monitor has not settled, and is raised once.
        assert update_behind(begun.engine, None) == [NAME]
        assert update_behind(begun.engine, None) == []
        said = update_monitor(begun.engine, NAME)
        assert said.documents == 0
        assert [(one.about.lamp, one.about.number) for one in said.harmful] == [(Lamp.PROMISE, 0)]
        assert verdict_lines(said)[0] == "ALARM: of what is admitted as 'class 0', fewer than 0.8 are right."
        assert count(begun, "monitor_alarm WHERE ended_at IS NULL") == 1
        assert not begun.rows(REQUEST)
        assert not update_monitor(begun.engine, NAME, restart=True).alarms
        advance(begun)
        back = certificate(begun)
        assert (back.withdrawn, refuted(back), update_monitor(begun.engine, NAME).alarms) == (frozenset(), [], ())
        assert back.policy is not None
        assert back.policy.thresholds[0] == begun_with.policy.thresholds[0]


def said_of_chain(bench: Bench, calibration_id: int | None) -> tuple[int, str]:
    """The calibration in use, or the one given, and what its report says of its chain."""
    found = report(bench.workspace(), NAME, calibration_id=calibration_id)
    section = next(one for one in found.part.sections(found) if one.title == "Certificate")
    (said,) = (part for part in section.parts if isinstance(part, str) and part.startswith("Chain "))
    return found.snapshot.id, said


def test_the_alarm_ends_once_the_next_chain_is_in_use(begun: Bench) -> None:
    update_monitor(begun.engine, NAME)
    ingest(begun, "bad", 800, wrong=0.4)
    advance(begun)
    assert update_monitor(begun.engine, NAME).harmful
    ingest(begun, "since", 400, wrong=0)
    advance(begun)
    waiting = calibrated(begun, **STANDING).calibration_id
    watched = update_monitor(begun.engine, NAME)
    assert watched.harmful
    (used, first), (_, second) = said_of_chain(begun, None), said_of_chain(begun, waiting)
    assert chain_lines(watched) == [first]
    with connect(begun.engine) as connection:
        settings = calibrators.of_classifier(connection, classifiers.by_name(connection, NAME))
    assert [setting.later for setting in settings] == [LaterChain(2, waiting, is_in_use=False)]
    assert "class 0 withdrawn, as labels refute it" in first
    assert f". Chain 2 was begun since, and its calibration {waiting} may be put in use instead. If labels" in first
    assert "was begun since" not in second
    ingest(begun, "later", 1200, wrong=0)
    advance(begun)
    assert chain_in_use(begun) == 2
    (of_first, first), (in_use_now, _) = said_of_chain(begun, used), said_of_chain(begun, None)
    assert of_first == used
    assert f". Chain 2 was begun since, and its calibration {in_use_now} is in use. If labels" in first
    assert in_use(begun).withdrawn == OF_CLASS_0
    assert update_behind(begun.engine, None) == [NAME]
    assert not update_monitor(begun.engine, NAME).alarms
    advance(begun)
    found = in_use(begun)
    assert found.policy is not None
    assert found.policy.thresholds[0] is not None


def test_a_later_chain_is_named_unless_it_has_ended_too(bench: Bench) -> None:
    """Chains on the reliability score end with each fit."""

    def fitted(eta: float) -> None:
        bench.adopt(NAME, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), eta), 1.0, RELIABILITY)

    def calibrated_by_reliability() -> int:
        asked: dict[str, Any] = {"standing": True, "certify": ("predicted",), "score": "reliability", "alpha": ALPHA}
        return bench.calibrate_abers(NAME, **asked).calibration_id

    bench.create(NAME, dimension=2, class_count=CLASSES, neighbour_count=3)
    for split, number, seed in (("train", 40, 5), ("mc", 400, 1), ("vp", 400, 2)):
        bench.ingest(NAME, with_vectors(bench, exemplars(split, number, seed), seed=seed), split)
    fitted(1.0)
    first = calibrated_by_reliability()
    fitted(2.0)
    ended = "It has ended, and nothing is promised of what it decides now."
    assert said_of_chain(bench, first)[1].endswith(ended)
    second = calibrated_by_reliability()
    use(bench.engine, NAME, first)
    waits = f"{ended} Chain 2 was begun since, and its calibration {second} may be put in use instead."
    assert said_of_chain(bench, first)[1].endswith(waits)
    found = report(bench.workspace(), NAME, calibration_id=first)
    (advised,) = (said for said in advice(found, command) if "The chain has ended" in said)
    assert f"may be put in use instead. `venn-admit use {NAME} {second}` does that." in advised
    assert "begins the next one" not in advised
    fitted(3.0)
    assert said_of_chain(bench, first)[1].endswith(ended)


def test_what_labels_refute_is_the_same_when_they_are_counted_again(begun: Bench) -> None:
    """Before and after the monitor was started again."""
    update_monitor(begun.engine, NAME)
    ingest(begun, "before", 600, wrong=0.4)
    advance(begun)
    assert refuted(certificate(begun))
    update_monitor(begun.engine, NAME, restart=True)
    ingest(begun, "after", 200, wrong=0.1)
    advance(begun)
    before, found = everything(begun), certificate(begun)
    assert not refuted(found)
    for other in ((LABELS["new-0"] + 1) % CLASSES, None):
        key = "held-out-0" if other is None else "before-1"
        path = begun.folder / "labels.csv"
        stored = begun.value("SELECT label FROM exemplar WHERE external_id = :key", key=key)
        for value in ((stored + 1) % CLASSES, stored):
            path.write_text(f"external_id,label\n{key},{value}\n")
            label(begun.engine, NAME, LabelFile(path), selection="random", retract=True)
            advance(begun)
            assert (everything(begun) == before) is (value == stored)


def in_use(bench: Bench) -> Certificate:
    with connect(bench.engine) as connection:
        found = venn_abers.certificate_of(connection, bench.value("SELECT calibration_id FROM calibration_in_use_v1"))
    assert found is not None
    return found


def chain_in_use(bench: Bench) -> int:
    found = in_use(bench).standing
    assert found is not None
    return found.chain


def test_a_correction_reaches_the_chain_in_use_while_the_next_one_waits(begun: Bench) -> None:
    give(begun, 0, 600)
    advance(begun)
    before = in_use(begun)
    assert calibrated(begun, **STANDING).withheld is not None
    give(begun, 0, 0, **{f"row{row}": (LABELS[f"new-{row}"] + 1) % CLASSES for row in range(600)})
    made = advance(begun, keep=1)
    assert chain_in_use(begun) == 1
    # Both are told of, that of the chain in use first.
    newest = begun.value("SELECT calibration_id FROM certificate WHERE chain_id > 1 ORDER BY 1 DESC LIMIT 1")
    assert made == [begun.value("SELECT calibration_id FROM calibration_in_use_v1"), newest]
    assert sum(of.admitted for of in in_use(begun).classes) < sum(of.admitted for of in before.classes)
    # The one that waits goes on from its newest snapshot, which is kept for it.
    give(begun, 600, 800)
    advance(begun)
    assert certificate(begun).documents == 100


def test_an_alarm_withdraws_the_class_of_an_earlier_chain_too(begun: Bench) -> None:
    """While the next one, which certifies nothing yet, is advanced beside it."""
    calibrated(begun, **STANDING)
    predicted = NEW["f"].argmax(axis=1)
    wrong: dict[str, Any] = {f"row{row}": 1 for row in np.flatnonzero(predicted == 0)[:150].tolist()}
    give(begun, 0, 0, **wrong)
    assert update_monitor(begun.engine, NAME).alarms
    advance(begun)
    assert (chain_in_use(begun), in_use(begun).withdrawn) == (1, OF_CLASS_0)
    newest = certificate(begun)
    assert newest.standing is not None
    assert (newest.standing.chain, newest.withdrawn, newest.points) == (2, OF_CLASS_0, 150)
    update_monitor(begun.engine, NAME)
    assert not begun.rows(REQUEST)


def test_only_labels_since_an_alarm_count_for_the_first_chain(bench: Bench) -> None:
    """Those before it are of traffic as it was, and would certify the class at once."""
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    calibrated(bench, certify="predicted", score="network", alpha="0.2")
    bench.score(NAME, bench.write("new.npz", {name: of for name, of in NEW.items() if name != "y"}), weighted=None)
    predicted = NEW["f"].argmax(axis=1)
    wrong: dict[str, Any] = {f"row{row}": 1 for row in range(400) if predicted[row] == 0}
    give(bench, 0, 400, **wrong)
    (alarm,) = [one.about for one in update_monitor(bench.engine, NAME).alarms if one.about.lamp == "promise"]
    give(bench, 400, 460)
    calibrated(bench, **STANDING)
    found = certificate(bench)
    raised = bench.value("SELECT label_event_id FROM monitor_alarm WHERE lamp = 'promise'")
    since = "SELECT count(*) FROM label_event WHERE id > :raised AND selection = 'random'"
    assert alarm.number == 0
    assert 0 < found.points < bench.value(since, raised=raised) < 460
    assert not certified(bench)[0]


def test_labels_since_an_alarm_fix_the_next_chain_if_they_are_enough(begun: Bench) -> None:
    """They are those of traffic as it has become."""
    predicted = NEW["f"].argmax(axis=1)
    wrong: dict[str, Any] = {f"row{row}": 1 for row in range(400) if predicted[row] == 0}
    give(begun, 0, 400, **wrong)
    advance(begun)
    assert update_monitor(begun.engine, NAME).alarms
    give(begun, 400, 440)
    calibrated(begun, **STANDING)
    assert certificate(begun).proposing == 800 + 440
    give(begun, 440, 500)
    calibrated(begun, **STANDING)
    assert (certificate(begun).proposing, certificate(begun).points) == (100, 0)
    # Another setting in use, which is watched from now on, ends no alarm of this one.
    other = calibrated(begun, certify="predicted", score="network", alpha="0.3").calibration_id
    use(begun.engine, NAME, other)
    assert not update_monitor(begun.engine, NAME).alarms
    calibrated(begun, **STANDING)
    assert certificate(begun).proposing == 100
    use(begun.engine, NAME, begun.value(NEWEST_STANDING))
    update_monitor(begun.engine, NAME, restart=True)
    calibrated(begun, **STANDING)
    assert certificate(begun).proposing == 800 + 500


def test_equal_documents_count_when_the_first_of_them_does(bench: Bench) -> None:
    """Whatever their ids: at once, and if a copy comes later."""
    begin_with_vectors(bench, "copied")
    before = certificate(bench, "copied")
    for name in ("first", "second"):
        rows = exemplars("more", 20, 7)
        rows |= {"id": np.array([f"{name}-{row}" for row in range(20)]), "doc": np.array([name] * 20)}
        copies = {"id": np.array([f"copy-{one}" for one in rows["id"]]), "doc": np.array([f"copy-{name}"] * 20)}
        both = {column: np.concatenate([of, copies.get(column, of)]) for column, of in rows.items()}
        bench.ingest("copied", with_vectors_of(bench, both), "held-out")
        served = recalibrate(bench.workspace(), "copied", shell=Computing(bench))
        assert all(step is None or step.error is None for _, step in served), served
        # What comes twice in one file counts once, as a document of all its points, and not again with the second.
        found = certificate(bench, "copied")
        assert (found.documents, found.points) == (before.documents + 1, before.points + 40)


def with_vectors_of(bench: Bench, rows: dict[str, Any]) -> Path:
    """A file of rows whose vectors say what their logits do, so that equal rows are copies."""
    return bench.write("copies.npz", rows | {"r": rows["f"][:, :2].copy()})


def test_an_advance_looks_at_what_came_since_the_one_before(bench: Bench) -> None:
    begin_with_vectors(bench, "seen")
    for seed in (7, 8):
        bench.ingest("seen", with_vectors(bench, exemplars(f"more{seed}", 20, seed), seed=seed), "held-out")
        with connect(bench.engine) as connection:
            classifier = classifiers.by_name(connection, "seen")
            parameters = approximations.current_parameters(connection, classifier)
            assert parameters is not None
            since = point_changes.changed_points(connection, classifier, calibrator(bench, "seen"), parameters.id)
        assert since.exemplar_ids is not None
        assert len(since.exemplar_ids) == 20
        served = recalibrate(bench.workspace(), "seen", shell=Computing(bench))
        assert all(step is None or step.error is None for _, step in served), served
        # What the advance saw is not kept for the next.
        assert count(bench, "point_change") == 0


def test_no_change_is_kept_for_what_has_no_vectors(begun: Bench) -> None:
    give(begun, 0, 100)
    assert count(begun, "point_change") > 0
    advance(begun)
    assert count(begun, "point_change") == 0


def test_what_is_forgotten_leaves_what_it_has_shown(begun: Bench) -> None:
    give(begun, 0, 600)
    advance(begun)
    before = certificate(begun)
    forget(begun.workspace(), NAME, external_ids=["held-out-1", "held-out-2", "new-5"], document_ids=[], wait=False)
    after = certificate(begun)
    assert (after.policy, after.documents) == (before.policy, before.documents)
    used = begun.value("SELECT calibration_id FROM calibration_in_use_v1")
    assert begun.value("SELECT mc_count + vp_count FROM calibration WHERE id = :id", id=used) == 798
    begun.score(NAME, begun.write("other.npz", exemplars("other", 10, seed=9)), weighted=None)
    give(begun, 600, 700)
    advance(begun)
    assert certificate(begun).documents == before.documents + 50


def test_what_is_forgotten_counts_as_before_when_labels_are_counted_again(begun: Bench) -> None:
    """Without it, points that are wrong could be forgotten to certify what their labels forbade."""
    give(begun, 0, 1100)
    advance(begun)
    before = everything(begun)
    wrong = [key for key, value in list(LABELS.items())[2:1100] if value != NEW["f"][int(key[4:])].argmax()]
    assert len(wrong) > 100
    forget(begun.workspace(), NAME, external_ids=wrong, document_ids=[], wait=False)
    kept = "SELECT count(*) FROM forgotten_evidence WHERE score = ANY(:scores) OR score = 0"
    with connect(begun.engine) as connection:
        chain = chains.newest(connection, calibrator(begun, NAME)).chain
    scores = [score for of in chain.classes for score in of.scores.tolist()]
    assert begun.value(kept, scores=scores) == count(begun, "forgotten_evidence") == len(wrong)
    changed = (LABELS["new-0"] + 1) % CLASSES
    for other in (changed, LABELS["new-0"]):
        give(begun, 0, 0, row0=other)
        advance(begun)
        assert (everything(begun) == before) is (other != changed)


def test_a_classifier_is_deleted_with_its_chains(begun: Bench) -> None:
    give(begun, 0, 100)
    advance(begun)
    forget(begun.workspace(), NAME, external_ids=["new-5"], document_ids=[], wait=False)
    assert count(begun, "forgotten_evidence") == 1
    calibrated(begun, **STANDING)
    delete(begun.workspace(), NAME)
    assert {count(begun, f"standing_{what}") for what in ("chain", "evidence", "position", "state")} == {0}
    assert count(begun, "forgotten_evidence") == 0


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"certify": "predicted,group:region"}, "for predicted or true classes, got predicted, group:region"),
        ({"certify": None, "promise": "average"}, "another promise"),
        ({"certify": "predicted", "loss": [[0, 1, 1], [5, 0, 1], [5, 1, 0]]}, "got a loss"),
        ({"certify": "predicted", "test": "asymptotic"}, "leave out either test or standing"),
        ({"certify": None, "promise": None, "thresholds": ["0.9"] * CLASSES}, "certify"),
    ],
)
def test_what_does_not_stand_is_refused(bench: Bench, given: dict[str, Any], what: str) -> None:
    make(bench)
    with pytest.raises(InvalidInputError, match=what):
        calibrated(bench, standing=True, **given)
