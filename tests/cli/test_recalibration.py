"""`recalibrate`: what labels and data have made out of date, at once; and who says that it is."""

from pathlib import Path

import pytest

from tests.cli import samples
from tests.cli.databases import CALIBRATION
from tests.cli.program import Outcome, Program, check_refusal, nothing_stored
from tests.cli.samples import NAME
from tests.holding import hold_training
from venn_admit.store.database.engine import create_engine, transaction


def labels(program: Program, folder: Path, rows: range, shift: int = 1) -> dict[str, object]:
    """Other labels for held-out rows, as a file that arrives; what `label` told."""
    truth = (samples.held_out()["label"] + shift) % samples.CLASS_COUNT
    path = folder / "labels.csv"
    path.write_text("\n".join(["external_id,label", *(f"held-out-{row},{truth[row]}" for row in rows)]) + "\n")
    return program("label", NAME, path, "--json").result


def more(folder: Path) -> Path:
    """Held-out data that come later."""
    return samples.save(folder, "more.npz", samples.exemplars("more", 100, seed=4))


def test_nothing_to_do(calibrated: Program) -> None:
    with nothing_stored(calibrated):
        assert "Nothing to do" in calibrated("recalibrate").stdout
        assert calibrated("recalibrate", NAME, "--json").result == {"recalibrations": []}
        check_refusal(calibrated("recalibrate", "nothing"), 3, "no classifier is named 'nothing'")


def test_labels_and_data_are_taken_up_under_every_setting(own_calibrated: Program, tmp_path: Path) -> None:
    before = own_calibrated("calibrate", NAME, *CALIBRATION, "--json").result
    assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.1", "--kappa", 5).code == 0
    assert own_calibrated("calibrate", NAME, *CALIBRATION).code == 0
    assert labels(own_calibrated, tmp_path, range(50))["recalibrations_due"] == 2
    told = own_calibrated("ingest", NAME, more(tmp_path), "--split", "held-out", "--json").result
    assert told["recalibrations_due"] == 2

    done = own_calibrated("recalibrate", NAME, "--json").result["recalibrations"]
    assert [(one["classifier"], one["alpha"], one["kappa"]) for one in done] == [(NAME, "0.2", 10), (NAME, "0.1", 5)]
    for one in done:
        assert (one["reason"], one["error"]) == ("labels, held-out data", None)
        assert one["mc"] + one["vp"] == before["mc"] + before["vp"] + sum(
            told["new_per_split"].get(split, 0) for split in ("mc", "vp")
        )
        assert one["rows_opened"] >= one["rows_closed"] > 0
    scored = own_calibrated(
        "score",
        NAME,
        samples.save(tmp_path, "scored.npz", samples.scored()),
        "--out",
        tmp_path / "out.parquet",
        "--json",
    ).result
    assert scored["calibration"] == done[0]["calibration"], "the setting in use is the one calibrated last"
    with nothing_stored(own_calibrated):
        assert "Nothing to do" in own_calibrated("recalibrate").stdout


def test_without_a_calibration_there_is_nothing_that_labels_could_follow(ingested: Program) -> None:
    said = ingested("recalibrate", NAME).stdout
    assert said == f"There is no calibration yet: run `venn-admit calibrate {NAME}`.\n"
    assert ingested("recalibrate", NAME, "--json").result == {"recalibrations": []}


def test_people_are_told(own_calibrated: Program, tmp_path: Path) -> None:
    said = own_calibrated("ingest", NAME, more(tmp_path), "--split", "held-out").stdout
    assert f"A recalibration is due: run `venn-admit recalibrate {NAME}`, or leave it to beat." in said
    said = own_calibrated("recalibrate").stdout
    assert f"{NAME} (venn-admit, alpha 0.2, delta 1, kappa 10): calibration 2 is in use; for held-out data, " in said


def test_only_the_setting_in_use_is_said_to_be_current(own_calibrated: Program, tmp_path: Path) -> None:
    assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.1", "--kappa", 5).code == 0
    labels(own_calibrated, tmp_path, range(50))
    said = own_calibrated("recalibrate", NAME).stdout
    assert "alpha 0.2, delta 1, kappa 10): calibration 3 keeps its setting current, which is not in use; " in said
    assert "alpha 0.1, delta 1, kappa 5): calibration 4 is in use; " in said


@pytest.mark.usefixtures("blank_charts")
def test_training_exemplars_that_wait_are_counted_wherever_one_looks(own_calibrated: Program, tmp_path: Path) -> None:
    def ingest(name: str, rows: int, *json: str) -> Outcome:
        columns = samples.exemplars(name, rows, seed=7)
        return own_calibrated("ingest", NAME, samples.save(tmp_path, f"{name}.npz", columns), "--split", "train", *json)

    hold_training(own_calibrated.url)
    one, four = (
        f"{they_wait} until a calibration or fit that has begun is over, for ten minutes at most."
        for they_wait in ("1 training exemplar waits", "4 training exemplars wait")
    )
    assert one in ingest("one", 1).stdout
    told = ingest("three", 3, "--json").result
    assert (told["new"], told["training_waiting"], told["recalibrations_due"]) == (3, 4, 0)
    for verb in ("show", "report", "recalibrate"):
        assert four in " ".join(own_calibrated(verb, NAME).stdout.split()), verb
    assert own_calibrated("recalibrate").stdout.startswith("Nothing to do: 4 training exemplars wait until")
    assert own_calibrated("show", NAME, "--json").result["training_waiting"] == 4
    assert own_calibrated("report", NAME, "--json").result["stored"]["training_waiting"] == 4
    assert own_calibrated("report", NAME, "--out", tmp_path / "report").code == 0
    assert four in (tmp_path / "report" / "index.html").read_text()


def test_new_parameters_ask_for_it(own_calibrated: Program, tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    assert own_calibrated("export", NAME, "--what", "parameters", "--out", given).code == 0
    due = f"A recalibration is due: run `venn-admit recalibrate {NAME}`, or leave it to beat."
    for verb in (("fit", NAME), ("fit", NAME, "--parameters", given)):
        assert own_calibrated(*verb).stdout.splitlines()[-1] == due
        assert own_calibrated(*verb, "--json").result["recalibrations_due"] == 1
        (done,) = own_calibrated("recalibrate", NAME, "--json").result["recalibrations"]
        assert (done["reason"], done["error"]) == ("new parameters", None)


def test_what_cannot_be_served_says_why_and_may_be_tried_again(own_calibrated: Program, tmp_path: Path) -> None:
    labels(own_calibrated, tmp_path, range(50))
    engine = create_engine(own_calibrated.url)
    for split, other in (("mc", "knn"), ("knn", "mc")):
        with transaction(engine) as connection:
            connection.exec_driver_sql(f"UPDATE exemplar SET split = '{other}' WHERE split = '{split}'")
        outcome = own_calibrated("recalibrate", NAME)
        if split == "mc":
            assert outcome.code == 4
            assert f"error: 1 of 1 recalibrations failed: {NAME}: split mc" in outcome.stderr
            assert "not recalibrated." in outcome.stdout
        else:
            assert outcome.code == 0
    engine.dispose()


@pytest.mark.parametrize("keep", ["0", "some"])
def test_keeping_no_snapshot_is_refused(calibrated: Program, keep: str) -> None:
    program = Program(calibrated.environment | {"VENN_ADMIT_KEEP_CALIBRATIONS": keep})
    check_refusal(program("recalibrate"), 2, "VENN_ADMIT_KEEP_CALIBRATIONS: expected a whole number, at least 1")


def test_old_snapshots_go_where_asked(own_calibrated: Program, tmp_path: Path) -> None:
    program = Program(own_calibrated.environment | {"VENN_ADMIT_KEEP_CALIBRATIONS": "2"})
    for shift in (1, 2, 0):
        labels(program, tmp_path, range(50), shift)
        assert program("recalibrate").code == 0
    for calibration, code in ((1, 3), (2, 3), (3, 0), (4, 0)):
        out = tmp_path / f"{calibration}.parquet"
        assert program("export", NAME, "--what", "calibration", "--calibration", calibration, "--out", out).code == code
