"""A calibrated classifier, the service that answers for it as a process of its own, and a key."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import numpy as np
import psutil
from sqlalchemy import Engine

from benchmarks.data import draw_network, draw_vectors
from tests.running import workspace
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.method_names import VENN_ABERS
from venn_admit.core.types import Float32Array, KnnParameters
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations, settings_for
from venn_admit.flows.calibration.fit import adopt_parameters
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import HELD_OUT, ingest
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.flows.keys.keys import create as create_key
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.array_cache import ArrayCache

NAME = "bench"
_CLASS_COUNT, _NEIGHBOUR_COUNT = 3, 25


class _Limits:
    lease_seconds, max_attempts, retry_seconds = 3600, 1, 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Where the service listens, its process, and a key for it; the database behind it, and a folder to work in.

    vectors, logits: (n, D) and (n, C) float32, of points that are not stored.
    """

    url: str
    process: psutil.Process
    key: str
    engine: Engine
    files: Path
    classifier: Classifier
    vectors: Float32Array
    logits: Float32Array

    def processor_seconds(self) -> float:
        """The processor time that the service has taken so far."""
        taken = self.process.cpu_times()
        return taken.user + taken.system

    def connect(self) -> HTTPConnection:
        """A connection of the standard library's client, of which others take several times the processor time."""
        where = urlsplit(self.url)
        return HTTPConnection(str(where.hostname), where.port)

    def post(self, connection: HTTPConnection, path: str, body: str) -> bytes:
        """What the service answers to JSON; a connection that it closed, since nobody used it, is opened again."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
        except ConnectionError:
            connection.close()
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
        content = answer.read()
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"{path}: {answer.status}: {content[:500]!r}")
        return content

    def client(self) -> httpx2.Client:
        """A client with a connection that it keeps."""
        return httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=600)


def settings_under(alpha: str = "0.1") -> CalibratorSettings:
    """Settings under which a part of the points is admitted."""
    return make_settings(_CLASS_COUNT, _NEIGHBOUR_COUNT, alpha=Decimal(alpha), kappa=100, q_bins=(0, 1, 13, 25))


@contextmanager
def serving(
    engine: Engine, files: Path, *, support: int, held_out: int, dimension: int, points: int
) -> Iterator[Served]:
    """A service of its own on a database, which is empty before."""
    classifier, vectors, logits = calibrated(
        engine, files, support=support, held_out=held_out, dimension=dimension, points=points
    )
    key = create_key(engine, "benchmark", scope="score").text
    with service_process(engine, files) as (url, process):
        yield Served(url, process, key, engine, files, classifier, vectors, logits)


def calibrated(
    engine: Engine, files: Path, *, support: int, held_out: int, dimension: int, points: int
) -> tuple[Classifier, Float32Array, Float32Array]:
    """The classifier `NAME`, calibrated, with the vectors and logits of points that are not stored."""
    vectors = draw_vectors(support + held_out + points, dimension)
    logits, labels = draw_network(vectors, _CLASS_COUNT)
    parts = np.split(np.arange(len(vectors)), [support, support + held_out])
    for split, rows in zip(("train", HELD_OUT), parts[:2], strict=True):
        np.savez(files / f"{split}.npz", r=vectors[rows], f=logits[rows], y=labels[rows])
    names = tuple(map(str, range(_CLASS_COUNT)))
    create(engine, NAME, names, dimension=dimension, neighbour_count=_NEIGHBOUR_COUNT, seed=0)
    for split in ("train", HELD_OUT):
        ingest(engine, NAME, FileSource(files / f"{split}.npz"), split)
    adopt_parameters(engine, NAME, KnnParameters(np.zeros(_CLASS_COUNT), np.full(_CLASS_COUNT, 0.5), 5.0), 1.0)
    runner = chunk_runner(workspace(engine, ArrayCache(files / "cache")), _Limits(), worker="benchmark")
    compute_job(engine, runner, request_approximations(workspace(engine, chunk_rows=2048), NAME))
    calibrate_on_stored(workspace(engine), find(engine, NAME), settings_under(), reason="benchmark")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, NAME)
    return classifier, vectors[parts[2]], logits[parts[2]]


def add_logits_only(engine: Engine, files: Path, held_out: int) -> str:
    """The name of another classifier, which has logits only, calibrated by Venn-Abers."""
    name = f"{NAME}-logits"
    create(engine, name, tuple(map(str, range(_CLASS_COUNT))), seed=0, logits_only=True)
    logits, labels = draw_network(draw_vectors(held_out, _CLASS_COUNT), _CLASS_COUNT)
    np.savez(files / "logits.npz", f=logits, y=labels)
    ingest(engine, name, FileSource(files / "logits.npz"), HELD_OUT)
    known = find(engine, name)
    calibrate_on_stored(workspace(engine), known, settings_for(known, VENN_ABERS, {}), reason="benchmark")
    return name


@contextmanager
def service_process(engine: Engine, files: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The URL of a service and its process, which is stopped afterwards."""
    command = [sys.executable, "-m", "venn_admit.cli", "serve", "--port", "0"]
    settings = {
        "VENN_ADMIT_DATABASE_URL": engine.url.render_as_string(hide_password=False),
        "VENN_ADMIT_HOME": str(files / "service"),
        "VENN_ADMIT_REQUESTS_PER_MINUTE": "0",
        "VENN_ADMIT_CONCURRENT_REQUESTS_PER_KEY": "0",
    }
    # A file, because the service would wait once nobody empties a pipe.
    with (files / "service.log").open("w+") as log:
        process = subprocess.Popen(command, env=os.environ | settings, stderr=log, stdout=log)
        try:
            while not (found := re.search(r"Listening on (http://\S+)", (files / "service.log").read_text())):
                if process.poll() is not None:
                    raise RuntimeError(f"the service ended: {(files / 'service.log').read_text()}")
                time.sleep(0.1)
            yield found[1], psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()
