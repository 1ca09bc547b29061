"""Which chunks get a message, and which get another."""

import numpy as np
import psycopg
import pytest
from sqlalchemy import Engine, text

from tests.patience import wait_until
from tests.running import Bench
from venn_admit import broker
from venn_admit.flows.jobs import control
from venn_admit.flows.jobs.control import relay
from venn_admit.store.database.engine import driver_cursor, transaction
from venn_admit.store.exemplars import classifiers, support
from venn_admit.store.work import jobs, leases, new_jobs

CHUNKS = [0, 1, 2]
RESEND_SECONDS = 60.0


@pytest.fixture
def job(engine: Engine, bench: Bench) -> int:
    """A job of three chunks on exemplars that nothing is known of."""
    bench.create("reviews", dimension=2)
    arrays = {"r": np.zeros((3, 2), np.float32), "f": np.zeros((3, 2), np.float32), "y": np.array([0, 1, 0])}
    bench.ingest("reviews", bench.write("three.npz", arrays), "mc")
    return add_job(engine)


def add_job(engine: Engine) -> int:
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        ids = np.array(connection.execute(text("SELECT id FROM exemplar ORDER BY id")).scalars().all())
        return new_jobs.add_job(connection, classifier, new_jobs.NewJob("approximate", ids, None), chunk_rows=1)


def unsent(engine: Engine) -> list[int]:
    with transaction(engine) as connection:
        return [ordinal for _, ordinal in jobs.take_unsent(connection, None)]


def end_writers(engine: Engine, backend: int) -> None:
    """Look for unsent chunks, until a session that is signalled for that has ended: it might complete a COPY before."""
    unsent(engine)
    alive = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :backend")

    def has_ended() -> bool:
        with transaction(engine) as connection:
            return not connection.execute(alive, {"backend": backend}).scalar_one()

    wait_until(has_ended, "the session ends")


def overdue(engine: Engine) -> list[int]:
    """The chunks that are sent again if their messages were lost."""
    with transaction(engine) as connection:
        return [ordinal for _, ordinal in jobs.take_overdue(connection, RESEND_SECONDS)]


def claim(engine: Engine, job_id: int, ordinal: int, lease_seconds: float = 600.0) -> leases.Claim:
    with transaction(engine) as connection:
        claimed = leases.claim(connection, job_id, ordinal, worker="here", lease_seconds=lease_seconds)
    assert claimed is not None
    return claimed


def compute(engine: Engine, job_id: int, ordinal: int) -> None:
    """Claim a chunk, and have it done."""
    claimed = claim(engine, job_id, ordinal)
    with transaction(engine) as connection:
        assert leases.finish(connection, claimed)


def lasts(engine: Engine, job_id: int, seconds: float, ordinal: int) -> None:
    """Let a chunk have been claimed so long before it was done, or before now, and its message sent before that."""
    with transaction(engine) as connection:
        connection.execute(
            text("""
                UPDATE job_chunk
                SET
                    claimed_at = coalesce(finished_at, now()) - make_interval(secs => :seconds),
                    sent_at = now() - interval '1 hour'
                WHERE job_id = :job_id AND ordinal = :ordinal
            """),
            {"job_id": job_id, "seconds": seconds, "ordinal": ordinal},
        )


def age(engine: Engine, job_id: int) -> None:
    """Let all that has happened to the job be two minutes ago."""
    with transaction(engine) as connection:
        connection.execute(
            text("""
                UPDATE job_chunk
                SET sent_at = sent_at - interval '2 minutes', lease_until = lease_until - interval '2 minutes'
                WHERE job_id = :job_id
            """),
            {"job_id": job_id},
        )


def test_every_chunk_is_sent_once(engine: Engine, job: int) -> None:
    assert unsent(engine) == CHUNKS
    assert unsent(engine) == []
    assert job


def test_what_led_to_nothing_is_sent_again(engine: Engine, job: int) -> None:
    unsent(engine)
    assert overdue(engine) == []
    age(engine, job)
    assert overdue(engine) == CHUNKS
    assert overdue(engine) == []


def test_nothing_is_sent_again_while_a_message_waits(
    engine: Engine, job: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No worker is free then; and in a job of many chunks, most wait for long."""
    app = broker.make_app("memory://", queue="test-relay", task_seconds=60)
    broker.prepare(app)
    unsent(engine)
    age(engine, job)
    broker.send(app, [(job, 0)])
    assert relay(engine, app, resend_seconds=RESEND_SECONDS) == 0
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge("test-relay")
    assert relay(engine, app, resend_seconds=RESEND_SECONDS) == broker.waiting(app, chunks_only=True) == len(CHUNKS)
    said = [record.getMessage() for record in caplog.records if record.name == control.__name__]
    assert said == ["messages were lost: 3 chunks are sent again"]
    age(engine, job)
    assert relay(engine, app, resend_seconds=RESEND_SECONDS) == 0


def test_a_chunk_that_is_computed_or_done_lacks_no_message(engine: Engine, job: int) -> None:
    unsent(engine)
    age(engine, job)
    claimed = claim(engine, job, 1)
    with transaction(engine) as connection:
        assert jobs.overdue(connection, RESEND_SECONDS) == 2
        assert leases.finish(connection, claimed)
        assert jobs.overdue(connection, RESEND_SECONDS) == 2
    assert overdue(engine) == [0, 2]


def test_a_claim_that_ran_out_lacks_a_message_if_the_second_was_lost_too(engine: Engine, job: int) -> None:
    unsent(engine)
    age(engine, job)
    claim(engine, job, 0, lease_seconds=-1.0)
    assert unsent(engine) == [0]
    age(engine, job)
    assert unsent(engine) == []
    assert overdue(engine) == CHUNKS


def test_a_chunk_whose_claim_ran_out_is_sent_again_at_once(engine: Engine, job: int) -> None:
    unsent(engine)
    age(engine, job)
    claim(engine, job, 2, lease_seconds=-1.0)
    claim(engine, job, 0)
    assert unsent(engine) == [2]


def test_a_writer_whose_claim_ran_out_is_ended(engine: Engine, job: int) -> None:
    """It stands still in the middle of a COPY, in which Postgres heeds no timeout, and holds the classifier's lock."""
    unsent(engine)
    claims = claim(engine, job, 0, lease_seconds=-1.0), claim(engine, job, 1)
    writers = [engine.connect() for _ in claims]
    for writer, claimed in zip(writers, claims, strict=True):
        leases.begin_writing(writer, claimed, lease_seconds=600)
    cursors = [driver_cursor(writer) for writer in writers]
    cursors[0].execute("SELECT FROM classifier FOR NO KEY UPDATE")
    with pytest.raises(psycopg.errors.AdminShutdown), cursors[0].copy("COPY label_event FROM STDIN"):
        end_writers(engine, cursors[0].connection.info.backend_pid)
    with transaction(engine) as connection:
        support.lock_for_results(connection, classifiers.by_name(connection, "reviews"))
    assert cursors[1].execute("SELECT 1").fetchone() == (1,), "the other has its lease still"
    for writer in writers:
        writer.invalidate()
        writer.close()


def test_a_chunk_that_went_wrong_is_sent_again_at_once(engine: Engine, job: int) -> None:
    unsent(engine)
    claimed = claim(engine, job, 1)
    with transaction(engine) as connection:
        assert leases.fail(connection, claimed, error="disk full", max_attempts=3, retry_seconds=0) == "pending"
    assert unsent(engine) == [1]


def test_what_lost_its_worker_is_sent_again_at_once_and_once(engine: Engine, job: int) -> None:
    unsent(engine)
    claim(engine, job, 0)
    claim(engine, job, 1)
    with transaction(engine) as connection:
        connection.execute(text("UPDATE job_chunk SET worker = 'dead' WHERE ordinal = 1"))
    with transaction(engine) as connection:
        assert leases.release(connection, "dead") == 1
    assert unsent(engine) == [1]
    assert unsent(engine) == []
    claim(engine, job, 1)


def test_a_claim_is_renewed_until_it_is_lost(engine: Engine, job: int) -> None:
    claimed = claim(engine, job, 0, lease_seconds=1.0)

    def renew(seconds: float) -> bool:
        with transaction(engine) as connection:
            return leases.renew(connection, claimed, lease_seconds=seconds)

    assert renew(600)
    with transaction(engine) as connection:
        progress = jobs.progress(connection, job, least_lease_seconds=300)
        assert (progress.chunks_alive, progress.chunks_orphaned) == (1, 0)
        progress = jobs.progress(connection, job, least_lease_seconds=900)
        assert (progress.chunks_alive, progress.chunks_orphaned) == (0, 1)
    assert renew(-1)
    claim(engine, job, 0)
    assert not renew(600)


def test_a_job_that_no_worker_can_know_of_is_cancelled(engine: Engine, job: int) -> None:
    def cancel() -> bool:
        with transaction(engine) as connection:
            return jobs.cancel_unsent(connection, job, error="no broker")

    chunks = unsent(engine)
    assert not cancel(), "messages are under way"
    with transaction(engine) as connection:
        jobs.unsend(connection, [(job, ordinal) for ordinal in chunks])
    assert cancel()
    with transaction(engine) as connection:
        cancelled = jobs.by_id(connection, job)
        assert leases.claim(connection, job, 0, worker="here", lease_seconds=600) is None
    assert (cancelled.state, cancelled.error) == ("cancelled", "no broker")
    assert unsent(engine) == [], "no sweep sends it"


@pytest.mark.parametrize(
    ("others_seconds", "seconds", "is_late"),
    [(10, 29, False), (10, 31, True), (0.01, 4, False), (0.01, 6, True)],
)
def test_a_chunk_is_late_that_takes_several_times_as_long_as_others(
    engine: Engine, job: int, others_seconds: float, seconds: float, is_late: bool
) -> None:
    unsent(engine)
    for ordinal in (0, 1):
        compute(engine, job, ordinal)
        lasts(engine, job, others_seconds, ordinal)
    claim(engine, job, 2)
    lasts(engine, job, seconds, 2)
    assert unsent(engine) == ([2] if is_late else [])
    assert unsent(engine) == []


def test_a_chunk_that_is_late_is_sent_again_if_its_message_is_lost(engine: Engine, job: int) -> None:
    unsent(engine)
    compute(engine, job, 0)
    compute(engine, job, 1)
    claim(engine, job, 2)
    lasts(engine, job, 60, 2)
    assert unsent(engine) == [2]
    assert overdue(engine) == []
    age(engine, job)
    assert overdue(engine) == [2]


def test_no_chunk_is_late_while_another_waits(engine: Engine, job: int) -> None:
    unsent(engine)
    compute(engine, job, 0)
    claim(engine, job, 1)
    lasts(engine, job, 60, 1)
    assert unsent(engine) == []
    claim(engine, job, 2)
    assert unsent(engine) == [1]


def test_no_chunk_is_late_before_another_is_done(engine: Engine, job: int) -> None:
    unsent(engine)
    for ordinal in CHUNKS:
        claim(engine, job, ordinal)
        lasts(engine, job, 3600, ordinal)
    assert unsent(engine) == []


def test_the_chunk_that_others_precede_is_never_late(engine: Engine, job: int) -> None:
    """It does something else, so that it takes as long as that takes."""
    with transaction(engine) as connection:
        connection.execute(text("UPDATE job_chunk SET is_last = TRUE WHERE ordinal = 2"))
    unsent(engine)
    compute(engine, job, 0)
    compute(engine, job, 1)
    unsent(engine)
    claim(engine, job, 2)
    lasts(engine, job, 3600, 2)
    assert unsent(engine) == []
