"""The decision on one point by Venn-Abers with the network's score, against the bare statements that it rests on.

Those are the nearest training exemplars, exactly or by HNSW, ids alone; and the look-up of the step. Both sides run in
this process on a pool of connections, after warm-up, point by point in turns. Ours also reads which calibration is in
use, and the vectors, labels, logits, ids and attributes of the neighbours; it certifies that they are the nearest, and
decides.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import structlog
from sqlalchemy import Engine, text

from benchmarks.data import draw_network, draw_vectors
from benchmarks.measure import Measurement
from benchmarks.storage import database, folder
from tests.running import workspace
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.types import Float32Array, KnnParameters
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations
from venn_admit.flows.calibration.fit import adopt_parameters
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import HELD_OUT, ingest
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import hnsw
from venn_admit.store.search.array_cache import ArrayCache

_DIMENSION, _CLASS_COUNT, _NEIGHBOUR_COUNT = 128, 3, 25
_HELD_OUT, _WARM_UP, _POINTS = 10_000, 50, 400
_EF_SEARCH = 100
_NAME = "bench"
_STEP = text(
    "SELECT lower, upper_at, upper_above FROM venn_abers_step WHERE calibrator_id = :calibrator_id"
    " AND cell = :cell AND score <= :score AND valid_until IS NULL ORDER BY score DESC LIMIT 1"
)


@dataclass(frozen=True)
class _Limits:
    lease_seconds: int = 3600
    max_attempts: int = 1
    retry_seconds: float = 1.0


def measure(large: bool) -> Iterator[Measurement]:
    support = 100_000 if large else 10_000
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    vectors = draw_vectors(support + _HELD_OUT + _WARM_UP + _POINTS, _DIMENSION)
    logits, labels = draw_network(vectors, _CLASS_COUNT)
    parts = np.split(np.arange(len(vectors)), [support, support + _HELD_OUT])
    with folder() as files, database(files / "home") as engine:
        for split, rows in zip(("train", HELD_OUT), parts[:2], strict=True):
            np.savez(files / f"{split}.npz", r=vectors[rows], f=logits[rows], y=labels[rows])
        cache = ArrayCache(files / "cache")
        side_by_side = _SideBySide(engine, _calibrated(engine, cache, files), PointScorer(workspace(engine, cache)))
        for ef_search in (None, _EF_SEARCH):
            how = "exact" if ef_search is None else f"HNSW {ef_search}"
            size = f"{support:,}, D={_DIMENSION}, {how}"
            yield from side_by_side.compare(size, vectors[parts[2]], logits[parts[2]], ef_search)


def _calibrated(engine: Engine, cache: ArrayCache, files: Path) -> Classifier:
    names = tuple(map(str, range(_CLASS_COUNT)))
    create(engine, _NAME, names, dimension=_DIMENSION, neighbour_count=_NEIGHBOUR_COUNT, seed=0)
    for split in ("train", HELD_OUT):
        ingest(engine, _NAME, FileSource(files / f"{split}.npz"), split)
    adopt_parameters(engine, _NAME, KnnParameters(np.zeros(_CLASS_COUNT), np.full(_CLASS_COUNT, 0.5), 5.0), 1.0)
    runner = chunk_runner(workspace(engine, cache), _Limits(), worker="benchmark")
    compute_job(engine, runner, request_approximations(workspace(engine, chunk_rows=2048), _NAME))
    settings = make_venn_abers_settings(_CLASS_COUNT, _NEIGHBOUR_COUNT, score="network")
    calibrate_on_stored(workspace(engine), find(engine, _NAME), settings, reason="benchmark")
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, _NAME)
    hnsw.create(engine, classifier, m=16, ef_construction=64)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")
    return classifier


@dataclass(frozen=True, slots=True, eq=False)
class _SideBySide:
    """The decision, and the bare statements."""

    engine: Engine
    classifier: Classifier
    scorer: PointScorer

    def compare(
        self, size: str, vectors: Float32Array, logits: Float32Array, ef_search: int | None
    ) -> Iterator[Measurement]:
        calibrator_id = self._calibrator_id()
        pairs = []
        for turn, (vector, of_network) in enumerate(zip(vectors, logits, strict=True)):
            ours = partial(self._decide, vector, of_network, ef_search)
            bare = partial(self._bare, vector, ef_search, calibrator_id)
            if turn % 2:
                later, first = _seconds(bare), _seconds(ours)
                pairs.append((first, later))
            else:
                pairs.append((_seconds(ours), _seconds(bare)))
        mine, other = np.array(pairs[_WARM_UP:]).T
        for name, percent in (("p50", 50), ("p99", 99)):
            of_ours, of_bare = (float(np.percentile(seconds, percent)) for seconds in (mine, other))
            yield Measurement(
                what=f"decide by Venn-Abers, {name}",
                size=size,
                against="bare: nearest 25, step",
                ours=of_ours,
                peer=of_bare,
                ratio=float(np.median(other / mine)) if percent == 50 else of_bare / of_ours,
                note=f"{1000 * (of_ours - of_bare):.2f} ms beyond; at least {1000 * (mine.min() - other.min()):.2f}",
            )

    def _decide(self, vector: Float32Array, logits: Float32Array, ef_search: int | None) -> None:
        self.scorer.score(
            _NAME,
            vector,
            logits=logits,
            weighted=None,
            require_full_match=False,
            hnsw_ef_search=ef_search,
        )

    def _bare(self, vector: Float32Array, ef_search: int | None, calibrator_id: int) -> None:
        column = "vector" if ef_search is None else f"CAST(vector AS vector({self.classifier.dimension}))"
        nearest = text(
            f"SELECT exemplar_id FROM exemplar_vector_{self.classifier.id}_support"
            f" ORDER BY {column} <-> CAST(:vector AS vector) LIMIT {_NEIGHBOUR_COUNT}"
        )
        step = {"calibrator_id": calibrator_id, "cell": 1, "score": 0.75}
        with connect(self.engine) as connection:
            if ef_search is not None:
                connection.exec_driver_sql(f"SET LOCAL hnsw.ef_search = {ef_search}")
            connection.execute(nearest, {"vector": json.dumps(vector.tolist())}).all()
            connection.execute(_STEP, step).all()

    def _calibrator_id(self) -> int:
        with connect(self.engine) as connection:
            return calibrations.latest(connection, self.classifier).calibrator_id


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
