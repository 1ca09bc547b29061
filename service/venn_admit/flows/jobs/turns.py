"""What a message leads to: the chunk that is next in turn is computed, and no chunk is left without a message."""

from collections.abc import Mapping

from celery import Celery
from sqlalchemy import Engine

from venn_admit import broker, telemetry
from venn_admit.errors import BrokerError
from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.flows.jobs.control import relay
from venn_admit.logger import log
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs


def compute_next(
    engine: Engine, app: Celery, runner: ChunkRunner, sent: tuple[int, int], headers: Mapping[str, str]
) -> int:
    """Compute the chunk that is next in turn, of whichever job, and return how many of its rows were completed.

    Args:
        runner: Claims and computes chunks.
        sent: The chunk (job, ordinal) of the message that led here.
        headers: The headers of that message; its trace goes on if the chunk is of the same job.
    """
    claim = runner.claim_next()
    if claim is None:
        return 0
    job_id, ordinal = sent
    if claim.is_unsent:
        # Or a chunk would have no message left, and wait until the sweeper counts.
        told = {"venn_admit.job": job_id, "venn_admit.chunk": ordinal}
        with telemetry.span("pass message on", "consumer", told, sent_with=headers):
            _pass_on(app, job_id, ordinal)
    told = {"venn_admit.job": claim.job_id, "venn_admit.chunk": claim.ordinal}
    sent_with = headers if claim.job_id == job_id else {}
    with telemetry.span("run chunk", "consumer", told, sent_with=sent_with) as span:
        rows = runner.compute(claim)
        if span is not None:
            span.set_attribute("venn_admit.rows", rows)
        if rows:
            relay_last(engine, app, claim.job_id)
    return rows


def relay_last(engine: Engine, app: Celery, job_id: int) -> int:
    """Send the message for the last chunk of a job if all others are done; return how many were sent.

    It is a look-up for jobs without such a chunk. If the broker cannot be reached, the sweeper sends it.
    """
    with connect(engine) as connection:
        is_free = jobs.is_last_free(connection, job_id)
    if not is_free:
        return 0
    try:
        return relay(engine, app, job_id)
    except BrokerError as error:
        log.warning("last chunk not sent", job=job_id, reason=str(error))
        return 0


def _pass_on(app: Celery, job_id: int, ordinal: int) -> None:
    """Send the message for a chunk again, after a chunk was claimed on it that had no message.

    Each time takes a claim, so that a message is not passed on for ever. If the broker cannot be reached, the sweeper
    notices that a message is missing.
    """
    try:
        broker.send(app, [(job_id, ordinal)])
    except BrokerError as error:
        log.warning("message not passed on", job=job_id, chunk=ordinal, reason=str(error))
