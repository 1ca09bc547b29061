"""Decisions on one point over HTTP, with several clients at once, against the bare search at the same concurrency.

`venn-admit serve` is a process of its own. Its clients, and those of the peer, are threads of this one, each with a
connection that it keeps: to the service, or to the database for `ORDER BY vector <-> v LIMIT 25`, ids alone. Both take
turns, a tenth of the points at a time. The clients' own time counts on both sides.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import numpy as np
import psycopg
import structlog
from sqlalchemy import Engine

from benchmarks.data import draw_network, draw_vectors
from benchmarks.measure import Measurement
from benchmarks.storage import database, folder
from venn_admit.service.core.calibrators.settings import make_settings
from venn_admit.service.core.types import CalibratorSettings, Float32Array, FloatArray, KnnParameters
from venn_admit.service.files.sources import FileSource
from venn_admit.service.flows.access.keys import create as create_key
from venn_admit.service.flows.calibration.calibrate import calibrate, request_approximations
from venn_admit.service.flows.calibration.fit import adopt_parameters
from venn_admit.service.flows.computing import chunk_runner
from venn_admit.service.flows.exemplars.create import create
from venn_admit.service.flows.exemplars.ingest import HELD_OUT, ingest
from venn_admit.service.flows.jobs.in_process import compute_job
from venn_admit.service.store.database.engine import connect
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache

_CLASS_COUNT, _NEIGHBOUR_COUNT, _NAME = 3, 25, "bench"
_CLIENTS = (1, 8, 32)
_POINTS, _BLOCKS, _WARM_UP = 640, 10, 64

Call = Callable[[int], object]


class _Limits:
    lease_seconds, max_attempts, retry_seconds, memory_budget_mb = 3600, 1, 1.0, 512


def measure(large: bool) -> Iterator[Measurement]:
    support, held_out, dimension = (100_000, 111_200, 384) if large else (10_000, 11_120, 128)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    vectors = draw_vectors(support + held_out + _POINTS, dimension)
    logits, labels = draw_network(vectors, _CLASS_COUNT)
    parts = np.split(np.arange(len(vectors)), [support, support + held_out])
    with folder() as files, database(files / "home") as engine:
        for split, rows in zip(("train", HELD_OUT), parts[:2], strict=True):
            np.savez(files / f"{split}.npz", r=vectors[rows], f=logits[rows], y=labels[rows])
        classifier = _calibrated(engine, files, dimension)
        key = create_key(engine, "benchmark", scope="score").text
        with _served(engine, files) as url:
            for weighted in (False, True):
                for clients in _CLIENTS:
                    size = f"{support:,}, D={dimension}, clients: {clients}"
                    yield _side_by_side(engine, classifier, vectors[parts[2]], (url, key), weighted, clients, size)


def _calibrated(engine: Engine, files: Path, dimension: int) -> Classifier:
    def settings(_: Classifier) -> CalibratorSettings:
        return make_settings(_CLASS_COUNT, _NEIGHBOUR_COUNT, kappa=100, bin_edges=(0, 1, 13, 25))

    names = tuple(map(str, range(_CLASS_COUNT)))
    create(engine, _NAME, names, dimension=dimension, neighbour_count=_NEIGHBOUR_COUNT, seed=0)
    for split in ("train", HELD_OUT):
        ingest(engine, _NAME, FileSource(files / f"{split}.npz"), split)
    adopt_parameters(engine, _NAME, KnnParameters(np.zeros(_CLASS_COUNT), np.full(_CLASS_COUNT, 0.5), 5.0), 1.0)
    runner = chunk_runner(engine, ArrayCache(files / "cache"), _Limits(), worker="benchmark")
    compute_job(engine, runner, request_approximations(engine, _NAME, settings, chunk_rows=2048))
    calibrate(engine, _NAME, settings, reason="benchmark")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")
    with connect(engine) as connection:
        return classifiers.by_name(connection, _NAME)


@contextmanager
def _served(engine: Engine, files: Path) -> Iterator[str]:
    """The URL of a service, which is stopped afterwards."""
    command = [sys.executable, "-m", "venn_admit.service.cli", "serve", "--port", "0"]
    settings = {
        "VENN_ADMIT_DATABASE_URL": engine.url.render_as_string(hide_password=False),
        "VENN_ADMIT_HOME": str(files / "service"),
        "VENN_ADMIT_REQUESTS_PER_MINUTE": "0",
    }
    # A file, because the service would wait once nobody empties a pipe.
    with (files / "service.log").open("w+") as log:
        process = subprocess.Popen(command, env=os.environ | settings, stderr=log, stdout=log)
        try:
            while not (found := re.search(r"Listening on (http://\S+)", (files / "service.log").read_text())):
                if process.poll() is not None:
                    raise RuntimeError(f"the service ended: {(files / 'service.log').read_text()}")
                time.sleep(0.1)
            yield found[1]
        finally:
            process.terminate()
            process.wait()


def _side_by_side(
    engine: Engine,
    classifier: Classifier,
    vectors: Float32Array,
    service: tuple[str, str],
    weighted: bool,
    clients: int,
    size: str,
) -> Measurement:
    url, key = service
    bodies = [json.dumps({"points": [{"vector": vector.tolist()}], "weighted": weighted}) for vector in vectors]
    literals = [json.dumps(vector.tolist()) for vector in vectors]
    search = (
        f"SELECT exemplar_id FROM venn_admit.exemplar_vector_{classifier.id}_support"
        f" ORDER BY vector <-> CAST(%s AS public.vector) LIMIT {_NEIGHBOUR_COUNT}"
    )
    where = engine.dialect.create_connect_args(engine.url)[1]
    with ExitStack() as opened, ThreadPoolExecutor(clients) as threads:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        https = [opened.enter_context(httpx2.Client(base_url=url, headers=headers)) for _ in range(clients)]
        connections = [opened.enter_context(psycopg.connect(**where, autocommit=True)) for _ in range(clients)]

        def decide(client: int) -> Call:
            return lambda point: (
                https[client].post(f"/v1/classifiers/{_NAME}/decide", content=bodies[point]).raise_for_status()
            )

        def find(client: int) -> Call:
            return lambda point: connections[client].execute(search, [literals[point]]).fetchall()

        def run(call_of: Callable[[int], Call], points: range) -> tuple[float, FloatArray]:
            """Wall clock for all points, and how long each took."""
            start = time.perf_counter()
            parts = threads.map(_timed, map(call_of, range(clients)), [points[c::clients] for c in range(clients)])
            seconds = np.concatenate([np.array(part) for part in parts])
            return time.perf_counter() - start, seconds

        run(decide, range(_WARM_UP))
        run(find, range(_WARM_UP))
        turns = []
        for block in range(_BLOCKS):
            points = range(block * _POINTS // _BLOCKS, (block + 1) * _POINTS // _BLOCKS)
            both = {side: run(side, points) for side in ((decide, find) if block % 2 else (find, decide))}
            turns.append((both[decide], both[find]))
    mine, bare = (np.concatenate([turn[side][1] for turn in turns]) for side in (0, 1))
    my_rate, bare_rate = (_POINTS / sum(turn[side][0] for turn in turns) for side in (0, 1))
    ours, peer = float(np.median(mine)), float(np.median(bare))
    return Measurement(
        what=f"decide over HTTP, {'weighted' if weighted else 'plain'}, p50",
        size=size,
        against="bare: nearest 25",
        ours=ours,
        peer=peer,
        ratio=float(np.median([np.median(theirs[1]) / np.median(own[1]) for own, theirs in turns])),
        note=f"p99 {1000 * np.percentile(mine, 99):.1f} ms, peer {1000 * np.percentile(bare, 99):.1f}; "
        f"a second {my_rate:,.0f}, peer {bare_rate:,.0f}",
    )


def _timed(call: Call, points: range) -> list[float]:
    seconds = []
    for point in points:
        start = time.perf_counter()
        call(point)
        seconds.append(time.perf_counter() - start)
    return seconds
