"""The Python package, as a program would use it, and beside the command line: both give the same, to the last bit."""

import json
import logging
import pickle
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sqlalchemy import text

import venn_admit
from tests.cli import samples
from tests.cli.program import Program
from tests.files.samples import Columns, write_parquet
from tests.holding import hold_training
from tests.package.conftest import filled
from venn_admit.core.calibrators.promises import Promised
from venn_admit.logger import log
from venn_admit.runtime.settings import read_settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database.engine import create_engine

SETTINGS: dict[str, Any] = {"method": "venn-admit", "alpha": "0.2", "kappa": 10, "q_bins": (0, 1)}


def arrays(columns: Columns, *, with_labels: bool = True) -> dict[str, Any]:
    given = {"vectors": columns["vector"], "logits": columns["logits"], "ids": columns["external_id"]}
    return given | ({"labels": columns["label"]} if with_labels else {})


def create(connection: venn_admit.Connection) -> venn_admit.Classifier:
    return connection.create(samples.NAME, samples.CLASS_NAMES, dimension=samples.DIMENSION, neighbours=samples.K)


def make_calibrated(connection: venn_admit.Connection) -> None:
    classifier = create(connection)
    classifier.ingest(**arrays(samples.train()), split="train")
    classifier.ingest(**arrays(samples.held_out()))
    classifier.fit()
    classifier.calibrate(**SETTINGS)


@pytest.fixture(scope="module")
def template(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with filled(server_url, template_database, tmp_path_factory.mktemp("home"), make_calibrated) as name:
        yield name


@pytest.fixture
def calibrated(opened: venn_admit.Connection) -> venn_admit.Classifier:
    return opened.classifier(samples.NAME)


def test_it_decides_as_the_command_line_does(calibrated: venn_admit.Classifier, copied: str, tmp_path: Path) -> None:
    columns = samples.scored()
    decisions = calibrated.score(**arrays(columns, with_labels=False))
    assert decisions.column("external_id").to_pylist() == columns["external_id"].tolist()
    admitted = decisions.column("decided_class").to_pylist()
    assert 0 < sum(name is not None for name in admitted) < samples.SCORED_ROWS

    program = Program({"VENN_ADMIT_DATABASE_URL": copied, "VENN_ADMIT_HOME": str(tmp_path / "home")})
    file, out = samples.save(tmp_path, "scored.npz", columns), tmp_path / "scores.parquet"
    assert program("score", samples.NAME, file, "--out", out).code == 0
    assert pq.read_table(out).equals(decisions)


def test_an_output_is_checked_before_anything_is_scored(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "new.parquet", samples.scored())
    before = path.read_bytes()
    for out, problem in (
        (path, "an output that is not an input"),
        (tmp_path / "none" / "d.csv", "a folder that exists"),
    ):
        with pytest.raises(venn_admit.InvalidInputError, match=problem):
            calibrated.score(path, out=out)
    assert path.read_bytes() == before
    with pytest.raises(venn_admit.NotFoundError, match="has no exemplar"):
        calibrated.forget([samples.scored()["external_id"][0]])


def test_settings_are_compared_as_the_command_line_does(
    calibrated: venn_admit.Classifier, copied: str, tmp_path: Path
) -> None:
    found = calibrated.compare(alpha=0.2)
    program = Program({"VENN_ADMIT_DATABASE_URL": copied, "VENN_ADMIT_HOME": str(tmp_path / "home")})
    said = program("calibrate", samples.NAME, "--compare", "--alpha", "0.2", "--json").result
    assert (str(found.alpha), found.mc_points, found.documents) == (said["alpha"], said["mc"], said["documents"])
    assert found.left_out == {}
    for one, row in zip(found.outcomes, said["settings"], strict=True):
        assert one.admitted_share == row["admitted_share"]
        assert one.every_class_reaches == row["every_class_reaches"]
        for shares, name in ((one.per_true_class, "per_true_class"), (one.per_predicted_class, "per_predicted_class")):
            for share, each in zip(shares, row[name], strict=True):
                assert (share.label, share.admitted, share.right) == (each["name"], each["admitted"], each["right"])
                assert (share.share, list(share.interval)) == (each["share_right"], each["interval"])
    for foretold, row in zip(found.foretold, said["foretold"], strict=True):
        assert (foretold.promises, foretold.admitted_share) == (row["promises"], row["admitted_share"])
        assert [one.right for one in foretold.per_true_class] == [one["right"] for one in row["per_true_class"]]
    default = calibrated.calibrate(**found.foretold[0].settings)
    assert default.certificate is not None
    assert found.proposal in found.outcomes
    for one in (*found.outcomes[4::5], found.proposal):
        made = calibrated.calibrate(**one.settings)
        assert (made.method, made.q_bins) == (one.settings["method"], one.settings["q_bins"])
        assert (made.kappa, made.score) == (one.settings.get("kappa"), one.settings.get("score"))
    with pytest.raises(venn_admit.InvalidInputError, match="alpha must"):
        calibrated.compare(alpha="1")


def test_ledger_and_history_say_that_it_was_asked_for_in_python(
    calibrated: venn_admit.Classifier, opened: venn_admit.Connection, copied: str
) -> None:
    calibrated.calibrate(alpha="0.3")
    calibrated.use(1)
    calibrated.ingest(**arrays(samples.scored()))
    assert calibrated.recalibrate()
    made = opened.create_generation(samples.NAME, extractor="one")
    second = f"{samples.NAME}@2"
    opened.state_extractor(second, "two")
    made.ingest(**arrays(samples.train()), split="train", extractor="two")
    made.ingest(**arrays(samples.held_out()), extractor="two")
    made.fit()
    made.calibrate(**SETTINGS)
    made.forget(samples.held_out()["external_id"][:1])
    opened.switch(second)
    uses = rows(copied, "SELECT DISTINCT reason, origin FROM report.calibration_use_v1")
    opened.delete(samples.NAME)
    assert len(uses) > 3
    assert {origin for _, origin in uses} == {"python"}
    assert rows(copied, "SELECT action, origin FROM report.audit_v1 ORDER BY event") == [
        (action, "python")
        for action in (
            "create_generation",
            "state_extractor",
            "forget_exemplars",
            "switch_generation",
            "delete_classifier",
        )
    ]


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]
    finally:
        engine.dispose()


def test_one_at_a_time_decides_as_many_at_once(calibrated: venn_admit.Classifier) -> None:
    columns = samples.scored()
    decisions = calibrated.score(**arrays(columns, with_labels=False)).to_pylist()
    for row in range(0, samples.SCORED_ROWS, 10):
        one = calibrated.decide(columns["vector"][row])
        expected = decisions[row]
        assert (one.admitted, one.predicted, one.reason) == (
            expected["decided_class"],
            expected["predicted_class"],
            expected["reason"],
        )
        assert (one.lower, one.upper, one.match_count, one.distance) == tuple(
            expected[name] for name in ("lower", "upper", "q", "d")
        )
        assert one.calibration == expected["calibration"]
        assert len(one.neighbours) == samples.K
        assert [near.distance for near in one.neighbours] == sorted(near.distance for near in one.neighbours)


@pytest.mark.parametrize(
    ("unfit", "saying"),
    [
        ({"neighbours": -1}, "neighbours: expected 0 or more, got -1"),
        ({"neighbours": 2.5}, "neighbours: expected a whole number, got 2.5"),
        ({"attributes": "region"}, "attributes: expected a dictionary or another mapping, got 'region'"),
        ({"attributes": {1: "north"}}, "attributes: expected values by name"),
    ],
)
def test_one_at_a_time_is_refused_what_a_request_is(
    calibrated: venn_admit.Classifier, unfit: dict[str, Any], saying: str
) -> None:
    with pytest.raises(venn_admit.InvalidInputError, match=saying):
        calibrated.decide(samples.scored()["vector"][0], **unfit)


def test_progress_is_told_of_each_chunk(copied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENN_ADMIT_CHUNK_ROWS", "50")
    told = list[int]()
    with venn_admit.connect(copied, home=tmp_path / "home") as opened:
        classifier = opened.classifier(samples.NAME)
        classifier.score(**arrays(samples.scored(), with_labels=False), progress=lambda done, _: told.append(done))
    assert told == [samples.SCORED_ROWS, 50, 100, 150, 200], "of what is stored, then of what is decided"


def test_progress_is_told_and_fewer_neighbours_are_named(connection: venn_admit.Connection) -> None:
    classifier, told = create(connection), list[tuple[int, int]]()

    def note(done: int, rows: int) -> None:
        told.append((done, rows))

    def last() -> tuple[int, int]:
        assert told == sorted(told)
        found = told[-1]
        told.clear()
        return found

    held_out = arrays(samples.held_out())
    rows = len(held_out["labels"])
    classifier.ingest(**arrays(samples.train()), split="train")
    classifier.ingest(**held_out, progress=note)
    assert last() == (rows, rows)
    classifier.label({held_out["ids"][0]: held_out["labels"][0].item()}, progress=note)
    assert last() == (1, 1)
    classifier.fit(progress=note)
    done, searched = last()
    assert 0 < done == searched < rows
    classifier.calibrate(**SETTINGS)
    columns = samples.scored()
    classifier.score(**arrays(columns, with_labels=False), progress=note)
    assert last() == (samples.SCORED_ROWS, samples.SCORED_ROWS)
    assert len(classifier.decide(columns["vector"][0], neighbours=2).neighbours) == 2


@pytest.mark.parametrize("form", ["path", "table", "reader", "pandas", "tensors"])
def test_exemplars_in_any_form(connection: venn_admit.Connection, tmp_path: Path, form: str) -> None:
    classifier, columns = create(connection), samples.held_out()
    path = write_parquet(tmp_path / "held-out.parquet", columns)
    table = pq.read_table(path)
    match form:
        case "path":
            done = classifier.ingest(str(path))
        case "table":
            done = classifier.ingest(table)
        case "reader":
            done = classifier.ingest(table.to_reader(max_chunksize=100))
        case "pandas":
            done = classifier.ingest(pd.DataFrame({name: list(values) for name, values in columns.items()}))
        case _:
            done = classifier.ingest(
                vectors=torch.from_numpy(columns["vector"]).requires_grad_(),
                logits=torch.from_numpy(columns["logits"]),
                labels=torch.from_numpy(columns["label"]),
                ids=columns["external_id"],
            )
    assert (done.rows, done.new, sum(done.new_per_split.values())) == (samples.HELD_OUT_ROWS,) * 3
    assert classifier.ingest(**arrays(columns)).new == 0  # the same content, whatever form it came in


def test_labels_arrive(calibrated: venn_admit.Classifier) -> None:
    columns = samples.scored()
    calibrated.score(**arrays(columns, with_labels=False))
    names = dict(zip(columns["external_id"].tolist(), columns["label"].tolist(), strict=True))
    first, *others = names.items()
    done = calibrated.label(dict([first]))
    assert (done.rows, done.new, done.recalibrations_due) == (1, 1, 1)
    frame = pd.DataFrame(others, columns=["external_id", "label"])
    frame["label"] = [samples.CLASS_NAMES[number] for number in frame["label"]]
    assert calibrated.label(frame).new == samples.SCORED_ROWS - 1
    (second,) = calibrated.recalibrate()
    assert second == 2
    assert calibrated.recalibrate() == []
    assert calibrated.decide(columns["vector"][0]).calibration == second


def test_training_exemplars_that_wait_are_counted(calibrated: venn_admit.Classifier, copied: str) -> None:
    assert calibrated.training_waiting() == 0
    hold_training(copied)
    done = calibrated.ingest(**arrays(samples.exemplars("two", 2, seed=7)), split="train")
    assert (done.new, done.training_waiting, done.recalibrations_due) == (2, 2, 0)
    assert calibrated.training_waiting() == 2
    assert calibrated.report().to_dict()["stored"]["training_waiting"] == 2
    again = calibrated.ingest(**arrays(samples.train()), split="train")
    assert (again.new, again.training_waiting) == (0, 2), "those that came before wait on"


def test_monitors(calibrated: venn_admit.Classifier) -> None:
    columns = samples.scored()
    calibrated.score(**arrays(columns, with_labels=False))
    assert not calibrated.monitor().alarm
    wrong = (columns["label"] + 1) % samples.CLASS_COUNT
    calibrated.label(dict(zip(columns["external_id"].tolist(), wrong.tolist(), strict=True)))
    found = calibrated.monitor()
    assert found.alarm
    assert found.to_dict()["documents"] == samples.SCORED_ROWS
    assert "ALARM" in str(found)
    assert not calibrated.monitor(restart=True).alarm


@pytest.mark.usefixtures("blank_charts")
def test_evaluations_and_reports(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    evaluation = calibrated.evaluate(**arrays(samples.scored()), source="fresh colours")
    figures = evaluation.to_dict()
    assert "fresh colours" in str(evaluation)
    assert repr(evaluation) == "<Evaluation of 'colours' by 'fresh colours'>"
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    page = evaluation.write(tmp_path / "evaluation")
    assert page.read_text().startswith("<!doctype html>")
    assert (tmp_path / "evaluation" / "evaluation.json").is_file()
    again = calibrated.evaluate()  # what was decided on
    assert again.to_dict()["methods"] == figures["methods"]

    report = calibrated.report()
    assert "What to do next" in str(report)
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.write(tmp_path / "report").is_file()


def test_what_is_stored_is_found_again(calibrated: venn_admit.Classifier, opened: venn_admit.Connection) -> None:
    (found,) = opened.classifiers()
    assert repr(found) == repr(opened.classifier(samples.NAME)) == repr(calibrated)
    assert (found.name, found.classes, found.dimension) == (samples.NAME, samples.CLASS_NAMES, samples.DIMENSION)
    with pytest.raises(venn_admit.NotFoundError, match="other"):
        opened.classifier("other")
    assert repr(opened.create("other", ("a", "b"), dimension=2)) == repr(opened.classifier("other"))


def test_of_many_classifiers_a_message_names_some(connection: venn_admit.Connection) -> None:
    for number in range(21):
        connection.create(f"c{number:02}", ("a", "b"), logits_only=True)
    with pytest.raises(venn_admit.NotFoundError, match=r"'other'; known: c00, c01, .*, c18, c19 and 1 more$"):
        connection.classifier("other")


def test_a_connection_says_to_what_without_passwords() -> None:
    address = "postgresql://somebody:hunter2@127.0.0.1:5432/calibrations"
    runtime = Runtime.start(read_settings(database_url=address), application_name="test")
    shown = repr(venn_admit.Connection(runtime))
    assert shown == f"<Connection to {address.replace('hunter2', '***')}>"


def test_nothing_is_printed(
    calibrated: venn_admit.Classifier, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="venn_admit"):
        calibrated.score(**arrays(samples.scored(), with_labels=False))
    assert capfd.readouterr() == ("", "")
    assert "Scoring arrays" in caplog.text
    assert "chunk is done (job" in caplog.text


def test_what_the_command_line_warns_of_is_logged(
    calibrated: venn_admit.Classifier, caplog: pytest.LogCaptureFixture
) -> None:
    train = samples.take(samples.train(), slice(7))
    calibrated.score(**arrays(train, with_labels=False))
    labels = pd.DataFrame({"external_id": train["external_id"][:1], "label": train["label"][:1], "seen by": ["anna"]})
    assert calibrated.label(labels, selection="selected", source="a sheet").ignored == ("seen by",)
    rows, columns = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert rows.getMessage().startswith("some rows are exemplars that the classifier was made with: training 7 (each")
    assert columns.getMessage() == "a sheet: these columns are ignored: seen by"


def test_flows_print_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("structlog.is_configured", lambda: False)
    log.warning("message not passed on", job=1)
    assert capfd.readouterr() == ("", "")
    assert caplog.record_tuples == [("venn_admit", logging.WARNING, "message not passed on (job 1)")]


def test_a_call_that_is_interrupted_leaves_no_job_behind(
    calibrated: venn_admit.Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    columns = samples.scored()
    with monkeypatch.context() as patched:
        patched.setattr("venn_admit.flows.jobs.chunks.ChunkRunner.compute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            calibrated.score(**arrays(columns, with_labels=False))
    assert calibrated.forget([columns["external_id"][0]]).is_done


def test_what_is_stored_can_be_exported(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    calibrated.score(**arrays(samples.scored(), with_labels=False))
    assert calibrated.export("unlabelled", tmp_path / "unlabelled.parquet") == samples.SCORED_ROWS
    assert calibrated.export("parameters", tmp_path / "parameters.json") == 1
    with pytest.raises(venn_admit.InvalidInputError, match=r"what: expected exemplars, .* got 'all'"):
        calibrated.export("all", tmp_path / "all.parquet")


def test_advice_names_calls(calibrated: venn_admit.Classifier, opened: venn_admit.Connection) -> None:
    other = opened.create("other", ["a", "b"], dimension=2)
    with pytest.raises(venn_admit.NotReadyError) as refusal:
        other.calibrate()
    assert refusal.value.__notes__ == ["call `classifier.fit()`"]
    columns = samples.exemplars("later", 40, seed=4)
    calibrated.ingest(**arrays(columns))
    advised = '`classifier.calibrate(method="venn-admit", alpha="0.2", kappa=10, q_bins=[0, 1])`'
    assert advised in " ".join(str(calibrated.report()).split())


@pytest.mark.usefixtures("blank_charts")
def test_by_venn_abers_it_decides_on_the_network(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    made = calibrated.calibrate(method="venn-abers", promise="pointwise", alpha="0.2", score="network")
    assert (made.method, made.score, made.kappa, made.usable_share) == ("venn-abers", "network", None, None)
    report = calibrated.report()
    assert "method venn-abers, alpha 0.2" in str(report)
    assert "What to do next" in str(report)
    page = report.write(tmp_path / "report")
    assert json.loads(page.with_name("report.json").read_text()) == report.to_dict()
    assert "<svg" in page.read_text()
    evaluation = calibrated.evaluate(**arrays(samples.scored()), source="fresh colours")
    assert evaluation.to_dict()["own_method"] == "Venn-Abers network"
    assert "Venn-Abers network admits" in str(evaluation)
    assert "Venn-Abers network" in evaluation.write(tmp_path / "evaluation").read_text()
    with pytest.raises(venn_admit.InvalidInputError, match="kappa: the method venn-abers has no such setting, got 5"):
        calibrated.calibrate(method="venn-abers", kappa=5)
    columns = samples.scored()
    decided = calibrated.score(**arrays(columns, with_labels=False)).to_pylist()
    one = calibrated.decide(columns["vector"][3], logits=columns["logits"][3])
    assert (one.lower, one.upper, one.reason) == tuple(decided[3][name] for name in ("lower", "upper", "reason"))
    assert one.evidence["score"] == decided[3]["score"]
    assert one.predicted == samples.CLASS_NAMES[int(columns["logits"][3].argmax())]
    with pytest.raises(venn_admit.InvalidInputError, match="expected the network's logits with the vector"):
        calibrated.decide(columns["vector"][3])
    with pytest.raises(venn_admit.InvalidInputError, match=r"logits: expected shape \(3,\), got \(8,\)"):
        calibrated.decide(columns["vector"][3], logits=columns["vector"][3])


def test_a_certificate_is_returned_and_decided_by(
    calibrated: venn_admit.Classifier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: dict[str, Any] = {"method": "venn-abers", "promise": "pointwise", "score": "network"}
    made = calibrated.calibrate(**asked, alpha=0.1, certify=("predicted", "true"), confidence=0.9)
    found = made.certificate
    assert found is not None
    assert (found.is_certified, found.kinds, str(found.confidence)) == (True, ("predicted", "true"), "0.9")
    assert (found.test, found.documents_needed, found.labels_needed) == ("finite-sample", None, None)
    assert found.thresholds is not None
    assert tuple(found.thresholds) == samples.CLASS_NAMES
    assert [(one.kind, one.name) for one in found.classes] == [
        (kind, name) for kind in found.kinds for name in samples.CLASS_NAMES
    ]
    assert found.admitted == pytest.approx(sum(one.admitted for one in found.classes if one.kind == "true"))
    assert all(one.p_value is not None and one.p_value <= 0.1 and one.labels_needed is None for one in found.classes)
    columns = samples.scored()
    for row in calibrated.score(**arrays(columns, with_labels=False)).to_pylist():
        threshold = found.thresholds[row["predicted_class"]]
        admitted = threshold is not None and row["score"] >= threshold
        assert (row["decided_class"] is not None) == admitted
    one = calibrated.decide(columns["vector"][3], logits=columns["logits"][3])
    assert one.evidence["policy"] == {
        "is_certified": True,
        "promise": "both",
        "promise_sentence": Promised.BOTH.stated(Decimal("0.1"), Decimal("0.9")),
        "threshold": found.thresholds[one.predicted],
        "bounded": "score",
        "has_groups": False,
    }
    assert calibrated.report().to_dict()["certificate"] == found.document
    assert "Certified with confidence 0.9" in str(calibrated.report())
    calibrated.export("policy", tmp_path / "policy.json")
    assert found.document.items() <= json.loads((tmp_path / "policy.json").read_text()).items()
    with pytest.raises(venn_admit.InvalidInputError, match="weights have no part"):
        calibrated.score(**arrays(columns, with_labels=False), weighted=True)

    looked = calibrated.calibrate(**asked, alpha="0.01", certify="predicted", dry_run=True)
    assert (looked.id, looked.withheld is None) == (None, False)
    assert str(looked).startswith("Dry run: venn-abers, alpha 0.01")
    stored = calibrated.calibrate(**asked, alpha="0.01", certify="predicted")
    assert stored.id is not None
    few = stored.certificate
    assert few is not None
    assert stored.withheld is not None
    assert (stored.withheld.in_use, stored.withheld.share) == (made.id, 0.0)
    assert f"and calibration {made.id}, which it would have replaced" in str(stored)
    assert (few.is_certified, few.thresholds, few.admitted) == (False, None, None)
    assert few.labels_needed is not None
    assert few.labels_needed > made.vp_points + made.mc_points
    short = [one for one in few.classes if not one.is_promised]
    assert short
    assert all(one.labels_needed is None or one.labels_needed == one.documents_needed for one in short)
    used = calibrated.use(stored.id, reason="to see it")
    assert used == venn_admit.PutInUse(samples.NAME, stored.id, made.id, True, True)
    assert f"calibration {stored.id} admits none of its calibration points: a report says why" in caplog.messages
    assert set(calibrated.score(**arrays(columns)).column("reason").to_pylist()) == {"policy not certified"}
    with pytest.raises(venn_admit.NotFoundError, match="has no calibration 99"):
        calibrated.use(99)
    assert calibrated.calibrate(**asked).certificate is None


def test_what_if_training_exemplars_were_different(
    calibrated: venn_admit.Classifier, copied: str, tmp_path: Path
) -> None:
    columns, train = samples.scored(), samples.train()
    calibrated.score(**arrays(columns, with_labels=False))
    near = calibrated.decide(columns["vector"][0]).neighbours
    relabel = {one.id: next(name for name in samples.CLASS_NAMES if name != one.label) for one in near}
    leave_out = [one for one in train["external_id"].tolist() if one not in relabel][:40]
    other = calibrated.what_if_training(relabel=relabel, leave_out=leave_out)
    found = other.to_dict()
    assert other.flipped_count == len(other.flipped) == found["decisions"]["flipped"] > 0
    assert all(before != after for before, after in other.flipped.values())
    assert "Decisions that would differ" in str(other)

    program = Program({"VENN_ADMIT_DATABASE_URL": copied, "VENN_ADMIT_HOME": str(tmp_path / "home")})
    options = [
        *(option for one, name in relabel.items() for option in ("--relabel", f"{one}={name}")),
        *(option for one in leave_out for option in ("--leave-out", one)),
    ]
    assert program("what-if", samples.NAME, *options, "--json").result == found


def test_what_if_a_part_of_the_setting_were_varied(calibrated: venn_admit.Classifier, tmp_path: Path) -> None:
    other = calibrated.what_if_settings(alpha=["0.1", 0.3])
    assert [one.settings["alpha"] for one in other.outcomes] == ["0.1", "0.2", "0.3"]
    assert all(one.settings["kappa"] == 10 for one in other.outcomes)
    assert 0 <= other.outcomes[0].admitted_share < other.outcomes[2].admitted_share
    assert "0.2 (in use)" in str(other)
    picture = other.write(tmp_path / "folder")
    assert json.loads((picture.parent / "what-if.json").read_text()) == other.to_dict()
    chosen = other.outcomes[2].settings
    assert calibrated.calibrate(**chosen).alpha == Decimal("0.3")
    with pytest.raises(venn_admit.InvalidInputError, match=r"expected values of one of alpha, .* got alpha and kappa"):
        calibrated.what_if_settings(alpha=["0.1"], kappa=[5])
    with pytest.raises(venn_admit.InvalidInputError, match="got none"):
        calibrated.what_if_settings()


def test_what_if_traffic_had_other_class_shares(calibrated: venn_admit.Classifier, copied: str, tmp_path: Path) -> None:
    made = calibrated.calibrate(
        method="venn-abers", promise="pointwise", score="network", alpha=0.1, certify="predicted", confidence=0.9
    )
    assert made.certificate is not None
    assert made.certificate.is_certified
    other = calibrated.what_if_class_shares([["0.2", 0.3, "0.5"], ["1", "0", "0"]])
    assert [one["class_shares"] for one in other.to_dict()["tried"]] == [["0.2", "0.3", "0.5"], ["1", "0", "0"]]
    assert "0.2, 0.3, 0.5" in str(other)
    program = Program({"VENN_ADMIT_DATABASE_URL": copied, "VENN_ADMIT_HOME": str(tmp_path / "home")})
    options = ("what-if", samples.NAME, "--class-shares", "0.2,0.3,0.5", "--class-shares", "1,0,0")
    assert program(*options, "--json").result == other.to_dict()
    assert "every bound holds" in " ".join(program(*options).stdout.split())


def test_k_is_chosen_before_the_first_fit(connection: venn_admit.Connection) -> None:
    classifier = create(connection)
    classifier.ingest(**arrays(samples.train()), split="train")
    classifier.ingest(**arrays(samples.held_out()))
    chosen = classifier.choose_k()
    assert classifier.fit().points > 0
    with pytest.raises(venn_admit.ConflictError, match=f"has results with K {chosen}"):
        classifier.choose_k()


class TestRefusals:
    def test_the_default_kappa_that_leaves_nothing(self, connection: venn_admit.Connection) -> None:
        classifier = create(connection)
        classifier.ingest(**arrays(samples.train()), split="train")
        classifier.ingest(**arrays(samples.held_out()))
        classifier.fit()
        with pytest.raises(
            venn_admit.NotReadyError,
            match=r'no calibration was stored: .* `classifier.calibrate\(method="venn-admit", kappa=\d+',
        ) as refusal:
            classifier.calibrate(method="venn-admit")
        assert "--" not in str(refusal.value)
        with pytest.raises(venn_admit.NotReadyError, match="no calibration"):
            classifier.decide(samples.scored()["vector"][0])

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "expected data, or vectors and logits, or logits only; logits are missing"),
            ({"logits": np.zeros((1, 3))}, r"vectors: expected shape \(n, 8\), got none; give them with the logits"),
            ({"vectors": np.zeros((1, 8))}, "logits are missing"),
            ({"data": "x.npz", "labels": [1]}, "expected either data or arrays, got both: data and labels"),
            ({"data": 3}, "expected a path, a pyarrow Table .* got an int"),
            ({"data": pa.table({"vector": [[0.0]]})}, "table: columns: expected one named 'logits'"),
        ],
    )
    def test_what_holds_no_exemplars(
        self, connection: venn_admit.Connection, given: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            create(connection).ingest(**given)

    @pytest.mark.parametrize(
        ("vector", "message"),
        [
            (np.zeros(3), r"vector: expected shape \(8,\), got \(3,\)"),
            (np.full(8, np.inf), r"vector\[0\]: expected a finite number"),
            ([0.0] * 7 + [1e60], r"vector\[7\]: expected a finite number that float32 can hold"),
        ],
    )
    def test_a_vector_that_is_none(self, calibrated: venn_admit.Classifier, vector: Any, message: str) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=message):
            calibrated.decide(vector)

    def test_a_float_alpha_is_the_decimal_that_it_prints_as(self, calibrated: venn_admit.Classifier) -> None:
        assert str(calibrated.calibrate(method="venn-admit", alpha=0.2, kappa=10, q_bins=[0, 1]).alpha) == "0.2"
        with pytest.raises(venn_admit.InvalidInputError, match="alpha: expected a decimal number"):
            calibrated.calibrate(alpha="a tenth")

    def test_a_setting_that_is_none(self) -> None:
        with pytest.raises(venn_admit.InvalidInputError, match=r"^memory_budget_mb: expected .*16, got 1$"):
            venn_admit.connect(memory_budget_mb=1)
        with pytest.raises(venn_admit.InvalidInputError, match=r"^home: expected a path, got 5$"):
            venn_admit.connect(home=5)  # type: ignore[arg-type]

    def test_a_database_without_our_schema(self, empty_database: str, tmp_path: Path) -> None:
        with pytest.raises(venn_admit.NotReadyError) as refusal:
            venn_admit.connect(empty_database, home=tmp_path)
        assert refusal.value.__notes__ == ["call `venn_admit.connect(..., migrate=True)`"]
        with venn_admit.connect(empty_database, home=tmp_path, migrate=True) as connection:
            assert connection.classifiers() == []

    def test_a_job_that_fails_says_why(
        self, calibrated: venn_admit.Classifier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ArithmeticError("out of luck")

        monkeypatch.setenv("VENN_ADMIT_RETRY_SECONDS", "0")
        monkeypatch.setattr("venn_admit.methods.venn_admit.snapshot.decide", fail)
        with pytest.raises(venn_admit.JobError, match="ArithmeticError: out of luck"):
            calibrated.score(**arrays(samples.scored(), with_labels=False))


@pytest.mark.processes
def test_every_public_name_is_there_and_none_is_imported_early() -> None:
    assert all(getattr(venn_admit, name) is not None for name in venn_admit.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        venn_admit.nothing  # type: ignore[attr-defined]  # noqa: B018
    program = "import sys, venn_admit; print(sorted(name for name in sys.modules if name.startswith('venn_admit')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['venn_admit']\n"


@pytest.mark.processes
def test_deciding_imports_no_torch(calibrated: venn_admit.Classifier, copied: str, tmp_path: Path) -> None:
    program = (
        "import sys, numpy, venn_admit\n"
        f"with venn_admit.connect({copied!r}, home={str(tmp_path / 'home')!r}) as connection:\n"
        f"    connection.classifier({calibrated.name!r}).decide(numpy.zeros({samples.DIMENSION}))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_example_data_are_as_they_are_described() -> None:
    described = " ".join((venn_admit.example_data.__doc__ or "").split())
    folder = venn_admit.example_data()
    assert {path.name for path in folder.iterdir()} == {"train.npz", "valid.npz", "test.npz", "ood.npz"}
    for path in folder.iterdir():
        with np.load(path) as arrays:
            assert f"`{path.name}` ({len(arrays['y']):,} " in described
            assert set(arrays.files) == {"r", "f", "y", "id", "doc", "group"}
            assert all(f"`{name}`" in described for name in arrays.files)
