"""What verbs write: never over an input, in the format that the name says, and whole or not at all."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from tests.cli import samples
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_NAMES, NAME, SCORED_ROWS
from tests.cli.test_jobs import interrupted
from tests.files.limits import limited_files


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return samples.save(tmp_path, "given.parquet", samples.scored())


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Read rows of a CSV file as text, empty fields as None and lists parsed."""
    with path.open() as file:
        names = json.loads(f"[{file.readline()}]")
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    rows: list[dict[str, Any]] = pa_csv.read_csv(path, convert_options=convert).to_pylist()
    return rows


def as_text(value: Any) -> str | None:
    """A value of Parquet as CSV has it; infinities, which JSON lacks, are text within lists."""
    if isinstance(value, list):
        return json.dumps([str(item) if item in (float("inf"), -float("inf")) else item for item in value])
    return None if value is None else str(value)


def check_same(csv: Path, parquet: Path) -> None:
    """See that both hold the same rows, floats to the bit."""
    rows = pq.read_table(parquet).to_pylist()
    assert rows
    for found, row in zip(read_csv(csv), rows, strict=True):
        assert list(found) == list(row)
        for name, value in row.items():
            if isinstance(value, float):
                assert float(found[name]) == value
            else:
                assert found[name] == as_text(value)


def test_score_writes_over_no_input(own_calibrated: Program, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its own name or any other; nothing is stored, and the file stays."""
    before = given.read_bytes()
    folder = given.parent
    (folder / "below").mkdir()
    (folder / "link.parquet").symlink_to(given)
    (folder / "hard.parquet").hardlink_to(given)
    monkeypatch.chdir(folder)
    others = [given, folder / "link.parquet", folder / "hard.parquet", "given.parquet", "below/../given.parquet"]
    with nothing_stored(own_calibrated):
        for out in others:
            refused = own_calibrated("score", NAME, given, "--out", out)
            check_refusal(refused, 2, f"{out}: expected an output that is not an input, got the file that is read as")
            check_refusal(own_calibrated("score", NAME, out, "--out", given), 2, "an output that is not an input")
        npz = samples.save(folder, "given.npz", samples.scored())
        check_refusal(own_calibrated("score", NAME, npz, "--out", npz), 2, r"ending in .parquet or .csv, got '.npz'")
    assert given.read_bytes() == before


def test_resume_writes_over_no_exemplars(own_calibrated: Program, given: Path) -> None:
    job = interrupted(own_calibrated, given)
    before = given.read_bytes()
    with nothing_stored(own_calibrated):
        refused = own_calibrated("jobs", "resume", job, "--out", given)
        check_refusal(refused, 2, "expected a place for results, got a file of exemplars, which would be lost")
    assert given.read_bytes() == before


def test_evaluate_writes_over_no_input(own_calibrated: Program, given: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.mkdir()
    (report / "index.html").hardlink_to(given)
    before = given.read_bytes()
    with nothing_stored(own_calibrated):
        refused = own_calibrated("evaluate", NAME, given, "--out", report)
        check_refusal(refused, 2, "index.html: expected an output that is not an input")
    assert given.read_bytes() == before


def test_scores_as_csv(own_calibrated: Program, given: Path, tmp_path: Path) -> None:
    for ending in ("csv", "parquet"):
        told = own_calibrated("score", NAME, given, "--out", tmp_path / f"scores.{ending}", "--json").result
        assert told["rows"] == SCORED_ROWS
    check_same(tmp_path / "scores.csv", tmp_path / "scores.parquet")
    decided = {row["decided_class"] for row in read_csv(tmp_path / "scores.csv")}
    assert decided == {None, *CLASS_NAMES}
    job = own_calibrated("jobs", "list", "--json").result["jobs"][0]["job"]
    assert own_calibrated("jobs", "resume", job, "--out", tmp_path / "again.CSV").code == 0
    assert (tmp_path / "again.CSV").read_bytes() == (tmp_path / "scores.csv").read_bytes()


@pytest.mark.parametrize("what", ["exemplars", "neighbours", "approximations", "calibration"])
def test_exports_as_csv(calibrated: Program, tmp_path: Path, what: str) -> None:
    for ending in ("csv", "parquet"):
        assert calibrated("export", NAME, "--what", what, "--out", tmp_path / f"out.{ending}").code == 0
    check_same(tmp_path / "out.csv", tmp_path / "out.parquet")


def test_a_format_that_is_not_written_is_refused_at_once(ingested: Program, files: Path, tmp_path: Path) -> None:
    """Before a database is asked: this one lacks the calibration that these verbs need."""
    with nothing_stored(ingested):
        for *verb, name, written in (
            ("score", NAME, files / "scored.npz", "out.json", ".parquet or .csv"),
            ("score", NAME, files / "scored.npz", "out", ".parquet or .csv"),
            ("export", NAME, "--what", "calibration", "out.json", ".parquet or .csv"),
            ("export", NAME, "--what", "parameters", "out.parquet", ".json"),
            ("export", NAME, "--what", "parameters", "out.csv", ".json"),
            ("jobs", "resume", 1, "out.xlsx", ".parquet or .csv"),
        ):
            refused = ingested(*verb, "--out", tmp_path / name)
            check_refusal(refused, 2, f"{name}: expected a name ending in {written}, got ")
    assert not list(tmp_path.iterdir())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("blank_charts")
def test_a_full_disk_leaves_the_report_that_was_there(own_calibrated: Program, given: Path, tmp_path: Path) -> None:
    for verb, folder, room in (
        (("report", NAME, "--out"), tmp_path / "calibration", 25_000),
        (("evaluate", NAME, given, "--out"), tmp_path / "evaluation", 100_000),  # it maps vectors, which are smaller
    ):
        folder.mkdir()
        (folder / "index.html").write_text("before")
        with limited_files(room):  # too little for the page
            outcome = own_calibrated(*verb, folder)
        assert outcome.code == 2, outcome
        saying = rf"^error: {folder}\S*: expected a place to write to, got .*File too large; check the folder"
        assert re.search(saying, outcome.stderr, re.MULTILINE)
        assert names_in(folder) == ["index.html"]
        assert (folder / "index.html").read_text() == "before"
        assert own_calibrated(*verb, folder).code == 0
        assert (folder / "index.html").read_text() != "before"
        assert not [name for name in names_in(folder) if name.startswith(".") or "partial" in name]
