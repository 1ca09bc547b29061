"""What a worker computes for a chunk, by the kind of job."""

from structlog.typing import FilteringBoundLogger

from venn_admit.flows.calibration.approximate import ApproximateChunks
from venn_admit.flows.calibration.fit import FitChunks
from venn_admit.flows.cascades.certify import CertifyChunks
from venn_admit.flows.decisions.score import ScoreChunks
from venn_admit.flows.jobs.chunks import ChunkRunner, ChunkSettings, ComputeChunk
from venn_admit.store.workspace import Workspace


def job_kinds(workspace: Workspace) -> dict[str, ComputeChunk]:
    """Return the functions that compute chunks, by the name of the kind of job in the database."""
    return {
        "approximate": ApproximateChunks(workspace),
        "score": ScoreChunks(workspace),
        "fit": FitChunks(workspace),
        "certify": CertifyChunks(workspace),
    }


def chunk_runner(
    workspace: Workspace, settings: ChunkSettings, *, worker: str, log: FilteringBoundLogger | None = None
) -> ChunkRunner:
    """Return a runner of chunks of every kind; worker and log are as in `ChunkRunner`."""
    return ChunkRunner(workspace.engine, job_kinds(workspace), settings, worker=worker, log=log)
