"""A small synthetic problem: three clusters, a classifier that is often right, and jobs over it."""

from pathlib import Path
from typing import Any

import numpy as np
from celery import Celery
from sqlalchemy import Engine, Row, text

from tests.patience import wait_until
from tests.running import Arrays, Bench
from venn_admit.core.types import KnnParameters
from venn_admit.flows.jobs.control import relay
from venn_admit.flows.jobs.submit import Send
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs

NAME = "clusters"
DIMENSION = 16
CLASS_COUNT = 3
SCORED_ROWS = 1200
CHUNK_ROWS = 50
CHUNKS = SCORED_ROWS // CHUNK_ROWS
PARAMETERS = KnnParameters(beta=np.zeros(CLASS_COUNT), gamma=np.ones(CLASS_COUNT), eta=1.5)
ETA_LOC = 0.5
SETTINGS: dict[str, Any] = {"kappa": 20, "q_bins": (0, 1, 10)}

DECISIONS = "decision LEFT JOIN admit_evidence ON decision.id = decision_id"
# Everything that a job writes, but surrogate keys and times; numbers as text are exact.
WRITTEN = {
    "neighbours": "exemplar_id, support_version, neighbour_ids, distances",
    "approximation": "exemplar_id, knn_parameters_id, support_version, predicted, match_count, distance, logits",
    DECISIONS: "exemplar_id, calibration_id, weighted, require_full_match, support_version, predicted, match_count, "
    "distance, logits, admit_set, band_size, threshold, category_size, upweight, lower, upper, decision, reason",
}


def exemplars(part: str, n: int) -> Arrays:
    """Rows of a file called `part`: the clusters overlap a little, in vectors and logits alike."""
    rng = np.random.default_rng(list(part.encode()))
    y = rng.integers(0, CLASS_COUNT, n)
    centres = np.eye(CLASS_COUNT, DIMENSION) * 4
    r = (centres[y] + rng.standard_normal((n, DIMENSION))).astype(np.float32)
    f = (np.eye(CLASS_COUNT)[y] * 3 + rng.standard_normal((n, CLASS_COUNT))).astype(np.float32)
    return {"id": np.array([f"{part}-{row}" for row in range(n)]), "r": r, "f": f, "y": y}


def make_clusters(bench: Bench, name: str = NAME) -> None:
    """The classifier, calibrated."""
    bench.create(name, dimension=DIMENSION, class_count=CLASS_COUNT, neighbour_count=10)
    bench.ingest(name, bench.write("train.npz", exemplars("train", 600)), "train")
    bench.ingest(name, bench.write("held-out.npz", exemplars("held-out", 2000)), "held-out")
    bench.adopt(name, PARAMETERS, ETA_LOC)
    bench.calibrate(name, **SETTINGS)


def request_score(
    engine: Engine, folder: Path, *, chunk_rows: int = CHUNK_ROWS, send: Send | None = None, name: str = NAME
) -> int:
    """Record a job over some exemplars that nothing is known of yet; its key."""
    bench = Bench(engine, folder)
    path = bench.write("scored.npz", exemplars("scored", SCORED_ROWS))
    return bench.request_score(name, path, chunk_rows=chunk_rows, send=send).job_id


def written(engine: Engine) -> dict[str, list[str]]:
    """The rows of each table that a job writes, in the order of exemplars."""
    with connect(engine) as connection:
        return {
            table: list(connection.execute(text(f"SELECT ({columns})::text FROM {table} ORDER BY {columns}")).scalars())
            for table, columns in WRITTEN.items()
        }


def progress(engine: Engine, job_id: int) -> jobs.Progress:
    with connect(engine) as connection:
        return jobs.progress(connection, job_id)


def relay_until_done(engine: Engine, sender: Celery, job_id: int) -> None:
    """Send again, sooner than a requester does, what nobody has a lease on."""

    def done() -> bool:
        relay(engine, sender, job_id, resend_seconds=0.5)
        return progress(engine, job_id).state == "done"

    wait_until(done, "the job is done")


def rows(engine: Engine, query: str, **parameters: Any) -> list[Row[Any]]:
    """What a statement of the test's own returns."""
    with connect(engine) as connection:
        return list(connection.execute(text(query), parameters).all())


def value(engine: Engine, query: str, **parameters: Any) -> Any:
    """The one value of a statement of the test's own."""
    ((found,),) = rows(engine, query, **parameters)
    return found
