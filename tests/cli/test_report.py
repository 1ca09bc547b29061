"""`report`: as text that fits a terminal, as JSON, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_NAMES, HELD_OUT_ROWS, NAME, SCORED_ROWS, TRAIN_ROWS, K


def scored(program: Program, folder: Path) -> None:
    path = samples.save(folder, "scored.npz", samples.scored())
    assert program("score", NAME, path, "--out", folder / "scores.parquet").code == 0


def test_json(own_calibrated: Program, tmp_path: Path) -> None:
    before = own_calibrated("report", NAME, "--json").result
    assert (before["drift"], before["label_budget"], before["advice"]) == (None, None, [])
    scored(own_calibrated, tmp_path)
    with nothing_stored(own_calibrated):
        found = own_calibrated("report", NAME, "--json").result
    assert found["calibration"]["number"] == 1
    assert (found["calibration"]["alpha"], found["calibration"]["q_bins"]) == ("0.2", [0, 1])
    exemplars = found["stored"]["exemplars"]
    assert (exemplars["train"], exemplars["scored"]) == (TRAIN_ROWS, SCORED_ROWS)
    assert sum(exemplars[split] for split in ("knn", "mc", "vp")) == HELD_OUT_ROWS
    assert found["stored"]["labels"]["random"]["exemplars"] == HELD_OUT_ROWS
    assert found["since"] == {"arrived": 0, "changed": 0, "left": 0}
    cells = found["partitions"]["cells"]
    assert [(cell["q"], cell["d_group"]) for cell in cells] == [(q, g) for q in ("0", f"1-{K}") for g in range(4)]
    assert sum(sum(cell["vp"][name] for name in CLASS_NAMES) for cell in cells) == exemplars["vp"]
    (outcome,) = found["drift"]["outcomes"]
    assert (outcome["weighted"], outcome["q_equals_k"], outcome["points"]) == (True, False, SCORED_ROWS)
    assert outcome["admitted"] + sum(outcome["rejected"].values()) == SCORED_ROWS
    assert found["drift"]["decided_by"] == {"1": SCORED_ROWS}
    assert found["drift"]["compared"] == SCORED_ROWS
    assert found["drift"]["unlike_vp"] is False
    assert found["label_budget"]["all"]["points"] == outcome["rejected"]["band below kappa"] > 0
    assert found["discrepancies"]["at_fit"]["points"] > 0
    assert found["discrepancies"]["scored"]["points"] == SCORED_ROWS


def test_text(own_calibrated: Program, tmp_path: Path) -> None:
    scored(own_calibrated, tmp_path)
    told = own_calibrated("report", NAME)
    assert told.code == 0
    assert told.stdout.startswith(f"{NAME}: calibration 1, in use, of ")
    assert "kappa 10, delta 1, bins of q 0, 1-5;" in told.stdout
    for title in ("What is stored", "What the partitions hold", "Recent traffic", "Where neighbours", "Labels that"):
        assert f"\n{title}" in told.stdout
    assert "What to do next\n" in "\n".join(line.rstrip() for line in told.stdout.splitlines())
    retired = own_calibrated("report", NAME, "--calibration", 1)
    assert retired.stdout == told.stdout


def test_logits_that_look_like_probabilities_are_counted(own_calibrated: Program, tmp_path: Path) -> None:
    """Not the training rows, of which there are as many, and not the one whose sum is wrong."""
    columns = samples.exemplars("probabilities", 7, seed=5)
    raised = np.exp(columns["logits"].astype(np.float64))
    columns["logits"] = (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)
    columns["logits"][0] *= 0.999
    told, none = "have logits that lie in [0, 1] and sum to 1", own_calibrated("report", NAME)
    assert told not in none.stdout
    for split, prefix in (("held-out", "p"), ("train", "t")):
        columns["external_id"] = np.array([f"{prefix}-{row}" for row in range(7)])
        path = samples.save(tmp_path, "probabilities.npz", columns)
        done = own_calibrated("ingest", NAME, path, "--split", split, "--as-logits", "--allow-training-rows")
        assert done.code == 0, done.stderr
    found = own_calibrated("report", NAME, "--json").result
    assert found["stored"]["unlikely_logits"] == 6
    assert f"6 held-out exemplars {told}" in " ".join(own_calibrated("report", NAME).stdout.split())


@pytest.mark.usefixtures("blank_charts")
def test_page(calibrated: Program, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    assert f"The report is in {folder / 'index.html'}." in calibrated("report", NAME, "--out", folder).stdout
    told = calibrated("report", NAME, "--out", folder, "--json").result
    assert json.loads((folder / "report.json").read_text()) == told
    assert f"{NAME}: calibration 1" in (folder / "index.html").read_text(encoding="utf-8")
    refused = calibrated("report", NAME, "--json", "--out", folder / "report.json")
    assert refused.code == 2
    assert "report.json: expected a folder for the report, got a file; choose another" in refused.stderr


def test_refusals(calibrated: Program, ingested: Program) -> None:
    check_refusal(calibrated("report", "nothing"), 3, "no classifier is named 'nothing'")
    check_refusal(calibrated("report", NAME, "--calibration", 99), 3, "has no calibration 99")
    for told in (ingested("report", NAME), ingested("report", NAME, "--json")):
        check_refusal(told, 4, f"has no calibration yet: calibrate it first; run `venn-admit calibrate {NAME}`$")
