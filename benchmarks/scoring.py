"""A file scored end to end by two workers through the database, against the matrix products alone.

The products are those that no implementation gets around: of the points with the support, and of the points whose set
is a singleton with vp, which the localizer's weights are normalised over.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from celery import Celery
from sqlalchemy import Engine, text

from benchmarks.data import draw_network, draw_vectors
from benchmarks.measure import Measurement, compare
from benchmarks.storage import database, folder
from tests.running import workspace
from venn_admit.cli.worker_process import STOP_SECONDS, worker_command, worker_environment
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.types import Float32Array, IntArray, KnnParameters
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations
from venn_admit.flows.calibration.fit import adopt_parameters
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.decisions.score import request_score, write_scores
from venn_admit.flows.jobs.control import await_job
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs

_DIMENSION = 384
_CLASS_COUNT = 3
_K = 25
_CHUNK_ROWS = 2048
_WORKERS = 2
_NAME = "bench"
_BLOCK_BYTES = 64 * 2**20
_START_SECONDS = 300.0  # on a machine that is busy with other things


def measure(large: bool) -> Iterator[Measurement]:
    points, support, held_out = (100_000, 100_000, 50_000) if large else (10_000, 10_000, 5_000)
    vectors = draw_vectors(points + support + 2 * held_out, _DIMENSION)
    logits, labels = draw_network(vectors, _CLASS_COUNT)
    ends = np.cumsum([support, held_out, held_out, points])
    parts = dict(zip(("train", "mc", "vp", "score"), np.split(np.arange(ends[-1]), ends[:-1]), strict=True))
    with folder() as files, database(files / "home") as engine, workers(engine, files / "home") as app:
        create(engine, _NAME, tuple(map(str, range(_CLASS_COUNT))), dimension=_DIMENSION, neighbour_count=_K, seed=0)
        for part, rows in parts.items():
            path = files / f"{part}.npz"
            np.savez(path, r=vectors[rows], f=logits[rows], y=labels[rows])
            if part != "score":
                ingest(engine, _NAME, FileSource(path), part)
        scoring = _Scoring(engine, app, files, [])
        scoring.calibrate()
        scoring.score()
        queries, singletons = vectors[parts["score"]], scoring.singletons()
        found = compare(
            "score a file, two workers",
            f"{points:,} points, support {support:,}, vp {held_out:,}, D={_DIMENSION}",
            "float32 products",
            scoring.score,
            lambda: _products(queries, vectors[parts["train"]], queries[singletons], vectors[parts["vp"]]),
            turns=1 if large else 3,
        )
        stored, computed, written = np.median(scoring.seconds, axis=0).tolist()
        note = (
            f"{len(singletons):,} singletons; stored in {stored:.1f} s, computed {computed:.1f}, written {written:.1f}"
        )
        yield replace(found, note=note)


@dataclass(frozen=True, slots=True, eq=False)
class _Scoring:
    """seconds: of each run, what storing, computing and writing took."""

    engine: Engine
    app: Celery
    files: Path
    seconds: list[tuple[float, float, float]]

    def calibrate(self) -> None:
        parameters = KnnParameters(np.zeros(_CLASS_COUNT), np.full(_CLASS_COUNT, 0.5), 5.0)
        adopt_parameters(self.engine, _NAME, parameters, eta_loc=5.0)
        self._run(request_approximations(workspace(self.engine, chunk_rows=_CHUNK_ROWS), _NAME))
        calibrate_on_stored(workspace(self.engine), find(self.engine, _NAME), _settings(), reason="benchmark")

    def score(self) -> None:
        """As `venn-admit score` does it, of a file whose rows are all new, because their ids are."""
        path = under_new_ids(self.files / "score.npz", len(self.seconds))
        start = time.perf_counter()
        request = request_score(
            workspace(self.engine, chunk_rows=_CHUNK_ROWS),
            _NAME,
            FileSource(path),
            weighted=True,
            require_full_match=False,
            calibration_id=None,
        )
        stored = time.perf_counter()
        self._run(request.job_id)
        computed = time.perf_counter()
        write_scores(self.engine, request.job_id, self.files / "scores.parquet")
        self.seconds.append((stored - start, computed - stored, time.perf_counter() - computed))

    def singletons(self) -> IntArray:
        """Rows of the file whose set is a singleton."""
        query = (
            "SELECT job_row.row_number FROM job_row JOIN decision USING (exemplar_id)"
            " JOIN admit_evidence ON decision.id = decision_id"
            " WHERE job_id = (SELECT max(id) FROM job) AND bit_count(admit_set) = 1"
        )
        with connect(self.engine) as connection:
            return np.array(connection.execute(text(query)).scalars().all(), dtype=np.int64)

    def _run(self, job_id: int) -> None:
        await_job(self.engine, self.app, job_id, check_workers=lambda: None, on_progress=lambda _progress: None)


def _settings() -> CalibratorSettings:
    return make_settings(_CLASS_COUNT, _K, kappa=100)


@contextmanager
def workers(engine: Engine, home: Path) -> Iterator[Celery]:
    """A worker of two processes on the embedded server of `home`; the application that sends it messages."""
    url = engine.url.render_as_string(hide_password=False)
    runtime = Runtime.start(Settings(home=home, database_url=url, broker_url=None))
    app = runtime.broker
    with (home / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            worker_command(_WORKERS),
            env=worker_environment() | {"VENN_ADMIT_HOME": str(home), "VENN_ADMIT_STOP_WITH_STDIN": "true"},
            stdin=subprocess.PIPE,  # it ends with this process, however that ends
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        await_worker(engine, process)
        yield app
    finally:
        app.close()
        runtime.engine.dispose()
        process.communicate(timeout=STOP_SECONDS)


def under_new_ids(points: Path, run: int) -> Path:
    """Write a file of the same points beside it, which are all new, because their ids are of this run."""
    path = points.with_stem(f"{points.stem}-{run}")
    with np.load(points) as arrays:
        np.savez(path, **arrays, id=[f"{run}-{row}" for row in range(len(arrays["f"]))])
    return path


def await_worker(engine: Engine, process: "subprocess.Popen[bytes]", *, others: int = 0) -> None:
    """Wait until a worker is up; others: how many were before it. Raises RuntimeError if it does not come up."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with connect(engine) as connection:
            if jobs.live_workers(connection) > others:
                return
        time.sleep(0.1)
    raise RuntimeError(f"no worker came up within {_START_SECONDS:.0f} s")


def _products(
    queries: Float32Array, support: Float32Array, singletons: Float32Array, localizer_support: Float32Array
) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(_WORKERS)
    try:
        for left, right in ((queries, support), (singletons, localizer_support)):
            columns = torch.from_numpy(right).T
            for block in torch.split(torch.from_numpy(left), max(1, _BLOCK_BYTES // (4 * len(right)))):
                torch.matmul(block, columns)
    finally:
        torch.set_num_threads(threads)
