"""What a worker computes of a chunk, for each kind of job there is."""

from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from venn_admit.service.flows.calibration.approximate import ApproximateChunks
from venn_admit.service.flows.decisions.score import ScoreChunks
from venn_admit.service.flows.jobs.chunks import ChunkRunner, ChunkSettings, ComputeChunk
from venn_admit.service.store.search.array_cache import ArrayCache


def job_kinds(engine: Engine, cache: ArrayCache) -> dict[str, ComputeChunk]:
    """Every kind of job, by the name that the database has for it."""
    return {"approximate": ApproximateChunks(engine, cache), "score": ScoreChunks(engine, cache)}


def chunk_runner(
    engine: Engine,
    cache: ArrayCache,
    settings: ChunkSettings,
    *,
    worker: str,
    log: FilteringBoundLogger | None = None,
) -> ChunkRunner:
    """A runner of chunks of every kind; worker and log are as for `ChunkRunner`."""
    return ChunkRunner(engine, job_kinds(engine, cache), settings, worker=worker, log=log)
