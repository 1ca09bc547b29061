"""The flows as the command line runs them, but that a job's chunks are computed here, in turn."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine, Row, text

from venn_admit.core.calibrators.arguments import json_settings
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.settings import (
    MethodSettings,
    make_settings,
    make_venn_abers_settings,
)
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.types import KnnParameters
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import Calibrated, calibrate_on_stored, request_approximations
from venn_admit.flows.calibration.fit import Fitted, adopt_parameters, fit_on_stored, request_neighbours
from venn_admit.flows.calibration.in_use import use
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.export import Export, export
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.decisions.score import ScoreRequest, request_score, write_scores
from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.flows.jobs.submit import Send
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.work import jobs
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.data import Ingestion

Arrays = dict[str, Any]

EXAMPLES = Path(__file__).parents[1] / "examples" / "sentiment_small"
GOLDEN = Path(__file__).parent / "golden"

# The rows of an evaluation: those of the paper's table in its order, then what else can be done with the same data.
METHODS = [
    "KNN",
    "Conf_BASE",
    "RAPS adaptiveness",
    "RAPS size",
    "APS",
    "LocalConf_BASE",
    "LocalConf corrected",
    "ADMIT",
    "Venn-ADMIT plain",
    "Venn-ADMIT plain, q = K",
    "Venn-ADMIT weighted",
    "Venn-ADMIT weighted, q = K",
    "softmax >= 1 - alpha",
    "SGR",
    "Venn-Abers network",
    "Venn-Abers reliability",
    "certified",
    "on average",
]

# About the size that a fit on the bundled reviews gives.
REVIEW_PARAMETERS = KnnParameters(beta=np.array([-0.16, -0.23]), gamma=np.array([0.25, 0.25]), eta=4.7)
REVIEW_ETA_LOC = 0.6

ADDED_TO_ADMIT = json_settings(make_settings(2, 1))
ADDED_TO_ABERS = json_settings(make_venn_abers_settings(2, 1))
"""The settings that were added to a method, as JSON has them, each at its default."""


@dataclass(frozen=True)
class ChunkLimits:
    """What a chunk runner reads of the settings."""

    lease_seconds: int = 600
    max_attempts: int = 3
    retry_seconds: float = 0.0


def workspace(
    engine: Engine,
    cache: ArrayCache | None = None,
    *,
    chunk_rows: int = 2048,
    keep_calibrations: int | None = None,
    device: str = "cpu",
) -> Workspace:
    """What a use case works with; without a cache, it is one that must stay unused."""
    cache = ArrayCache(Path(os.devnull)) if cache is None else cache
    made = Workspace(engine, cache.folder, cache.memory_budget, chunk_rows, keep_calibrations, device)
    vars(made)["cache"] = cache  # this one, which may be of a kind of its own
    return made


def chunk_ordinals(engine: Engine, job_id: int) -> list[int]:
    """A job's chunks, in order."""
    with connect(engine) as connection:
        query = text("SELECT ordinal FROM job_chunk WHERE job_id = :job_id ORDER BY ordinal")
        return list(connection.execute(query, {"job_id": job_id}).scalars())


def run_chunk(runner: ChunkRunner, job_id: int, ordinal: int) -> int:
    """Compute one chunk; the rows of it that were completed: none if it was not free or if it failed."""
    claim = runner.claim(job_id, ordinal)
    return 0 if claim is None else runner.compute(claim)


def run_chunks(engine: Engine, cache: ArrayCache, job_id: int, ordinals: Iterable[int] | None = None) -> None:
    """Compute a job's chunks, in the order given or their own; the job must be done then."""
    runner = chunk_runner(workspace(engine, cache), ChunkLimits(), worker="here")
    for ordinal in chunk_ordinals(engine, job_id) if ordinals is None else ordinals:
        run_chunk(runner, job_id, ordinal)
    with connect(engine) as connection:
        progress = jobs.progress(connection, job_id)
    assert (progress.state, progress.error) == ("done", None)
    assert progress.rows_done == progress.row_count


@dataclass(frozen=True)
class Scores:
    """A scored file: its request, the file written, and that file's table."""

    request: ScoreRequest
    path: Path
    table: pa.Table

    def column(self, name: str) -> npt.NDArray[Any]:
        return column(self.table, name)


class Bench:
    """One database, a cache, and a folder for the files that go in and come out."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.cache = ArrayCache(folder / "cache")

    def workspace(self, *, memory_budget: int | None = None, **limits: Any) -> Workspace:
        """This database and cache, within limits."""
        cache = self.cache if memory_budget is None else ArrayCache(self.folder / "cache", memory_budget=memory_budget)
        return workspace(self.engine, cache, **limits)

    def rows(self, query: str, **parameters: Any) -> list[Row[Any]]:
        """What a statement of the test's own returns."""
        with connect(self.engine) as connection:
            return list(connection.execute(text(query), parameters).all())

    def value(self, query: str, **parameters: Any) -> Any:
        """The one value of a statement of the test's own."""
        ((value,),) = self.rows(query, **parameters)
        return value

    def write(self, file: str, arrays: Arrays) -> Path:
        path = self.folder / file
        np.savez(path, **arrays)
        return path

    def create(
        self, name: str, *, dimension: int, class_count: int = 2, neighbour_count: int = 25, seed: int = 0
    ) -> Classifier:
        return create(
            self.engine,
            name,
            tuple(f"class {number}" for number in range(class_count)),
            dimension=dimension,
            neighbour_count=neighbour_count,
            seed=seed,
        )

    def ingest(self, name: str, path: Path, split: str, *, allow_training_rows: bool = True) -> Ingestion:
        """Tests of other things may let the same rows train and calibrate."""
        return ingest(self.engine, name, FileSource(path), split, allow_training_rows=allow_training_rows)

    def adopt(
        self,
        name: str,
        knn: KnnParameters = REVIEW_PARAMETERS,
        eta_loc: float = REVIEW_ETA_LOC,
        reliability: ReliabilityModel | None = None,
    ) -> int:
        return adopt_parameters(self.engine, name, knn, eta_loc, reliability).parameters.id

    def runner(self, limits: ChunkLimits | None = None, *, worker: str = "here") -> ChunkRunner:
        return chunk_runner(self.workspace(), limits or ChunkLimits(), worker=worker)

    def run(self, job_id: int, ordinals: Iterable[int] | None = None) -> None:
        run_chunks(self.engine, self.cache, job_id, ordinals)

    def fit(self, name: str) -> Fitted:
        self.run(request_neighbours(self.workspace(), name))
        return fit_on_stored(self.workspace(), name, on_epoch=lambda _model, _line: None)

    def calibrate(self, name: str, *, chunk_rows: int = 2048, backwards: bool = False, **settings: Any) -> Calibrated:
        known = find(self.engine, name)
        asked = make_settings(known.class_count, known.neighbour_count, **settings)
        return self._calibrate(known, asked, chunk_rows, backwards)

    def calibrate_abers(self, name: str, *, chunk_rows: int = 2048, **settings: Any) -> Calibrated:
        known = find(self.engine, name)
        asked = make_venn_abers_settings(known.class_count, known.neighbour_count, **settings)
        return self._calibrate(known, asked, chunk_rows, False)

    def _calibrate(
        self, classifier: Classifier, settings: MethodSettings, chunk_rows: int, backwards: bool
    ) -> Calibrated:
        job_id = request_approximations(self.workspace(chunk_rows=chunk_rows), classifier.address)
        self.run(job_id, self._ordinals(job_id, backwards))
        made = calibrate_on_stored(self.workspace(), classifier, settings, reason="test")
        if made.withheld is not None:  # what is tested is how it decides, however little it admits
            use(self.engine, classifier.address, made.calibration_id)
        return made

    def request_score(
        self,
        name: str,
        path: Path,
        *,
        weighted: bool | None = True,
        require_full_match: bool = False,
        calibration_id: int | None = None,
        chunk_rows: int = 2048,
        send: Send | None = None,
    ) -> ScoreRequest:
        return request_score(
            self.workspace(chunk_rows=chunk_rows),
            name,
            FileSource(path),
            weighted=weighted,
            require_full_match=require_full_match,
            calibration_id=calibration_id,
            send=send,
        )

    def score(self, name: str, path: Path, *, backwards: bool = False, **asked: Any) -> Scores:
        request = self.request_score(name, path, **asked)
        self.run(request.job_id, self._ordinals(request.job_id, backwards))
        out = self.folder / f"scores-{request.job_id}.parquet"
        write_scores(self.engine, request.job_id, out)
        return Scores(request, out, pq.read_table(out))

    def export(self, name: str, what: Export, *, calibration_id: int | None = None) -> pa.Table:
        out = self.folder / f"{name}-{what}.parquet"
        export(self.engine, name, what, out, calibration_id=calibration_id)
        return pq.read_table(out)

    def _ordinals(self, job_id: int, backwards: bool) -> list[int]:
        ordinals = chunk_ordinals(self.engine, job_id)
        return ordinals[::-1] if backwards else ordinals


def certificate_of(made: Calibrated) -> Certificate:
    """The certificate that a calibration made."""
    assert isinstance(made.made, MadeByAbers)
    assert made.made.certificate is not None
    return made.made.certificate


def column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column: numbers with NaN for null, lists of one length as (n, length), texts as objects."""
    values = table.column(name).combine_chunks()
    if pa.types.is_list(values.type):
        return np.array(values.to_pylist())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def make_reviews(bench: Bench, *, held_out_rows: int = 16_000) -> None:
    """A classifier `reviews` of the bundled real data, calibrated at kappa 100 with parameters given."""
    bench.create("reviews", dimension=128)
    bench.ingest("reviews", EXAMPLES / "train.npz", "train")
    with np.load(EXAMPLES / "valid.npz") as valid:
        held_out = bench.write("valid.npz", {name: values[:held_out_rows] for name, values in valid.items()})
    bench.ingest("reviews", held_out, "held-out")
    bench.adopt("reviews")
    bench.calibrate("reviews", kappa=100)


class Golden:
    """One golden file, and the classifier it describes put through the flows."""

    def __init__(self, name: str) -> None:
        with np.load(GOLDEN / f"{name}.npz") as arrays:
            self.arrays: Arrays = dict(arrays)
        self.dimension = self["train_r"].shape[1]
        self.class_count = self["train_f"].shape[1]
        self.parameters = KnnParameters(self["beta"], self["gamma"], float(self["eta"]))
        self.settings: dict[str, Any] = {
            "alpha": Decimal(str(self["alpha"])),
            "delta": float(self["delta"]),
            "kappa": int(self["kappa"]),
        }

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = self.arrays[name]
        return values

    def exemplars(self, part: str, rows: slice = slice(None)) -> Arrays:
        """Rows of `train`, `mc`, `vp` or `score` as a file holds them; ids are part and row number."""
        ids = np.array([f"{part}-{row}" for row in range(len(self[f"{part}_y"]))])
        return {"id": ids[rows], **{key: self[f"{part}_{key}"][rows] for key in ("r", "f", "y")}}

    def prepare(self, bench: Bench, name: str, train: slice = slice(None)) -> None:
        """Make the classifier, with the splits and parameters the file gives; not calibrated yet."""
        bench.create(name, dimension=self.dimension, class_count=self.class_count, neighbour_count=int(self["K"]))
        bench.ingest(name, bench.write("train.npz", self.exemplars("train", train)), "train")
        for split in ("mc", "vp"):
            bench.ingest(name, bench.write(f"{split}.npz", self.exemplars(split)), split)
        bench.adopt(name, self.parameters, float(self["eta_loc"]))
