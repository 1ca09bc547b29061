"""Jobs that are cancelled, fail, and are seen through afterwards."""

from typing import Any

import pytest
from sqlalchemy import Row

from tests.running import Bench, ChunkLimits
from venn_admit.service import broker
from venn_admit.service.errors import JobError, NotFoundError
from venn_admit.service.flows.computing import chunk_runner, job_kinds
from venn_admit.service.flows.jobs import control
from venn_admit.service.flows.jobs.chunks import ChunkRunner
from venn_admit.service.flows.jobs.control import cancel, reopen
from venn_admit.service.store.database.engine import connect
from venn_admit.service.store.work import jobs

NOTHING_WORKS = ChunkLimits(max_attempts=0)


def request(bench: Bench) -> int:
    """A job that scores the 160 rows of `score.npz` in three chunks."""
    return bench.request_score("edge", bench.folder / "score.npz", chunk_rows=60).job_id


def runner(bench: Bench, limits: ChunkLimits | None = None) -> ChunkRunner:
    return chunk_runner(bench.engine, bench.cache, limits or ChunkLimits(), worker="here")


def summary(bench: Bench, job_id: int) -> Row[tuple[object, ...]]:
    with connect(bench.engine) as connection:
        (found,) = jobs.summaries(connection, limit=1, job_id=job_id)
    return found


def states(bench: Bench, job_id: int) -> list[tuple[str, int]]:
    with connect(bench.engine) as connection:
        return [(chunk.state, chunk.attempts) for chunk in jobs.chunks(connection, job_id)]


def test_a_cancelled_job_gives_no_chunk_away_and_keeps_what_is_done(edge: Bench) -> None:
    job_id = request(edge)
    assert runner(edge).run(job_id, 0) == 60
    cancel(edge.engine, job_id)
    assert runner(edge).run(job_id, 1) == 0
    found = summary(edge, job_id)
    assert (found.state, found.rows_done, found.rows, found.chunks, found.error) == ("cancelled", 60, 160, 3, None)
    assert states(edge, job_id) == [("done", 1), ("pending", 0), ("pending", 0)]
    assert edge.value("SELECT count(*) FROM decision") == 60


def test_what_was_cancelled_is_seen_through_to_the_same_decisions(edge: Bench) -> None:
    undisturbed = "SELECT exemplar_id, decision, reason, lower, upper FROM decision ORDER BY exemplar_id"
    job_id = request(edge)
    runner(edge).run(job_id, 1)
    cancel(edge.engine, job_id)
    reopen(edge.engine, job_id)
    edge.run(job_id)
    seen_through = edge.rows(undisturbed)
    edge.rows("WITH gone AS (DELETE FROM decision RETURNING 1) SELECT count(*) FROM gone")
    edge.run(request(edge))
    assert edge.rows(undisturbed) == seen_through


def test_a_failed_job_goes_on_from_what_is_not_done(edge: Bench) -> None:
    job_id = request(edge)
    runner(edge).run(job_id, 0)
    for ordinal in (1, 2):
        runner(edge, NOTHING_WORKS).run(job_id, ordinal)
    failed = summary(edge, job_id)
    assert (failed.state, failed.chunks_failed, failed.most_attempts) == ("failed", 2, 1)
    assert "attempts ended without a result" in failed.error
    reopen(edge.engine, job_id)
    assert states(edge, job_id) == [("done", 1), ("pending", 0), ("pending", 0)]
    edge.run(job_id)
    assert edge.value("SELECT count(*) FROM decision") == 160


def test_a_job_cancelled_while_its_last_chunk_was_computed_is_done_when_reopened(edge: Bench) -> None:
    job_id = request(edge)
    for ordinal in (0, 1):
        runner(edge).run(job_id, ordinal)

    class CancelsFirst(ChunkRunner):
        def _compute_and_apply(self, claim: jobs.Claim) -> bool:
            cancel(edge.engine, job_id)
            return super()._compute_and_apply(claim)

    assert (
        CancelsFirst(edge.engine, job_kinds(edge.engine, edge.cache), ChunkLimits(), worker="late").run(job_id, 2) == 40
    )
    assert summary(edge, job_id).state == "cancelled"
    reopen(edge.engine, job_id)
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


def test_a_waiting_command_looks_after_all_jobs_seldom(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks often how far its own job is; what looks at every job and session, it does at the start alone here."""
    monkeypatch.setattr(control, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(control, "CARE_SECONDS", 3600.0)
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
    assert care == ["relay", "relay", "workers"]
