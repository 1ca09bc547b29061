"""What a worker computes for a chunk, by the kind of job."""

from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from venn_admit.flows.calibration.approximate import ApproximateChunks
from venn_admit.flows.calibration.fit import FitChunks
from venn_admit.flows.decisions.score import ScoreChunks
from venn_admit.flows.jobs.chunks import ChunkRunner, ChunkSettings, ComputeChunk
from venn_admit.store.search.array_cache import ArrayCache


def job_kinds(engine: Engine, cache: ArrayCache) -> dict[str, ComputeChunk]:
    """Return the functions that compute chunks, by the name of the kind of job in the database."""
    return {
        "approximate": ApproximateChunks(engine, cache),
        "score": ScoreChunks(engine, cache),
        "fit": FitChunks(engine, cache),
    }


def chunk_runner(
    engine: Engine,
    cache: ArrayCache,
    settings: ChunkSettings,
    *,
    worker: str,
    log: FilteringBoundLogger | None = None,
) -> ChunkRunner:
    """Return a runner of chunks of every kind; worker and log are as in `ChunkRunner`."""
    return ChunkRunner(engine, job_kinds(engine, cache), settings, worker=worker, log=log)
