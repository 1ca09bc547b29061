"""The stages of a large installation: from files to scores, and what arrives afterwards."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sqlalchemy import Engine

from benchmarks.data import draw_network, draw_vectors
from benchmarks.ingestion import copies_for, lists, send
from benchmarks.scoring import workers
from tests.running import workspace
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.split_names import Split
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations
from venn_admit.flows.calibration.fit import fit_on_stored, request_neighbours
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.hnsw_index import build_memory, create_index
from venn_admit.flows.decisions.score import request_score, write_scores
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.jobs.control import await_job
from venn_admit.store.database.engine import transaction
from venn_admit.store.search.array_cache import ArrayCache

_NAME, _PEER = "large", "peer"
_CLASS_COUNT = 3
_CHUNK_ROWS = 2048
_COPIED_ROWS = 50_000
_POINTS, _EF_SEARCH = 20, 100


@dataclass(frozen=True, slots=True)
class Size:
    """rows: training exemplars. held_out, scored: points. dimension: D. neighbours: K."""

    rows: int
    held_out: int
    scored: int
    dimension: int
    neighbours: int

    @property
    def arriving(self) -> int:
        """How many labels arrive, and how many training exemplars are added: one for a hundred that train."""
        return min(self.rows // 100, self.scored)


Run = Callable[[], int]
"""Does a stage, and returns the number of rows that it was about."""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """The stages, each of which returns the number of rows that it was about."""

    engine: Engine
    folder: Path
    size: Size

    def stages(self) -> list[tuple[str, Run]]:
        """Return them in order, by name."""
        return [
            ("write files", self.write),
            ("ingest training", self.ingest_train),
            ("ingest held-out", self.ingest_held_out),
            ("fit", self.fit),
            ("calibrate", self.calibrate),
            ("calibrate again", self.calibrate_again),
            ("score", self.score),
            ("decide on one point", self.decide),
            ("labels arrive", self.label),
            ("recalibrate", self.recalibrate),
            ("training exemplars arrive", self.ingest_more),
            ("recalibrate again", self.recalibrate),
            ("build an index", self.index),
            ("decide by the index", self.decide_by_index),
            ("encode some training", self.encode),
            ("COPY them again", self.copy_again),
        ]

    def write(self) -> int:
        return _write_files(self.folder, self.size)

    def ingest_train(self) -> int:
        self._create(_NAME)
        return ingest(self.engine, _NAME, FileSource(self.folder / "train.parquet"), Split.TRAIN).new

    def ingest_held_out(self) -> int:
        return ingest(self.engine, _NAME, FileSource(self.folder / "held-out.parquet"), "held-out").new

    def fit(self) -> int:
        self._run_job(request_neighbours(workspace(self.engine, chunk_rows=_CHUNK_ROWS), _NAME))
        cache = ArrayCache(self.folder / "home" / "cache")
        fit_on_stored(workspace(self.engine, cache), _NAME, on_epoch=lambda _model, _line: None)
        return self.size.held_out

    def calibrate(self) -> int:
        self._run_job(request_approximations(workspace(self.engine, chunk_rows=_CHUNK_ROWS), _NAME))
        return self.calibrate_again()

    def calibrate_again(self) -> int:
        known = find(self.engine, _NAME)
        settings = make_settings(_CLASS_COUNT, known.neighbour_count, kappa=100)
        calibrate_on_stored(workspace(self.engine), known, settings, reason="benchmark")
        return self.size.held_out

    def score(self) -> int:
        request = request_score(
            workspace(self.engine, chunk_rows=_CHUNK_ROWS),
            _NAME,
            FileSource(self.folder / "score.parquet"),
            weighted=False,
            require_full_match=False,
            calibration_id=None,
        )
        self._run_job(request.job_id)
        write_scores(self.engine, request.job_id, self.folder / "scores.parquet")
        return self.size.scored

    def decide(self) -> int:
        """Decide by the exact search, the first time included, in which the snapshot is read."""
        return self._decide(None)

    def decide_by_index(self) -> int:
        return self._decide(_EF_SEARCH)

    def label(self) -> int:
        """Record labels of points that were scored, as a random sample of the traffic."""
        return label(
            self.engine, _NAME, LabelFile(self.folder / "labels.parquet"), selection="random", retract=False
        ).new

    def recalibrate(self) -> int:
        served = recalibrate(
            workspace(self.engine, chunk_rows=_CHUNK_ROWS),
            _NAME,
            shell=_Workers(self._run_job),
        )
        assert all(step is not None and step.calibrated is not None for _, step in served)
        return len(served)

    def ingest_more(self) -> int:
        return ingest(self.engine, _NAME, FileSource(self.folder / "more.parquet"), Split.TRAIN).new

    def index(self) -> int:
        memory = build_memory(self.engine, _NAME, m=16).needed_mb
        create_index(self.engine, _NAME, m=16, ef_construction=64, memory_mb=memory)
        return self.size.rows

    def _decide(self, ef_search: int | None) -> int:
        scorer = PointScorer(workspace(self.engine, ArrayCache(self.folder / "home" / "cache")))
        points = np.load(self.folder / "points.npz")
        for vector, logits in zip(points["vectors"], points["logits"], strict=True):
            scorer.score(
                _NAME,
                vector,
                logits=logits,
                weighted=False,
                require_full_match=False,
                hnsw_ef_search=ef_search,
            )
        return len(points["vectors"])

    def encode(self) -> int:
        """Prepare the bare thing beside the ingestion: COPY of the same rows, for another classifier."""
        self._create(_PEER)
        copies = copies_for(self.engine, _NAME, _PEER, most=self._copied)
        (self.folder / "copies.pickle").write_bytes(pickle.dumps(copies))
        return self._copied

    def copy_again(self) -> int:
        with transaction(self.engine) as connection:
            send(connection, pickle.loads((self.folder / "copies.pickle").read_bytes()))
        return self._copied

    @property
    def _copied(self) -> int:
        return min(self.size.rows, _COPIED_ROWS)

    def _create(self, name: str) -> None:
        classes, size = tuple(map(str, range(_CLASS_COUNT))), self.size
        create(self.engine, name, classes, dimension=size.dimension, neighbour_count=size.neighbours, seed=0)

    def _run_job(self, job_id: int | None) -> None:
        """Compute a job by a worker of two processes, which starts for it."""
        if job_id is None:
            return
        with workers(self.engine, self.folder / "home") as app:
            await_job(self.engine, app, job_id, check_workers=lambda: None, on_progress=lambda _progress: None)


@dataclass(frozen=True, slots=True, eq=False)
class _Workers:
    """Has workers compute jobs; shows nothing."""

    compute: Callable[[int], None]

    def show(self, what: str, total: int | None = None) -> None:
        pass

    def advance(self, rows: int) -> None:
        pass

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:  # noqa: ARG002
        self.compute(job_id)
        if then is not None:
            then()


def _write_files(folder: Path, size: Size) -> int:
    """Draw the exemplars and write them, a file a part."""
    parts = {"train": size.rows, "held-out": size.held_out, "score": size.scored, "more": size.arriving, "": _POINTS}
    vectors = draw_vectors(sum(parts.values()), size.dimension)
    logits, labels = draw_network(vectors, _CLASS_COUNT)
    start = 0
    for part, count in parts.items():
        rows = slice(start, start + count)
        start += count
        if not part:
            np.savez(folder / "points.npz", vectors=vectors[rows], logits=logits[rows])
            continue
        ids = pa.array([f"{part}-{row}" for row in range(count)])
        columns = {"external_id": ids, "vector": lists(vectors[rows]), "logits": lists(logits[rows])}
        if part == "score":
            arriving = {"external_id": ids[: size.arriving], "label": pa.array(labels[rows][: size.arriving])}
            pyarrow.parquet.write_table(pa.table(arriving), folder / "labels.parquet")
        else:
            columns["label"] = pa.array(labels[rows])
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{part}.parquet")
    return len(vectors)
