"""A recalibration after labels have arrived, against a rebuild of the same calibration from scratch.

The labels are of exemplars that were stored and never computed, so their neighbours are part of it. Beside the time:
the rows that were written, and the bytes of the write-ahead log.
"""

import csv
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import structlog
from sqlalchemy import Engine, text

from benchmarks.data import draw_network, draw_vectors
from benchmarks.measure import Measurement
from benchmarks.storage import database, folder
from tests.running import workspace
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.types import KnnParameters
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations
from venn_admit.flows.calibration.fit import adopt_parameters
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import HELD_OUT, ingest, store_scored
from venn_admit.flows.data.label import label
from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.flows.shell import Unwatched
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.workspace import Workspace

_DIMENSION = 128
_CLASS_COUNT = 3
_K = 25
_KAPPA = 100
_CHUNK_ROWS = 2048
_BEFORE = 20  # recalibrations that the process has done before, as a worker has
_NAME = "bench"


@dataclass(frozen=True)
class _Limits:
    lease_seconds: int = 3600
    max_attempts: int = 1
    retry_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class _Cost:
    """What was done, and the seconds, rows written and bytes of the write-ahead log that it took."""

    seconds: float
    rows: int
    log_bytes: int


def measure(large: bool) -> Iterator[Measurement]:
    points, support = (250_000, 50_000) if large else (25_000, 5_000)
    counts = [1, 100, 1_000, 10_000]
    # Each chunk says what became of it, which is for a worker's log.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with folder() as files, database(files / "home") as engine:
        service = _Service.of(engine, files, points, support, _BEFORE + sum(counts))
        rebuilt = service.cost(service.rebuild)
        yield _line("rebuild from scratch", f"{points:,} points, support {support:,}, D={_DIMENSION}", rebuilt, rebuilt)
        for _ in range(_BEFORE):
            service.give_labels(1)
            service.recalibrate()
        for count in counts:
            service.give_labels(count)
            yield _line("recalibrate", f"labels that came: {count:,}", service.cost(service.recalibrate), rebuilt)


def _line(what: str, size: str, ours: _Cost, rebuilt: _Cost) -> Measurement:
    return Measurement(
        what=what,
        size=size,
        against="the rebuild",
        ours=ours.seconds,
        peer=rebuilt.seconds,
        ratio=rebuilt.seconds / ours.seconds,
        note=f"{ours.rows:,} rows written, {ours.log_bytes / 2**20:,.1f} MiB of WAL",
    )


@dataclass(eq=False)
class _Computing(Unwatched):
    """A shell that computes jobs here, and counts the rows that are written."""

    compute: Callable[[int], int]
    written: int = 0

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        assert then is None, what
        self.written += 2 * self.compute(job_id)


@dataclass(frozen=True, eq=False)
class _Service:
    """A classifier with its data stored, and exemplars that wait for labels."""

    workspace: Workspace
    files: Path
    runner: ChunkRunner
    waiting: list[tuple[str, int]]

    @property
    def engine(self) -> Engine:
        return self.workspace.engine

    @classmethod
    def of(cls, engine: Engine, files: Path, points: int, support: int, waiting: int) -> "_Service":
        vectors = draw_vectors(points + support + waiting, _DIMENSION)
        logits, labels = draw_network(vectors, _CLASS_COUNT)
        create(engine, _NAME, tuple(map(str, range(_CLASS_COUNT))), dimension=_DIMENSION, neighbour_count=_K, seed=0)
        ends = np.cumsum([support, points, waiting])
        for part, split, rows in zip(
            ("train", "held-out", "waiting"),
            ("train", HELD_OUT, None),
            np.split(np.arange(ends[-1]), ends[:-1]),
            strict=True,
        ):
            path = files / f"{part}.npz"
            known = np.full(len(rows), -1) if split is None else labels[rows]
            names = np.array([f"{part}-{row}" for row in range(len(rows))])
            np.savez(path, r=vectors[rows], f=logits[rows], y=known, id=names)
            if split is None:
                with transaction(engine) as connection:
                    store_scored(
                        connection, classifiers.by_name(connection, _NAME), FileSource(path), lambda _rows: None
                    )
                to_come = list(zip(names.tolist(), labels[rows].tolist(), strict=True))
            else:
                ingest(engine, _NAME, FileSource(path), split)
        adopt_parameters(engine, _NAME, KnnParameters(np.zeros(_CLASS_COUNT), np.full(_CLASS_COUNT, 0.5), 5.0), 1.0)
        shared = workspace(engine, ArrayCache(files / "cache"), chunk_rows=_CHUNK_ROWS)
        return cls(shared, files, chunk_runner(shared, _Limits(), worker="benchmark"), to_come)

    def rebuild(self) -> int:
        """Neighbours of every point, approximations and a first snapshot; the rows that are written."""
        job_id = request_approximations(self.workspace, _NAME)
        computed = self._run(job_id)
        done = calibrate_on_stored(self.workspace, find(self.engine, _NAME), _settings(), reason="from scratch")
        return 2 * computed + done.changed.opened

    def give_labels(self, count: int) -> None:
        path = self.files / "labels.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("external_id", "label"))
            writer.writerows(self.waiting[:count])
        del self.waiting[:count]
        label(self.engine, _NAME, LabelFile(path), selection="random", retract=False)

    def recalibrate(self) -> int:
        """Serve the request that the labels made, as the command does; the rows that are written."""
        shell = _Computing(self._run)
        for _, step in recalibrate(self.workspace, _NAME, shell=shell):
            assert step is not None
            assert step.calibrated is not None, step.error
            shell.written += step.calibrated.changed.closed + step.calibrated.changed.opened
        return shell.written

    def cost(self, work: Callable[[], int]) -> _Cost:
        """Measure a step that returns the rows it wrote."""
        before = self._log_position()
        start = time.perf_counter()
        rows = work()
        return _Cost(time.perf_counter() - start, rows, self._log_position() - before)

    def _run(self, job_id: int) -> int:
        """Compute a job's chunks here; its rows, each of which has a list and an approximation."""
        with connect(self.engine) as connection:
            chunks = connection.execute(text("SELECT ordinal FROM job_chunk WHERE job_id = :job"), {"job": job_id})
            ordinals = list(chunks.scalars())
        claims = (self.runner.claim(job_id, ordinal) for ordinal in ordinals)
        return sum(self.runner.compute(claim) for claim in claims if claim is not None)

    def _log_position(self) -> int:
        with connect(self.engine) as connection:
            return int(connection.execute(text("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")).scalar_one())


def _settings() -> CalibratorSettings:
    return make_settings(_CLASS_COUNT, _K, kappa=_KAPPA)
