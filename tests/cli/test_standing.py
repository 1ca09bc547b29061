"""The program says how far a certificate came that stands while labels arrive."""

from pathlib import Path

import pytest

from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import NAME
from venn_admit.core.standing import following

BEGIN = ("calibrate", NAME, "--standing", "--alpha", "0.3", "--score")


def more(program: Program, folder: Path, name: str, split: str, count: int = 1500) -> None:
    rows = samples.exemplars(name, count, seed=sum(name.encode()))
    assert program("ingest", NAME, samples.save(folder, f"{name}.npz", rows), "--split", split).code == 0


def test_it_says_how_far_it_came(own_calibrated: Program, tmp_path: Path) -> None:
    program = own_calibrated
    begun = program(*BEGIN, "network")
    assert "Certified with confidence 0.95, whenever one looks" in begun.stdout
    assert "Chain 1, with 0.025 of 1 - confidence, after 1,353 labels" in begun.stdout
    more(program, tmp_path, "more", "held-out")
    assert "Chain 1, with 0.025 of 1 - confidence, after 2,853 labels" in program("recalibrate", NAME).stdout
    shown = program("show", NAME).stdout
    assert "with confidence 0.95, whenever one looks, at least 0.7 are right among the admitted of each" in shown
    assert "after 2,853 labels: red 45 of 45 thresholds" in shown
    chain = program("show", NAME, "--json").result["settings"][0]["chain"]
    assert (chain["chain"], chain["labels"], chain["classes"][0]["certified"]) == (1, 2853, 45)
    assert "Chain 1, with 0.025 of 1 - confidence, after 2,853 labels" in program("monitor", NAME).stdout
    assert program("monitor", NAME, "--json").result["chain"] == chain
    second = program(*BEGIN, "network").stdout
    assert "Not certified yet" in second
    assert "Chain 2, with 0.0083 of 1 - confidence, after 0 labels: red 0 of" in second
    assert "the next in about" in second
    listed = program("calibrations", NAME).stdout
    assert "2 certificates looked at the labels of mc and vp; all hold together with confidence 0.966666." in listed


def test_it_names_the_next_chain_if_that_would_admit_clearly_more(
    own_calibrated: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = own_calibrated
    program(*BEGIN, "network")
    monkeypatch.setattr(following, "CLEARLY", -1.0)  # any next one would
    more(program, tmp_path, "more", "held-out")
    said = program("recalibrate", NAME).stdout
    assert "A new chain, fixed by the labels of today, would admit about" in said
    assert "after 2,853 further labels; it would be chain 2, with 0.0083 of 1 - confidence." in said
    begins = "`venn-admit calibrate colours --method venn-abers"
    shown = " ".join(program("show", NAME).stdout.split())
    assert f"with 0.0083 of 1 - confidence. {begins}" in shown
    assert "it would be chain 2" in program("monitor", NAME).stdout
    reported = " ".join(program("report", NAME).stdout.split())
    assert f"Chain 2 would admit clearly more than this one: {begins}" in reported
    found = program("monitor", NAME, "--json").result["chain"]["following"]
    assert (found["chain"], found["documents"]) == (2, 2853)
    assert 0 < found["share"] <= 1
    monkeypatch.setattr(following, "CLEARLY", 0.05)
    more(program, tmp_path, "last", "held-out")
    program("recalibrate", NAME)
    assert program("monitor", NAME, "--json").result["chain"]["following"] is None


def test_other_training_exemplars_end_a_chain_on_the_score_that_depends_on_them(
    own_calibrated: Program, tmp_path: Path
) -> None:
    program = own_calibrated
    assert program(*BEGIN, "reliability").code == 0
    more(program, tmp_path, "held", "held-out")
    assert "after 2,853 labels" in program("recalibrate", NAME).stdout
    more(program, tmp_path, "trained", "train", 30)
    refused = program("recalibrate", NAME)
    assert refused.code == 4
    assert "chain 1 of 'colours' has ended" in refused.stderr
    more(program, tmp_path, "late", "held-out", 30)
    said = " ".join(program("report", NAME).stdout.split())
    assert "The chain has ended" in said
    assert "nothing is promised of what it decides now: `venn-admit calibrate colours --method venn-abers" in said
    assert "use them" not in said
    assert "uses them" not in said
    assert "Promised, for traffic like the calibration data: nothing." in said
    for verb in ("show", "monitor", "report"):
        said = " ".join(program(verb, NAME).stdout.split())
        assert "It has ended, and nothing is promised of what it decides now." in said
    setting = program("show", NAME, "--json").result["settings"][0]
    assert setting["promised"] == "none"
    assert program("monitor", NAME, "--json").result["chain"] == setting["chain"]


def test_a_fit_changes_nothing_of_a_chain_on_the_networks_score(own_calibrated: Program, tmp_path: Path) -> None:
    program = own_calibrated
    assert program(*BEGIN, "network").code == 0
    more(program, tmp_path, "held", "held-out")
    assert program("fit", NAME).code == 0
    assert "after 2,853 labels" in program("recalibrate", NAME).stdout
    said = " ".join(program("report", NAME).stdout.split())
    assert "Every label that its chain can use has counted." in said
    assert "it holds with confidence 0.975." in said
    assert "Newer KNN parameters" not in said


def test_the_monitor_says_that_an_alarm_takes_effect_by_the_next_recalibration(
    own_calibrated: Program, tmp_path: Path
) -> None:
    program = own_calibrated
    program(*BEGIN, "network")
    rows = samples.exemplars("later", 300, seed=9)
    asked = {column: values for column, values in rows.items() if column != "label"}
    score = ("score", NAME, samples.save(tmp_path, "later.npz", asked), "--out", tmp_path / "later.parquet")
    assert program(*score, "--unweighted").code == 0
    labels = tmp_path / "labels.csv"
    due = f"A recalibration is due: run `venn-admit recalibrate {NAME}`, or leave it to beat."
    for turn, code, said in ((1, 7, "withdraws what is certified"), (0, 0, "gives back what was certified")):
        given = (rows["logits"].argmax(axis=1) + turn) % len(samples.CLASS_NAMES)
        lines = ["external_id,label", *map("{},{}".format, rows["external_id"], given)]
        labels.write_text("\n".join(lines))
        assert program("label", NAME, labels).code == 0
        if not turn:
            # The labels refute what was certified, until the correction counts.
            assert "withdrawn by an alarm" in program("recalibrate", NAME).stdout
        found = program("monitor", NAME)
        assert found.code == code
        assert f"The next recalibration {said}" in " ".join(found.stdout.split())
        assert due in found.stdout
        assert program("recalibrate", NAME).code == 0
        assert due not in program("monitor", NAME).stdout
