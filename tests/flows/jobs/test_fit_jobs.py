"""Fits as jobs: the last chunk waits for all others, in whatever process and order these are computed."""

import numpy as np
import pytest
from celery import Celery
from sqlalchemy import text

from tests.running import Bench, ChunkLimits, Golden, run_chunk
from venn_admit import broker
from venn_admit.errors import Code, NotReadyError
from venn_admit.flows.calibration.fit import fit_on_stored, request_fit, show_fit
from venn_admit.flows.computing import job_kinds
from venn_admit.flows.jobs.chunks import ChunkResult, ChunkRunner
from venn_admit.flows.jobs.control import cancel, relay, reopen
from venn_admit.flows.jobs.listing import progress
from venn_admit.flows.jobs.turns import relay_last
from venn_admit.flows.removal.forget import forget
from venn_admit.store.database.engine import transaction
from venn_admit.store.work import leases
from venn_admit_client.records.data import Forgetting, Ingestion


def requested(bench: Bench) -> tuple[int, int]:
    """A fit whose neighbours are unknown: the job, and the number of its last chunk."""
    with transaction(bench.engine) as connection:
        connection.execute(text("TRUNCATE neighbours CASCADE"))
        connection.execute(text("UPDATE exemplar SET split = 'knn' WHERE split = 'mc' AND id % 2 = 0"))
    job_id = request_fit(bench.workspace(chunk_rows=60), "edge").job_id
    last: int = bench.value(f"SELECT ordinal FROM job_chunk WHERE job_id = {job_id} AND is_last")
    assert last > 1
    return job_id, last


def test_the_last_chunk_waits_for_the_others(edge: Bench) -> None:
    job_id, last = requested(edge)
    worker = edge.runner()
    assert run_chunk(worker, job_id, last) == 0
    for ordinal in reversed(range(last)):
        assert run_chunk(worker, job_id, last) == 0
        assert run_chunk(worker, job_id, ordinal) > 0
    assert progress(edge.engine, job_id).state == "running"
    assert run_chunk(worker, job_id, last) > 0
    found = progress(edge.engine, job_id)
    assert (found.state, found.rows_done) == ("done", found.row_count)
    made = edge.value(f"SELECT knn_parameters_id FROM job WHERE id = {job_id}")
    assert made == edge.value("SELECT id FROM knn_parameters WHERE is_current AND origin = 'fitted'")
    assert show_fit(edge.engine, job_id).knn_parameters == made
    assert run_chunk(worker, job_id, last) == 0, "delivered twice, it fits once"


def test_with_all_neighbours_known_there_is_the_fit_alone(edge: Bench) -> None:
    job_id, last = requested(edge)
    for ordinal in range(last + 1):
        run_chunk(edge.runner(), job_id, ordinal)
    again = request_fit(edge.workspace(chunk_rows=60), "edge").job_id
    assert edge.value(f"SELECT count(*) FROM job_chunk WHERE job_id = {again}") == 1
    assert run_chunk(edge.runner(), again, 0) > 0
    assert show_fit(edge.engine, again).temperature == show_fit(edge.engine, job_id).temperature


def test_a_fit_fails_if_one_of_its_chunks_does_and_goes_on_once_it_is_reopened(edge: Bench) -> None:
    job_id, last = requested(edge)
    once = ChunkLimits(max_attempts=1)
    with transaction(edge.engine) as connection:
        connection.execute(text("UPDATE job_chunk SET attempts = 1 WHERE job_id = :id AND ordinal = 0"), {"id": job_id})
    for ordinal in range(last + 1):
        run_chunk(edge.runner(once), job_id, ordinal)
    assert progress(edge.engine, job_id).state == "failed"
    reopen(edge.engine, job_id)
    for ordinal in (0, last):
        assert run_chunk(edge.runner(), job_id, ordinal) > 0
    assert progress(edge.engine, job_id).state == "done"


def test_a_fit_that_is_cancelled_while_it_is_computed_stores_nothing(edge: Bench) -> None:
    job_id, last = requested(edge)
    for ordinal in range(last):
        run_chunk(edge.runner(), job_id, ordinal)

    class CancelledMeanwhile(ChunkRunner):
        def _apply(self, claim: leases.Claim, result: ChunkResult) -> bool:
            cancel(edge.engine, job_id)
            return super()._apply(claim, result)

    late = CancelledMeanwhile(edge.engine, job_kinds(edge.workspace()), ChunkLimits(), worker="late")
    before = edge.value("SELECT id FROM knn_parameters WHERE is_current")
    assert run_chunk(late, job_id, last) == 0
    assert edge.value("SELECT id FROM knn_parameters WHERE is_current") == before
    assert progress(edge.engine, job_id).state == "cancelled"
    reopen(edge.engine, job_id)
    assert run_chunk(edge.runner(), job_id, last) > 0
    assert edge.value("SELECT id FROM knn_parameters WHERE is_current") > before


def test_a_claim_made_while_a_job_was_cancelled_does_not_finish_it(edge: Bench) -> None:
    job_id, last = requested(edge)
    for ordinal in range(last):
        run_chunk(edge.runner(), job_id, ordinal)
    with transaction(edge.engine) as connection:
        claim = leases.claim(connection, job_id, last, worker="late", lease_seconds=600)
        assert claim is not None
        # Cancelled before the claim is committed: it is not seen, and keeps its token.
        state = text("UPDATE job SET state = 'cancelled', finished_at = now() WHERE id = :id")
        connection.execute(state, {"id": job_id})
    with transaction(edge.engine) as connection:
        assert not leases.finish(connection, claim)
    reopen(edge.engine, job_id)
    with transaction(edge.engine) as connection:
        assert not leases.finish(connection, claim)


@pytest.mark.parametrize("split", ["knn", "vp", "train"])
def test_a_fit_beside_which_exemplars_are_forgotten_stores_nothing(edge: Bench, split: str) -> None:
    job_id, last = requested(edge)
    for ordinal in range(last):
        run_chunk(edge.runner(), job_id, ordinal)
    cancel(edge.engine, job_id)
    before = edge.value("SELECT id FROM knn_parameters WHERE is_current")
    gone = edge.value("SELECT external_id FROM exemplar WHERE split = :split ORDER BY id LIMIT 1", split=split)
    done = list[Forgetting]()

    def forget_meanwhile(*_: object) -> None:
        if not done:
            done.append(forget(edge.workspace(chunk_rows=60), "edge", [gone]))

    with pytest.raises(NotReadyError, match=r"of 'edge' were forgotten during the fit, .*run the fit again") as raised:
        fit_on_stored(edge.workspace(), "edge", on_epoch=forget_meanwhile)
    assert raised.value.code is Code.CHANGED_DURING_FIT
    assert done[0].exemplars == 1
    assert edge.value("SELECT id FROM knn_parameters WHERE is_current") == before


def test_a_fit_beside_which_training_exemplars_arrive_counts(edge: Bench) -> None:
    job_id, last = requested(edge)
    for ordinal in range(last):
        run_chunk(edge.runner(), job_id, ordinal)
    cancel(edge.engine, job_id)
    rows = Golden("edge").exemplars("score", slice(2))
    path = edge.write("more.npz", rows | {"id": np.array(["more-0", "more-1"])})
    ingested = list[Ingestion]()

    def ingest_meanwhile(*_: object) -> None:
        if not ingested:
            ingested.append(edge.ingest("edge", path, "train"))

    made = fit_on_stored(edge.workspace(), "edge", on_epoch=ingest_meanwhile)
    assert made.parameters.id == edge.value("SELECT id FROM knn_parameters WHERE is_current")


@pytest.fixture
def sender(edge: Bench) -> Celery:
    url = edge.engine.url.render_as_string(hide_password=False)
    app = broker.make_app(broker.broker_url(None, url), queue="fits", task_seconds=60)
    broker.prepare(app)
    return app


def test_its_message_is_sent_once_the_others_are_done(edge: Bench, sender: Celery) -> None:
    job_id, last = requested(edge)
    assert relay(edge.engine, sender, job_id) == last
    assert relay_last(edge.engine, sender, job_id) == 0
    for ordinal in range(last):
        run_chunk(edge.runner(), job_id, ordinal)
    assert relay_last(edge.engine, sender, job_id) == 1
    assert relay_last(edge.engine, sender, job_id) == 0, "it is under way"


def test_nothing_is_sent_for_one_that_was_cancelled(edge: Bench, sender: Celery) -> None:
    job_id, last = requested(edge)
    for ordinal in range(last):
        run_chunk(edge.runner(), job_id, ordinal)
    cancel(edge.engine, job_id)
    assert relay_last(edge.engine, sender, job_id) == 0
    assert run_chunk(edge.runner(), job_id, last) == 0
