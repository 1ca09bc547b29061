"""`jobs`: what was asked for, how far it is, and seeing it through."""

from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli import program, samples
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import NAME, SCORED_ROWS
from tests.running import workspace
from venn_admit.files.sources import FileSource
from venn_admit.flows.decisions.score import request_score
from venn_admit.store.database.engine import create_engine, transaction


@pytest.fixture
def scored_file(tmp_path: Path) -> Path:
    return samples.save(tmp_path, "scored.npz", samples.scored())


def interrupted(program: Program, path: Path) -> int:
    """Record a job that nobody computes, as if the program that asked for it had been killed."""
    engine = create_engine(program.url)
    try:
        return request_score(
            workspace(engine, chunk_rows=64),
            NAME,
            FileSource(path),
            weighted=True,
            require_full_match=False,
            calibration_id=None,
        ).job_id
    finally:
        engine.dispose()


def change(program: Program, statement: str) -> None:
    """Let what is stored be as if something had happened."""
    engine = create_engine(program.url)
    with transaction(engine) as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def local(moment: str) -> str:
    """A time as people see it here."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M %Z}"


def test_an_interrupted_job_is_seen_through_to_the_same_file(
    own_calibrated: Program, scored_file: Path, tmp_path: Path
) -> None:
    job = interrupted(own_calibrated, scored_file)
    shown = own_calibrated("jobs", "show", job, "--json").result
    assert (shown["state"], shown["rows_done"], shown["rows"], shown["chunks"]) == ("running", 0, SCORED_ROWS, 4)
    assert [chunk["state"] for chunk in shown["chunk_list"]] == ["pending"] * 4
    assert own_calibrated("jobs", "cancel", job, "--json").result == {"job": job, "state": "cancelled"}

    told = own_calibrated("jobs", "resume", job, "--out", tmp_path / "resumed.parquet", "--json").result
    assert (told["state"], told["rows_done"], told["calibration"]) == ("done", SCORED_ROWS, 1)
    assert own_calibrated("score", NAME, scored_file, "--out", tmp_path / "again.parquet").code == 0
    assert pq.read_table(tmp_path / "resumed.parquet").equals(pq.read_table(tmp_path / "again.parquet"))
    again = own_calibrated("jobs", "resume", job, "--out", tmp_path / "again.parquet")
    assert (again.code, again.stderr) == (0, ""), "nothing is waited for, so that no bar stays"
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "resumed.parquet").read_bytes()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_command_says_how_to_resume_its_job(
    own_calibrated: Program,
    scored_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interruption: type[BaseException],
) -> None:
    def interrupt(*_: object) -> None:
        raise interruption(143)

    out = tmp_path / "the scores.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(program, "_run_job", interrupt)
        outcome = own_calibrated("score", NAME, scored_file, "--out", out)
    assert outcome.code == (130 if interruption is KeyboardInterrupt else 143)
    job = own_calibrated("jobs", "list", "--limit", 1, "--json").result["jobs"][0]["job"]
    resume = f"venn-admit jobs resume {job} --out '{out}'"
    assert resume in " ".join(outcome.stderr.split())
    assert own_calibrated("jobs", "resume", job, "--out", out).code == 0
    assert out.exists()


def test_a_command_interrupted_as_it_writes_says_how_to_get_the_file(
    own_calibrated: Program, scored_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "scores.parquet"
    with monkeypatch.context() as patch:
        patch.setattr("venn_admit.flows.decisions.score_file.write_scores", interrupt)
        outcome = own_calibrated("score", NAME, scored_file, "--out", out)
    assert outcome.code == 130
    job = own_calibrated("jobs", "list", "--json").result["jobs"][0]
    assert job["state"] == "done"
    said = " ".join(outcome.stderr.split())
    assert f"{out} was not written. To finish it, run: venn-admit jobs resume {job['job']} --out {out}" in said
    assert own_calibrated("jobs", "resume", job["job"], "--out", out).code == 0
    assert out.exists()


def test_list(own_calibrated: Program, scored_file: Path) -> None:
    job = interrupted(own_calibrated, scored_file)
    newest, *others = own_calibrated("jobs", "list", "--json").result["jobs"]
    assert (newest["job"], newest["classifier"], newest["kind"], newest["state"]) == (job, NAME, "score", "running")
    assert newest["created_at"] is not None
    assert newest["finished_at"] is None
    assert {other["state"] for other in others} == {"done"}
    assert own_calibrated("jobs", "list", NAME, "--limit", 1, "--json").result["jobs"] == [newest]
    assert "4 chunks, 0 failed" in own_calibrated("jobs", "show", job).stdout


def test_people_see_when_jobs_were_asked_for_and_how_long_they_took(own_calibrated: Program, scored_file: Path) -> None:
    job = interrupted(own_calibrated, scored_file)
    change(own_calibrated, f"UPDATE job SET created_at = '2030-01-02 03:04:05Z' WHERE id = {job}")
    change(
        own_calibrated,
        "UPDATE job SET created_at = '2030-01-02 03:00Z', finished_at = '2030-01-02 05:05Z' WHERE id = 1",
    )
    asked, finished = (local(f"2030-01-02T{time}:00+00:00") for time in ("03:00", "05:05"))

    told = own_calibrated("jobs", "list").stdout
    lines = {line.split()[0]: line.split() for line in told.splitlines() if line.split()}
    rows = own_calibrated("jobs", "list", "--json").result["jobs"]
    assert lines["1"][-7:] == [*asked.split(), "2", "h", "5", "min"]
    assert lines["1"][1:6] == [NAME, "approximate", "done", f"{rows[-1]['rows']:,}", f"{rows[-1]['rows']:,}"]
    assert lines[str(job)][3:] == ["running", "0", f"{SCORED_ROWS}", *local("2030-01-02T03:04:05+00:00").split()]
    assert (rows[-1]["seconds"], rows[0]["seconds"]) == (7500, None)
    assert f"Asked for {asked}; finished {finished}, after 2 h 5 min." in own_calibrated("jobs", "show", 1).stdout
    assert "; not finished." in own_calibrated("jobs", "show", job).stdout
    change(own_calibrated, "ALTER TABLE job ALTER COLUMN id RESTART WITH 12345")
    job = interrupted(own_calibrated, scored_file)
    assert f" {job} " in own_calibrated("jobs", "list").stdout, "a number to be copied has no separators"


def test_list_says_what_failed(own_calibrated: Program, scored_file: Path) -> None:
    assert "error" not in own_calibrated("jobs", "list").stdout
    job = interrupted(own_calibrated, scored_file)
    change(own_calibrated, f"UPDATE job SET state = 'failed', finished_at = now(), error = '[b]odd' WHERE id = {job}")
    lines = [line.split() for line in own_calibrated("jobs", "list").stdout.splitlines()]
    assert any(line[-1:] == ["error"] for line in lines)
    assert [line[3] for line in lines if line[-1:] == ["[b]odd"]] == ["failed"]


def test_show_sums_the_chunks_up(own_calibrated: Program, scored_file: Path) -> None:
    """Thousands of lines help nobody; `--chunks` has them."""
    job = interrupted(own_calibrated, scored_file)
    changes = {
        0: "state = 'done', attempts = 1",
        1: "state = 'failed', attempts = 3, error = 'first [b]'",
        2: "state = 'failed', attempts = 2, error = 'second'",
        3: "attempts = 1, not_before = '2040-05-06 07:08Z'",
    }
    for ordinal, values in changes.items():
        change(own_calibrated, f"UPDATE job_chunk SET {values} WHERE job_id = {job} AND ordinal = {ordinal}")
    states = own_calibrated("jobs", "show", job, "--json").result["chunk_states"]
    assert [(one["state"], one["chunks"], one["rows"], one["attempts"], one["error"]) for one in states] == [
        ("done", 1, 64, 1, None),
        ("pending", 1, 8, 1, None),
        ("failed", 2, 128, 5, "first [b]"),
    ]
    told, listed = own_calibrated("jobs", "show", job).stdout, own_calibrated("jobs", "show", job, "--chunks").stdout
    assert ["failed", "2", "128", "5", "first", "[b]"] in [line.split() for line in told.splitlines()]
    assert f"pending 1 8 1 {local('2040-05-06T07:08:00+00:00')}" in " ".join(told.split())
    assert "second" not in told
    assert "first row" not in told
    assert listed.startswith(told)
    assert ["2", "128", "192", "failed", "2", "second"] in [line.split() for line in listed.splitlines()]


def test_show_says_until_when_a_chunk_waits(own_calibrated: Program, scored_file: Path) -> None:
    job = interrupted(own_calibrated, scored_file)
    assert "not before" not in own_calibrated("jobs", "show", job, "--chunks").stdout
    change(own_calibrated, "UPDATE job_chunk SET not_before = '2040-05-06 07:08Z' WHERE ordinal = 2")
    chunks = own_calibrated("jobs", "show", job, "--json").result["chunk_list"]
    assert [chunk["not_before"] is None for chunk in chunks[-4:]] == [True, True, False, True]
    for options in ((), ("--chunks",)):
        shown = own_calibrated("jobs", "show", job, *options).stdout
        assert "not before" in shown
        assert local("2040-05-06T07:08:00+00:00") in shown


def test_no_job_yet(program: Program) -> None:
    assert program("jobs", "list").stdout == "There are no jobs yet.\n"
    assert program("jobs", "list", "--json").result == {"jobs": []}


def test_refusals(calibrated: Program, tmp_path: Path) -> None:
    with nothing_stored(calibrated):
        for verb in ("show", "cancel", "resume"):
            check_refusal(calibrated("jobs", verb, 999), 3, "there is no job 999")
        check_refusal(calibrated("jobs", "cancel", 1), 6, "job 1 is done: only a running job can be cancelled")
        check_refusal(calibrated("jobs", "list", "nothing"), 3, "no classifier is named 'nothing'")
        out = tmp_path / "scores.parquet"
        check_refusal(calibrated("jobs", "resume", 1, "--out", out), 2, "job 1 is of kind approximate, expected score")
    assert not out.exists()


def test_a_removed_job_says_so(own_calibrated: Program, scored_file: Path, tmp_path: Path) -> None:
    assert own_calibrated("score", NAME, scored_file, "--out", tmp_path / "scores.parquet").code == 0
    job = own_calibrated("jobs", "list", "--json").result["jobs"][0]["job"]
    assert own_calibrated("jobs", "delete", job, "--json").result["rows"] == SCORED_ROWS
    listed = own_calibrated("jobs", "list", "--json").result["jobs"][0]
    assert (listed["job"], listed["rows_done"], listed["removed_at"] is None) == (job, SCORED_ROWS, False)
    assert "removed" in own_calibrated("jobs", "list").stdout
    shown = own_calibrated("jobs", "show", job).stdout
    assert f"Its rows, chunks and decisions were removed {local(listed['removed_at'])}." in shown
    refused = own_calibrated("jobs", "resume", job, "--out", tmp_path / "again.parquet")
    check_refusal(refused, 3, f"the rows and decisions of job {job} were removed on ")


def test_old_jobs_are_removed(own_calibrated: Program, scored_file: Path, tmp_path: Path) -> None:
    assert own_calibrated("score", NAME, scored_file, "--out", tmp_path / "scores.parquet").code == 0
    change(own_calibrated, "UPDATE job SET finished_at = finished_at - interval '90 days' WHERE kind = 'score'")
    check_refusal(own_calibrated("jobs", "prune"), 2, "expected for how long jobs are kept")
    check_refusal(own_calibrated("jobs", "prune", "--older-than", "90"), 2, "such as 90d, got '90'")
    kept = Program(own_calibrated.environment | {"VENN_ADMIT_KEEP_DECISIONS": "91d"})
    assert kept("jobs", "prune", "--json").result["jobs"] == 0
    counted = kept("jobs", "prune", "--older-than", "90d", "--dry-run", "--json").result
    assert (counted["jobs"], counted["rows"]) == (1, SCORED_ROWS)
    assert "To be removed: 1 job," in kept("jobs", "prune", "--older-than", "90d", "--dry-run").stdout
    removed = kept("jobs", "prune", "--older-than", "90d", "--json").result
    assert (removed["jobs"], removed["rows"]) == (1, SCORED_ROWS)
    assert removed["ended_before"] >= counted["ended_before"]
