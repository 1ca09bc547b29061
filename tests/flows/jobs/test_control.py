"""Jobs that are cancelled, fail, and are seen through afterwards."""

from typing import Any

import pytest
from sqlalchemy import Row

from tests.running import Bench, ChunkLimits, run_chunk
from venn_admit import broker
from venn_admit.errors import JobError, NotFoundError
from venn_admit.flows.computing import job_kinds
from venn_admit.flows.jobs import control
from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.flows.jobs.control import cancel, reopen
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs, leases

NOTHING_WORKS = ChunkLimits(max_attempts=0)


def request(bench: Bench) -> int:
    """A job that scores the 160 rows of `score.npz` in three chunks."""
    return bench.request_score("edge", bench.folder / "score.npz", chunk_rows=60).job_id


def summary(bench: Bench, job_id: int) -> Row[tuple[object, ...]]:
    with connect(bench.engine) as connection:
        (found,) = jobs.summaries(connection, limit=1, job_id=job_id)
    return found


def states(bench: Bench, job_id: int) -> list[tuple[str, int]]:
    with connect(bench.engine) as connection:
        return [(chunk.state, chunk.attempts) for chunk in jobs.chunks(connection, job_id)]


def test_a_cancelled_job_gives_no_chunk_away_and_keeps_what_is_done(edge: Bench) -> None:
    job_id = request(edge)
    assert run_chunk(edge.runner(), job_id, 0) == 60
    cancel(edge.engine, job_id)
    assert run_chunk(edge.runner(), job_id, 1) == 0
    found = summary(edge, job_id)
    assert (found.state, found.rows_done, found.rows, found.chunks, found.error) == ("cancelled", 60, 160, 3, None)
    assert states(edge, job_id) == [("done", 1), ("pending", 0), ("pending", 0)]
    assert edge.value("SELECT count(*) FROM decision") == 60


def test_what_was_cancelled_is_seen_through_to_the_same_decisions(edge: Bench) -> None:
    undisturbed = "SELECT exemplar_id, decision, reason, lower, upper FROM decision ORDER BY exemplar_id"
    job_id = request(edge)
    run_chunk(edge.runner(), job_id, 1)
    cancel(edge.engine, job_id)
    reopen(edge.engine, job_id)
    edge.run(job_id)
    seen_through = edge.rows(undisturbed)
    edge.rows("WITH gone AS (DELETE FROM decision RETURNING 1) SELECT count(*) FROM gone")
    edge.run(request(edge))
    assert edge.rows(undisturbed) == seen_through


def test_a_failed_job_goes_on_from_what_is_not_done(edge: Bench) -> None:
    job_id = request(edge)
    run_chunk(edge.runner(), job_id, 0)
    for ordinal in (1, 2):
        run_chunk(edge.runner(NOTHING_WORKS), job_id, ordinal)
    failed = summary(edge, job_id)
    assert (failed.state, failed.chunks_failed, failed.most_attempts) == ("failed", 2, 1)
    assert "attempts ended without a result" in failed.error
    reopen(edge.engine, job_id)
    assert states(edge, job_id) == [("done", 1), ("pending", 0), ("pending", 0)]
    edge.run(job_id)
    assert edge.value("SELECT count(*) FROM decision") == 160


def test_what_was_computed_while_a_job_was_cancelled_is_computed_again_when_it_is_reopened(edge: Bench) -> None:
    job_id = request(edge)
    for ordinal in (0, 1):
        run_chunk(edge.runner(), job_id, ordinal)

    class CancelsFirst(ChunkRunner):
        def _compute_and_apply(self, claim: leases.Claim) -> bool:
            cancel(edge.engine, job_id)
            return super()._compute_and_apply(claim)

    late = CancelsFirst(edge.engine, job_kinds(edge.workspace()), ChunkLimits(), worker="late")
    assert run_chunk(late, job_id, 2) == 0
    assert (summary(edge, job_id).state, summary(edge, job_id).rows_done) == ("cancelled", 120)
    assert edge.value("SELECT count(*) FROM decision") == 120
    reopen(edge.engine, job_id)
    assert run_chunk(edge.runner(), job_id, 2) == 40
    assert (summary(edge, job_id).state, summary(edge, job_id).rows_done) == ("done", 160)


def test_what_is_over_cannot_be_cancelled_and_what_is_done_stays_done(edge: Bench) -> None:
    job_id = request(edge)
    edge.run(job_id)
    with pytest.raises(JobError, match=f"job {job_id} is done: only a running job"):
        cancel(edge.engine, job_id)
    reopen(edge.engine, job_id)
    assert summary(edge, job_id).state == "done"
    for ask in (cancel, reopen):
        with pytest.raises(NotFoundError, match="there is no job 99"):
            ask(edge.engine, 99)


@pytest.mark.parametrize(
    ("care_seconds", "count_seconds", "expected"),
    [
        (3600.0, 3600.0, ["relay", "workers"]),
        (0.0, 3600.0, ["relay", *["workers"] * 21]),
        (0.0, 0.0, ["relay", *["relay", "workers"] * 21]),
    ],
    ids=["at the start", "sessions at each look", "messages too"],
)
def test_a_waiting_command_looks_after_all_jobs_seldom(
    edge: Bench, monkeypatch: pytest.MonkeyPatch, care_seconds: float, count_seconds: float, expected: list[str]
) -> None:
    """It asks often how far its own job is, less often for every session, and least often for every job's messages."""
    monkeypatch.setattr(control, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(control, "CARE_SECONDS", care_seconds)
    monkeypatch.setattr(control, "COUNT_SECONDS", count_seconds)
    job_id = request(edge)
    looks: list[str] = []
    care: list[str] = []
    relayed = control.relay

    def counted(*arguments: Any, **named: Any) -> int:
        care.append("relay")
        return relayed(*arguments, **named)

    def on_progress(progress: jobs.Progress) -> None:
        looks.append(progress.state)
        if len(looks) == 20:
            cancel(edge.engine, job_id)

    monkeypatch.setattr(control, "relay", counted)
    app = broker.make_app("memory://", queue="none", task_seconds=60)
    with pytest.raises(JobError, match="cancelled"):
        control.await_job(
            edge.engine, app, job_id, check_workers=lambda: care.append("workers"), on_progress=on_progress
        )
    assert looks == ["running"] * 20 + ["cancelled"]
    assert care == expected
