"""Chunks: computed once however often they are delivered, by any process, in any size and order."""

import re
import threading
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
import structlog
from sqlalchemy import Engine, Row, text
from sqlalchemy.exc import OperationalError

from tests.patience import wait_until
from tests.running import EXAMPLES, Bench, ChunkLimits, Golden, chunk_ordinals, run_chunk, workspace
from venn_admit import broker
from venn_admit.flows.calibration.calibrate import request_approximations
from venn_admit.flows.computing import chunk_runner, job_kinds
from venn_admit.flows.data.export import Export
from venn_admit.flows.jobs import chunks, control
from venn_admit.flows.jobs.chunks import ChunkRunner, compute_job
from venn_admit.flows.jobs.leases import renewed_lease
from venn_admit.store.database.engine import at_once, connect, transaction
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.search.support_files import CachedSupport
from venn_admit.store.work import jobs, leases

EXPIRED = ChunkLimits(lease_seconds=0)


def request(bench: Bench, **asked: Any) -> int:
    """A job that scores the 160 rows of `score.npz` in chunks of 60."""
    return bench.request_score("edge", bench.folder / "score.npz", chunk_rows=60, **asked).job_id


def chunk(bench: Bench, job_id: int, ordinal: int = 0) -> Row[Any]:
    (row,) = bench.rows(
        "SELECT * FROM job_chunk WHERE job_id = :job_id AND ordinal = :ordinal", job_id=job_id, ordinal=ordinal
    )
    return row


def job(bench: Bench, job_id: int) -> Row[Any]:
    (row,) = bench.rows("SELECT state, error, finished_at FROM job WHERE id = :job_id", job_id=job_id)
    return row


def unsent(bench: Bench) -> list[int]:
    """The chunks that are given a message now, whenever they had one last."""
    with transaction(bench.engine) as connection:
        connection.exec_driver_sql("UPDATE job_chunk SET sent_at = NULL")
        return [ordinal for _, ordinal in jobs.take_unsent(connection, None)]


def decisions(bench: Bench) -> list[tuple[Any, ...]]:
    """Every decision but for its key and time, by exemplar."""
    return [
        tuple(row)
        for row in bench.rows(
            "SELECT exemplar.external_id, calibration_id, weighted, require_full_match, decision.predicted,"
            " match_count, distance, logits, admit_set, band_size, threshold, category_size, upweight, lower,"
            " upper, decision, reason FROM decision JOIN exemplar ON decision.exemplar_id = exemplar.id"
            " JOIN admit_evidence ON decision.id = decision_id ORDER BY decision.calibration_id, weighted, exemplar.id"
        )
    ]


def counts(bench: Bench) -> tuple[int, ...]:
    return tuple(bench.value(f"SELECT count(*) FROM {table}") for table in ("neighbours", "approximation", "decision"))


class TestDelivery:
    def test_twice_computes_once(self, edge: Bench) -> None:
        job_id, worker = request(edge), edge.runner()
        assert run_chunk(worker, job_id, 0) == 60
        before, kept = chunk(edge, job_id), decisions(edge)
        assert run_chunk(worker, job_id, 0) == 0
        assert run_chunk(edge.runner(worker="another"), job_id, 0) == 0
        assert chunk(edge, job_id) == before
        assert (before.state, before.attempts, before.worker) == ("done", 1, "here")
        assert decisions(edge) == kept
        assert len(kept) == 60

    def test_a_job_is_done_with_its_last_chunk(self, edge: Bench) -> None:
        job_id, worker = request(edge), edge.runner()
        for ordinal in (2, 0):
            run_chunk(worker, job_id, ordinal)
            assert job(edge, job_id).state == "running"
        assert run_chunk(worker, job_id, 1) == 60
        assert job(edge, job_id).state == "done"
        assert job(edge, job_id).finished_at is not None

    def test_no_statement_is_cancelled(self, edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """A COPY that is not read to its end would be, and the one after it might be hit."""
        cancelled: list[psycopg.Connection[Any]] = []
        monkeypatch.setattr(psycopg.Connection, "_try_cancel", lambda connection, **_: cancelled.append(connection))
        for weighted in (True, False):
            edge.score("edge", edge.folder / "score.npz", weighted=weighted)
        assert cancelled == []

    def test_a_chunk_that_is_not_there_is_left(self, edge: Bench) -> None:
        assert run_chunk(edge.runner(), request(edge), 3) == 0
        assert run_chunk(edge.runner(), 10**9, 0) == 0


def test_two_jobs_on_the_same_rows_at_once(edge: Bench) -> None:
    """One may find the other's rows in its way: then it tries again, and uses them."""
    job_ids = [request(edge, weighted=weighted) for weighted in (True, False)]
    begun = threading.Barrier(2)

    def work(job_id: int) -> list[int]:
        begun.wait()
        worker = edge.runner(worker=f"job {job_id}")
        return [run_chunk(worker, job_id, ordinal) for _ in range(2) for ordinal in range(3)]

    with ThreadPoolExecutor(2) as pool:
        settled = list(pool.map(work, job_ids))
    assert [sorted(rows) for rows in settled] == [[0, 0, 0, 40, 60, 60]] * 2
    assert [job(edge, job_id).state for job_id in job_ids] == ["done", "done"]
    assert len(decisions(edge)) == 2 * 160
    assert edge.value("SELECT count(*) FROM neighbours") == 1000 + 160


class TestLease:
    def test_that_of_another_worker_is_respected(self, edge: Bench) -> None:
        job_id = request(edge)
        with transaction(edge.engine) as connection:
            claim = leases.claim(connection, job_id, 0, worker="another", lease_seconds=600)
        assert claim is not None
        before = counts(edge)
        assert run_chunk(edge.runner(), job_id, 0) == 0
        assert counts(edge) == before
        assert chunk(edge, job_id).worker == "another"
        assert chunk(edge, job_id).lease_token == claim.lease_token
        with transaction(edge.engine) as connection:
            assert leases.finish(connection, claim)

    def test_one_that_expired_is_taken_over(self, edge: Bench) -> None:
        job_id = request(edge)
        with transaction(edge.engine) as connection:
            claim = leases.claim(connection, job_id, 0, worker="dead", lease_seconds=0)
        assert claim is not None
        assert run_chunk(edge.runner(), job_id, 0) == 60
        assert (chunk(edge, job_id).worker, chunk(edge, job_id).attempts) == ("here", 2)
        with transaction(edge.engine) as connection:
            assert not leases.finish(connection, claim)
            assert leases.fail(connection, claim, error="too late", max_attempts=3, retry_seconds=0) is None
        assert chunk(edge, job_id).state == "done"

    @pytest.mark.parametrize("kind", ["score", "approximate"])
    @pytest.mark.parametrize("rival_finishes", [True, False])
    def test_the_late_result_of_a_lost_one_is_refused(
        self, edge: Bench, kind: str, rival_finishes: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As of a process that stands still.
        monkeypatch.setattr(chunks, "renewed_lease", lambda *_: nullcontext())
        job_id = request(edge) if kind == "score" else request_more_approximations(edge)
        rival = edge.runner(worker="rival")

        def take_over() -> None:
            if rival_finishes:
                assert run_chunk(rival, job_id, 0) > 0
            else:
                with transaction(edge.engine) as connection:
                    assert leases.claim(connection, job_id, 0, worker="rival", lease_seconds=600) is not None
            after_rival.append(counts(edge))

        after_rival: list[tuple[int, ...]] = []
        late = chunk_runner(
            workspace(edge.engine, Interrupted(edge.folder / "cache", take_over)), EXPIRED, worker="late"
        )
        assert run_chunk(late, job_id, 0) == 0
        assert after_rival == [counts(edge)]
        found = chunk(edge, job_id)
        assert (found.worker, found.attempts, found.error) == ("rival", 2, None)
        assert found.state == ("done" if rival_finishes else "running")


class TestLate:
    """A chunk whose worker has taken much longer than others did for theirs."""

    @pytest.fixture
    def held(self, edge: Bench) -> leases.Claim:
        """The claim of a slow worker on the first chunk of a job, which is late; the others are done."""
        claim = claim_of_slow(edge)
        assert taken_unsent(edge) == [0]
        return claim

    def test_is_taken_over_once(self, edge: Bench, held: leases.Claim, logged: list[MutableMapping[str, Any]]) -> None:
        with at_once(edge.engine) as connection:
            taken = leases.claim(connection, held.job_id, 0, worker="quick", lease_seconds=600)
        assert taken is not None
        assert (taken.taken_from, taken.was_late, taken.is_unsent) == (held.lease_token, True, False)
        pass_a_minute(edge, held.job_id)
        assert taken_unsent(edge) == []
        assert run_chunk(edge.runner(), held.job_id, 0) == 0
        assert edge.runner().compute(taken) == 60
        assert "chunk is late, it is taken over" in [entry["event"] for entry in logged]
        assert (job(edge, held.job_id).state, len(decisions(edge))) == ("done", 160)

    def test_of_the_slow_worker_nothing_counts_then(self, edge: Bench, held: leases.Claim) -> None:
        assert run_chunk(edge.runner(worker="quick"), held.job_id, 0) == 60
        kept = decisions(edge)
        assert edge.runner(worker="slow").compute(held) == 0
        found = chunk(edge, held.job_id)
        assert (found.state, found.worker, found.attempts, found.error) == ("done", "quick", 2, None)
        assert decisions(edge) == kept

    def test_the_slow_worker_may_still_be_first(self, edge: Bench, held: leases.Claim) -> None:
        assert edge.runner(worker="slow").compute(held) == 60
        assert run_chunk(edge.runner(worker="quick"), held.job_id, 0) == 0
        assert (chunk(edge, held.job_id).worker, chunk(edge, held.job_id).attempts) == ("slow", 1)
        assert job(edge, held.job_id).state == "done"

    def test_what_the_slow_worker_writes_is_not_awaited(self, edge: Bench, held: leases.Claim) -> None:
        """It holds a lock that every result needs, and would do so for as long as it stands still."""
        with connect(edge.engine) as connection:
            leases.begin_writing(connection, held, lease_seconds=600)
            connection.exec_driver_sql("LOCK TABLE decision IN ACCESS EXCLUSIVE MODE")
            assert run_chunk(edge.runner(worker="quick"), held.job_id, 0) == 60
            with pytest.raises(OperationalError):
                connection.exec_driver_sql("SELECT 1")
            connection.invalidate()
        assert job(edge, held.job_id).state == "done"

    def test_has_as_many_attempts_as_any_other(self, edge: Bench, held: leases.Claim) -> None:
        for attempt in (2, 3, 4):
            with at_once(edge.engine) as connection:
                killed = leases.claim(connection, held.job_id, 0, worker="killed", lease_seconds=0)
            assert killed is not None
            assert killed.attempts == attempt
        assert run_chunk(edge.runner(), held.job_id, 0) == 0
        assert (chunk(edge, held.job_id).state, chunk(edge, held.job_id).attempts) == ("failed", 5)
        control.reopen(edge.engine, held.job_id)
        assert (chunk(edge, held.job_id).attempts, chunk(edge, held.job_id).late_at) == (0, None)

    def test_is_taken_over_by_a_program_that_computes_the_job_itself(self, edge: Bench) -> None:
        job_id = claim_of_slow(edge).job_id
        compute_job(edge.engine, edge.runner(), job_id)
        assert (chunk(edge, job_id).worker, job(edge, job_id).state) == ("here", "done")


def claim_of_slow(bench: Bench) -> leases.Claim:
    """The claim of a slow worker on the first chunk of a job, a minute ago; the others have been done in no time."""
    job_id = request(bench)
    with at_once(bench.engine) as connection:
        claim = leases.claim(connection, job_id, 0, worker="slow", lease_seconds=600)
    assert claim is not None
    assert [run_chunk(bench.runner(), job_id, ordinal) for ordinal in (1, 2)] == [60, 40]
    pass_a_minute(bench, job_id)
    return claim


def pass_a_minute(bench: Bench, job_id: int) -> None:
    """Let what was claimed and is not done have been claimed a minute earlier, and sent before that."""
    with transaction(bench.engine) as connection:
        connection.execute(
            text("""
                UPDATE job_chunk
                SET claimed_at = claimed_at - interval '1 minute',
                    late_at = late_at - interval '1 minute',
                    sent_at = least(coalesce(sent_at, 'infinity'), claimed_at) - interval '1 minute'
                WHERE job_id = :job_id AND state = 'running'
            """),
            {"job_id": job_id},
        )


def taken_unsent(bench: Bench) -> list[int]:
    with at_once(bench.engine) as connection:
        return [ordinal for _, ordinal in jobs.take_unsent(connection, None)]


class Interrupted(ArrayCache):
    """Something happens once, in the middle of a computation."""

    def __init__(self, folder: Path, event: Callable[[], None]) -> None:
        super().__init__(folder)
        self._events = [event]

    def support(self, engine: Engine, classifier: Classifier) -> CachedSupport:
        while self._events:
            self._events.pop()()
        return super().support(engine, classifier)


def request_more_approximations(bench: Bench) -> int:
    """A job in one chunk over as many points as mc has, ingested since the calibration."""
    more = Golden("edge").exemplars("mc")
    more["id"] = np.array([f"more-{known}" for known in more["id"]])
    bench.ingest("edge", bench.write("more.npz", more), "mc")
    return request_approximations(bench.workspace(chunk_rows=600), "edge")


class TestErrors:
    @pytest.fixture
    def broken(self, edge: Bench, tmp_path: Path) -> ChunkRunner:
        """A worker that cannot write its cache."""
        (tmp_path / "file").touch()
        return chunk_runner(workspace(edge.engine, ArrayCache(tmp_path / "file")), ChunkLimits(), worker="broken")

    def test_is_recorded_and_tried_again(self, edge: Bench, broken: ChunkRunner) -> None:
        job_id = request(edge)
        assert run_chunk(broken, job_id, 0) == 0
        found = chunk(edge, job_id)
        assert (found.state, found.attempts, found.lease_token, found.sent_at) == ("pending", 1, None, None)
        assert found.error.startswith("DatabaseError: the cache folder")
        assert job(edge, job_id).state == "running"

        edge.run(job_id)
        found = chunk(edge, job_id)
        assert (found.state, found.attempts, found.error, found.worker) == ("done", 2, None, "here")

    def test_after_the_last_attempt_the_job_fails_and_other_chunks_complete(
        self, edge: Bench, broken: ChunkRunner
    ) -> None:
        job_id = request(edge)
        states = []
        for _ in range(3):
            assert run_chunk(broken, job_id, 1) == 0
            states.append(chunk(edge, job_id, 1).state)
        assert states == ["pending", "pending", "failed"]
        assert job(edge, job_id).state == "running"
        assert run_chunk(broken, job_id, 1) == 0
        assert chunk(edge, job_id, 1).attempts == 3

        assert [run_chunk(edge.runner(), job_id, ordinal) for ordinal in (0, 1, 2)] == [60, 0, 40]
        assert job(edge, job_id).state == "failed"
        assert job(edge, job_id).error.startswith("DatabaseError: the cache folder")
        assert len(decisions(edge)) == 100

    def test_a_poisoned_chunk_waits_longer_after_each_attempt(
        self, edge: Bench, tmp_path: Path, logged: list[MutableMapping[str, Any]]
    ) -> None:
        """Twice as long, a minute at most; other chunks do not wait, and the job says in the end what was wrong."""
        (tmp_path / "file").touch()
        limits = ChunkLimits(max_attempts=5, retry_seconds=8.0)
        poisoned = chunk_runner(workspace(edge.engine, ArrayCache(tmp_path / "file")), limits, worker="broken")
        job_id = request(edge)
        waits = []
        for attempt in range(1, 5):
            assert run_chunk(poisoned, job_id, 1) == 0
            waits.append(edge.value("SELECT extract(epoch FROM not_before - now()) FROM job_chunk WHERE ordinal = 1"))
            assert 1 not in unsent(edge)
            assert run_chunk(poisoned, job_id, 1) == 0
            assert (chunk(edge, job_id, 1).state, chunk(edge, job_id, 1).attempts) == ("pending", attempt)
            with transaction(edge.engine) as connection:
                connection.exec_driver_sql("UPDATE job_chunk SET not_before = now() WHERE ordinal = 1")
            assert 1 in unsent(edge)
        for wait, expected in zip(waits, (8, 16, 32, 60), strict=True):
            assert expected - 5 < wait <= expected

        assert [run_chunk(edge.runner(), job_id, ordinal) for ordinal in (0, 2)] == [60, 40]
        assert job(edge, job_id).state == "running"
        assert run_chunk(poisoned, job_id, 1) == 0
        found = chunk(edge, job_id, 1)
        assert (found.state, found.attempts, found.not_before) == ("failed", 5, None)
        assert [chunk(edge, job_id, ordinal).state for ordinal in (0, 2)] == ["done", "done"]
        assert (job(edge, job_id).state, job(edge, job_id).error) == ("failed", found.error)
        errors = [entry for entry in logged if entry["event"] == "chunk failed"]
        assert [entry["attempt"] for entry in errors] == [1, 2, 3, 4, 5]
        assert {(entry["job"], entry["chunk"], entry["classifier"]) for entry in errors} == {(job_id, 1, "edge")}

        control.reopen(edge.engine, job_id)
        edge.run(job_id, [1])
        assert chunk(edge, job_id, 1).attempts == 1

    def test_a_job_that_is_reopened_does_not_wait(self, edge: Bench, broken: ChunkRunner) -> None:
        job_id = request(edge)
        run_chunk(broken, job_id, 0)
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE job_chunk SET not_before = now() + interval '1 hour' WHERE ordinal = 0")
        control.cancel(edge.engine, job_id)
        control.reopen(edge.engine, job_id)
        edge.run(job_id)

    def test_a_chunk_that_ends_its_workers_fails_too(self, edge: Bench) -> None:
        """Killed for memory, a worker records nothing: its claims alone tell."""
        job_id = request(edge)
        for attempt in range(1, 4):
            with transaction(edge.engine) as connection:
                claim = leases.claim(connection, job_id, 0, worker="killed", lease_seconds=0)
            assert claim is not None
            assert claim.attempts == attempt
        assert run_chunk(edge.runner(), job_id, 0) == 0
        assert chunk(edge, job_id).state == "failed"
        assert "3 attempts" in chunk(edge, job_id).error

    @pytest.mark.usefixtures("refused_decisions")
    def test_nothing_of_a_chunk_that_went_wrong_is_stored(self, edge: Bench) -> None:
        job_id, before = request(edge), counts(edge)
        assert run_chunk(edge.runner(), job_id, 0) == 0
        assert "no decision today" in chunk(edge, job_id).error
        assert counts(edge) == before

    @pytest.fixture
    def refused_decisions(self, edge: Bench) -> None:
        """Decisions are the last thing a chunk writes."""
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql(
                """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE 'no decision today'; END $$"""
            )
            connection.exec_driver_sql(
                "CREATE TRIGGER refuse BEFORE INSERT ON decision FOR EACH ROW EXECUTE FUNCTION refuse()"
            )


class TestSizeAndOrder:
    def test_do_not_show_in_decisions_on_real_data(self, few_reviews: Bench) -> None:
        expected = self.scored(few_reviews, chunk_rows=2048)
        assert len(expected["decision"]) == 488
        for chunk_rows, backwards in ((7, True), (100, False)):
            self.forget_scored(few_reviews)
            found = self.scored(few_reviews, chunk_rows=chunk_rows, backwards=backwards)
            for table, rows in expected.items():
                assert found[table] == rows, (table, chunk_rows)

    def test_do_not_show_in_a_calibration(self, bench: Bench) -> None:
        golden = Golden("edge")
        for name, chunk_rows, backwards in (("first", 2048, False), ("second", 61, True)):
            golden.prepare(bench, name)
            bench.calibrate(name, chunk_rows=chunk_rows, backwards=backwards, **golden.settings)
            bench.score(name, bench.write("score.npz", golden.exemplars("score")), chunk_rows=chunk_rows)
        for what in (Export.NEIGHBOURS, Export.APPROXIMATIONS, Export.CALIBRATION):
            first, second = (bench.export(name, what) for name in ("first", "second"))
            assert first == second

    def scored(self, reviews: Bench, **how: Any) -> dict[str, Any]:
        """What scoring the test set leaves in the database and in its file."""
        scores = reviews.score("reviews", EXAMPLES / "test.npz", **how)
        of_scored = "WHERE exemplar_id IN (SELECT id FROM exemplar WHERE split = 'scored') ORDER BY exemplar_id"
        return {
            "decision": decisions(reviews),
            "neighbours": reviews.rows(f"SELECT * FROM neighbours {of_scored}"),
            "approximation": reviews.rows(f"SELECT * FROM approximation {of_scored}"),
            "file": scores.path.read_bytes(),
        }

    def forget_scored(self, reviews: Bench) -> None:
        with transaction(reviews.engine) as connection:
            connection.exec_driver_sql("DELETE FROM decision")
            for table in ("neighbours", "approximation"):
                connection.exec_driver_sql(
                    f"DELETE FROM {table} USING exemplar WHERE exemplar_id = exemplar.id AND split = 'scored'"
                )


class TestRepeats:
    def test_the_same_file_twice_adds_nothing(self, edge: Bench) -> None:
        first = edge.score("edge", edge.folder / "score.npz")
        before, kept = counts(edge), decisions(edge)
        second = edge.score("edge", edge.folder / "score.npz", chunk_rows=11)
        assert counts(edge) == before
        assert decisions(edge) == kept
        assert second.path.read_bytes() == first.path.read_bytes()

    def test_rows_of_one_file(self, edge: Bench) -> None:
        """Within a chunk and across chunks; each row of the file has its row in the scores."""
        rows = [3, 0, 3, 7, 7, 7, 1, 0, 3, 2]
        exemplars = Golden("edge").exemplars("score")
        repeated = edge.write("repeated.npz", {name: values[rows] for name, values in exemplars.items()})
        found = edge.score("edge", repeated, chunk_rows=4)
        assert found.table["external_id"].to_pylist() == [f"score-{row}" for row in rows]
        assert len(decisions(edge)) == len(set(rows))
        each = edge.score("edge", edge.folder / "score.npz")
        assert found.table == each.table.take(rows)

    def test_options_are_decided_apart(self, edge: Bench) -> None:
        path, before = edge.folder / "score.npz", counts(edge)
        for weighted in (True, False):
            for require_full_match in (True, False):
                edge.score("edge", path, weighted=weighted, require_full_match=require_full_match)
        assert counts(edge) == (before[0] + 160, before[1] + 160, 4 * 160)


class TestLaterTrainingExemplars:
    def test_give_what_a_fresh_classifier_gives(self, bench: Bench) -> None:
        golden = Golden("edge")
        rest = golden.exemplars("train", slice(300, None))
        to_score = bench.write("score.npz", golden.exemplars("score"))

        golden.prepare(bench, "grown", slice(300))
        bench.calibrate("grown", **golden.settings)
        early = bench.score("grown", to_score)
        kept = decisions(bench)
        bench.ingest("grown", bench.write("rest.npz", rest), "train")
        bench.calibrate("grown", **golden.settings)
        grown = bench.score("grown", to_score)

        golden.prepare(bench, "fresh")
        bench.calibrate("fresh", **golden.settings)
        fresh = bench.score("fresh", to_score)

        for what in (Export.NEIGHBOURS, Export.APPROXIMATIONS, Export.CALIBRATION):
            assert bench.export("grown", what) == bench.export("fresh", what), what
        assert without_calibration(grown.table) == without_calibration(fresh.table)
        assert without_calibration(early.table) != without_calibration(grown.table)
        assert decisions(bench)[: len(kept)] == kept
        stale = bench.value(
            "SELECT count(*) FROM classifier WHERE neighbours_support_version IS DISTINCT FROM"
            " (SELECT max(id) FROM exemplar WHERE classifier_id = classifier.id AND split = 'train')"
        )
        assert stale == 0

    def test_a_job_that_they_interrupt_is_finished_with_them(self, bench: Bench) -> None:
        golden = Golden("edge")
        golden.prepare(bench, "edge", slice(300))
        bench.calibrate("edge", **golden.settings)
        bench.write("score.npz", golden.exemplars("score"))
        job_id = request(bench)
        assert run_chunk(bench.runner(), job_id, 0) == 60
        bench.ingest("edge", bench.write("rest.npz", golden.exemplars("train", slice(300, None))), "train")
        assert [run_chunk(bench.runner(), job_id, ordinal) for ordinal in (1, 2)] == [60, 40]
        rows = bench.rows("SELECT support_version FROM decision ORDER BY exemplar_id")
        versions = [row.support_version for row in rows]
        assert versions[:60] == [versions[0]] * 60
        assert versions[60:] == [bench.value("SELECT max(id) FROM exemplar WHERE split = 'train'")] * 100
        assert versions[0] < versions[60]


def without_calibration(table: pa.Table) -> pa.Table:
    return table.drop_columns("calibration")


def test_every_kind_of_job_that_the_database_takes_is_computed_by_something(bench: Bench) -> None:
    kinds = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'job_kind_check'"
    assert set(re.findall(r"'(\w+)'", bench.value(kinds))) == set(job_kinds(bench.workspace()))


class TestAProcessThatIsStopped:
    """Between a statement and its commit a process may be stopped for any time: what it holds, others must not need."""

    @pytest.mark.parametrize("touch", ["claim", "renew", "take_unsent"])
    def test_holds_no_chunk(self, edge: Bench, touch: str, monkeypatch: pytest.MonkeyPatch) -> None:
        owner = jobs if touch == "take_unsent" else leases
        job_id, original = request(edge), getattr(owner, touch)
        free: list[bool] = []
        all_chunks = chunk_ordinals(edge.engine, job_id)

        def stopped_afterwards(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            query = "SELECT ordinal FROM job_chunk WHERE job_id = :job_id FOR UPDATE SKIP LOCKED"
            free.append(len(edge.rows(query, job_id=job_id)) == len(all_chunks))
            return result

        monkeypatch.setattr(owner, touch, stopped_afterwards)
        match touch:
            case "claim":
                run_chunk(edge.runner(), job_id, 0)
            case "renew":
                with at_once(edge.engine) as connection:
                    claim = leases.claim(connection, job_id, 0, worker="slow", lease_seconds=1)
                assert claim is not None
                with renewed_lease(edge.engine, claim, 0.06, structlog.get_logger()):
                    wait_until(lambda: bool(free), "the lease is renewed")
            case _:
                control.relay(edge.engine, broker.make_app("memory://", queue="none", task_seconds=60), job_id)
        assert free
        assert all(free)
