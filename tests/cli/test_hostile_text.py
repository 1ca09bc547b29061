"""Text from others on a terminal: no control character reaches it, whatever ids, attributes and file names hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Outcome, Program
from tests.cli.samples import NAME, K
from tests.files.samples import Columns
from venn_admit.core.names import check_stored_id

# A title, a colour, C1's way to begin one, text turned around, DEL, and a line that poses as one of the program's.
HOSTILE = "id\x1b]0;owned\x07\x1b[31m\x9b32m\u202eback\u2066\x7f\r\nerror: gone"
AS_SHOWN = r"id\x1b]0;owned\x07\x1b[31m\x9b32m\u202eback\u2066\x7f\r\nerror: gone"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def check_shown(outcome: Outcome, *texts: str, code: int = 0) -> None:
    """See that nothing raw was written, that no text broke a line, and that these texts can be read."""
    assert outcome.code == code, outcome
    said = outcome.stdout + outcome.stderr
    assert RAW.findall(said) == []
    assert not re.search(r"^error: gone", said, re.MULTILINE)
    # Tables wrap what is long.
    words = re.sub(r"[\s│]+", "", said)
    for text in texts:
        assert re.sub(r"\s+", "", text) in words


def hostile(columns: Columns) -> Columns:
    """The columns with hostile ids and attributes, each id once."""
    rows = len(columns["external_id"])
    ids = np.array([f"{HOSTILE}-{row}" for row in range(rows)])
    return {**columns, "external_id": ids, "note": np.array([HOSTILE] * rows)}


@pytest.fixture
def old_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids may hold what those that earlier versions stored do."""
    monkeypatch.setattr("venn_admit.files.records.check_new_id", check_stored_id)


@pytest.mark.usefixtures("old_ids")
def test_ids_and_attributes(own_ingested: Program, tmp_path: Path) -> None:
    """Texts of what is decided on, and of the training exemplars beside it."""
    decided = own_ingested
    train = samples.save(tmp_path, "train.npz", hostile(samples.exemplars("more", 400, seed=5)))
    assert decided("ingest", NAME, train, "--split", "train").code == 0
    assert decided("fit", NAME).code == 0
    assert decided("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--kappa", 10).code == 0
    columns = hostile(samples.take(samples.scored(), slice(3)))
    columns["external_id"] = np.array([f"{HOSTILE}-scored-{row}" for row in range(3)])
    file = samples.save(tmp_path, "scored.npz", columns)
    check_shown(decided("decide", NAME, file, "--row", 1), f"{AS_SHOWN}-scored-1, calibration 1")
    check_shown(decided("score", NAME, file, "--out", tmp_path / "scores.parquet"))
    check_shown(decided("what-if", NAME, "--leave-out", f"{HOSTILE}-3"), f"{AS_SHOWN}-3, labelled")
    check_shown(decided("replay", 1), f"Decision 1 on {AS_SHOWN}-scored-0, calibration 1")

    for verb in (("replay", 1), ("decide", NAME, file)):
        outcome = decided(*verb, "--json")
        assert outcome.stdout.rstrip("\n").isprintable()
        assert outcome.stdout.isascii()
        found = json.loads(outcome.stdout)
        assert found["external_id"] == f"{HOSTILE}-scored-0"
        assert len(found["neighbours"]) == K
        assert HOSTILE in {near["attributes"].get("note") for near in found["neighbours"]}


@pytest.mark.usefixtures("old_ids")
def test_errors_that_name_ids(own_calibrated: Program, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text('external_id,label\n"nobody\x1b[31m\u202e",1\n', encoding="utf-8")
    check_shown(own_calibrated("label", NAME, labels), r"has no exemplar 'nobody\x1b[31m\u202e'", code=3)
    for seed, code, saying in ((8, 0, "3 rows"), (9, 2, f"id {HOSTILE + '-0'!r}: already stored with another vector")):
        file = samples.save(tmp_path, f"{seed}.npz", hostile(samples.exemplars("changed", 3, seed=seed)))
        check_shown(own_calibrated("score", NAME, file, "--out", tmp_path / "out.csv"), saying, code=code)


@pytest.mark.usefixtures("blank_charts")
def test_names_of_files(own_calibrated: Program, tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE.replace("/", "")
    folder.mkdir()
    file = samples.save(folder, f"{HOSTILE}.npz", samples.scored())
    check_shown(
        own_calibrated("score", NAME, file, "--out", folder / "scores.parquet"),
        f"{AS_SHOWN}.npz: 200 rows",
        f"decisions are in {tmp_path}/{AS_SHOWN}/scores.parquet.",
    )
    missing = own_calibrated("score", NAME, folder / "missing.npz", "--out", folder / "scores.csv")
    assert missing.code == 2
    assert RAW.findall(missing.stderr) == []
    # Breaks of lines stay in errors, and what follows them cannot pass for another error.
    assert [line.startswith(("error: /", "  ")) for line in missing.stderr.splitlines() if "error: " in line] == [
        True,
        True,
    ]
    check_shown(own_calibrated("evaluate", NAME, file, "--out", folder / "report"), AS_SHOWN)
    page = (folder / "report" / "index.html").read_text(encoding="utf-8")
    assert AS_SHOWN in page
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", page) == []
    check_shown(own_calibrated("label", NAME, folder / "nothing.csv"), code=2)


def test_an_error_that_nobody_foresaw(own_calibrated: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("venn_admit.flows.decisions.score_file.write_scores", fail)
    file = samples.save(tmp_path, "scored.npz", samples.take(samples.scored(), slice(3)))
    for options in ((), ("--debug",)):
        outcome = own_calibrated(*options, "score", NAME, file, "--out", tmp_path / "scores.csv")
        check_shown(outcome, r"RuntimeError: id\x1b]0;owned\x07", code=1)
