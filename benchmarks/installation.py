"""The whole way of a large installation, stage by stage: `python -m benchmarks.installation FOLDER --rows 1000000`.

Each stage is recorded in FOLDER once it is done, so that a run that was interrupted goes on after it; given a larger
number of rows, another folder is needed. What a stage took is printed beside the bare thing that does the same work.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet
import torch
import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from benchmarks import watching
from benchmarks.data import draw_network, draw_vectors
from benchmarks.ingestion import copies_for, lists, send
from benchmarks.scoring import workers
from benchmarks.storage import database
from benchmarks.watching import Used
from venn_admit.service.core.calibrators.settings import make_settings
from venn_admit.service.core.types import CalibratorSettings, Split
from venn_admit.service.files.sources import FileSource
from venn_admit.service.flows.calibration.calibrate import calibrate, request_approximations
from venn_admit.service.flows.calibration.fit import fit, request_neighbours
from venn_admit.service.flows.decisions.score import request_score, write_scores
from venn_admit.service.flows.exemplars.create import create
from venn_admit.service.flows.exemplars.ingest import ingest
from venn_admit.service.flows.jobs.control import await_job
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.search.array_cache import ArrayCache

_NAME, _PEER = "large", "peer"
_CLASS_COUNT = 3
_CHUNK_ROWS = 2048
_BLOCK_ROWS = 1024
_COPIED_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Size:
    """rows: training exemplars; half as many are held out, and half as many scored. dimension: D. neighbours: K."""

    rows: int
    dimension: int
    neighbours: int

    @property
    def half(self) -> int:
        return self.rows // 2


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage took. rows: that it was about. tables: bytes by which each table grew, indexes included.

    bare: CPU seconds of the float32 products that the stage cannot do without, None if there are none.
    """

    name: str
    rows: int
    used: Used
    tables: dict[str, int]
    bare: float | None


@dataclass(slots=True)
class Record:
    """The stages that are done, kept in a file."""

    path: Path
    size: Size
    stages: list[Stage] = field(default_factory=list)

    @classmethod
    def at(cls, path: Path, size: Size) -> "Record":
        """Return what is recorded there; typer.BadParameter if it was another size."""
        if not path.exists():
            return cls(path, size)
        kept = json.loads(path.read_text())
        if Size(**kept["size"]) != size:
            raise typer.BadParameter(f"{path.parent} holds a run of {kept['size']}; name another folder")
        stages = [Stage(**(stage | {"used": Used(**stage["used"])})) for stage in kept["stages"]]
        return cls(path, size, stages)

    def add(self, stage: Stage) -> None:
        """Keep a stage that is done."""
        self.stages.append(stage)
        kept = {"size": asdict(self.size), "stages": [asdict(one) for one in self.stages]}
        self.path.write_text(json.dumps(kept, indent=1))

    def has(self, name: str) -> bool:
        """Whether a stage is done."""
        return any(stage.name == name for stage in self.stages)


def main(
    folder: Annotated[Path, typer.Argument(help="Where the database and the record are kept.")],
    rows: Annotated[int, typer.Option(min=1000)] = 20_000,
    dimension: Annotated[int, typer.Option(min=2)] = 128,
    neighbours: Annotated[int, typer.Option(min=1)] = 25,
) -> None:
    """Store, fit, calibrate, calibrate again and score, and print what each stage took."""
    size = Size(rows, dimension, neighbours)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # root runs the embedded server as another user
    record = Record.at(folder / "installation.json", size)
    console = Console(width=160)
    with database(folder.resolve() / "home") as engine:
        for name, run in _Way(engine, folder.resolve(), size).stages():
            if record.has(name):
                continue
            console.print(f"{name} ...")
            record.add(_measure(engine, folder.resolve() / "home", name, run, size))
    console.print(_table(record))


Run = Callable[[], int]
"""Does a stage, and returns the number of rows that it was about."""


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
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
        self._run_job(request_neighbours(self.engine, _NAME, chunk_rows=_CHUNK_ROWS))
        cache = ArrayCache(self.folder / "home" / "cache")
        fit(self.engine, cache, _NAME, on_epoch=lambda _model, _line: None)
        return self.size.half

    def calibrate(self) -> int:
        self._run_job(request_approximations(self.engine, _NAME, _settings, chunk_rows=_CHUNK_ROWS))
        return self.calibrate_again()

    def calibrate_again(self) -> int:
        calibrate(self.engine, _NAME, _settings, reason="benchmark")
        return self.size.half

    def score(self) -> int:
        request = request_score(
            self.engine,
            _NAME,
            FileSource(self.folder / "score.parquet"),
            weighted=False,
            require_full_match=False,
            calibration_id=None,
            chunk_rows=_CHUNK_ROWS,
        )
        self._run_job(request.job_id)
        write_scores(self.engine, request.job_id, self.folder / "scores.parquet")
        return self.size.half

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


def _settings(classifier: object) -> CalibratorSettings:
    return make_settings(_CLASS_COUNT, classifier.neighbour_count, kappa=100)  # type: ignore[attr-defined]


def _write_files(folder: Path, size: Size) -> int:
    """Draw the exemplars and write them, a file a part."""
    half = size.half
    vectors = draw_vectors(size.rows + 2 * half, size.dimension)
    logits, labels = draw_network(vectors, _CLASS_COUNT)
    ends = {"train": size.rows, "held-out": size.rows + half, "score": size.rows + 2 * half}
    start = 0
    for part, end in ends.items():
        rows = slice(start, end)
        columns = {
            "external_id": pa.array([f"{part}-{row}" for row in range(end - start)]),
            "vector": lists(vectors[rows]),
            "logits": lists(logits[rows]),
        }
        if part != "score":
            columns["label"] = pa.array(labels[rows])
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{part}.parquet")
        start = end
    return len(vectors)


def _measure(engine: Engine, home: Path, name: str, run: Run, size: Size) -> Stage:
    before = _table_bytes(engine)
    with watching.watch(engine, home) as watched:
        rows = run()
    after = _table_bytes(engine)
    grown = {table: held - before.get(table, 0) for table, held in after.items() if held != before.get(table, 0)}
    return Stage(name, rows, watched.used, grown, _bare(name, rows, size))


def _bare(name: str, rows: int, size: Size) -> float | None:
    """CPU seconds of the float32 products of rows that are searched with all training exemplars, by some."""
    if name not in {"fit", "calibrate", "score"}:
        return None
    # A fit searches split knn alone, a tenth of what is held out; a calibration the rest.
    share = {"fit": 0.1, "calibrate": 0.9, "score": 1.0}[name]
    count = round(rows * share)
    columns = torch.from_numpy(draw_vectors(size.rows, size.dimension)).T
    queries = torch.from_numpy(draw_vectors(min(count, _BLOCK_ROWS), size.dimension))
    with watching.cpu_seconds() as spent:
        torch.matmul(queries, columns)
    return spent.seconds * count / len(queries)


def _table_bytes(engine: Engine) -> dict[str, int]:
    """The bytes of each table with its indexes and partitions."""
    query = text(
        "SELECT coalesce(parent.relname, held.relname) AS name, sum(pg_total_relation_size(held.oid))::bigint AS bytes"
        " FROM pg_class AS held LEFT JOIN pg_inherits ON held.oid = inhrelid"
        " LEFT JOIN pg_class AS parent ON inhparent = parent.oid AND parent.relnamespace = held.relnamespace"
        " WHERE held.relnamespace = 'venn_admit'::regnamespace AND held.relkind = 'r' GROUP BY 1"
    )
    with connect(engine) as connection:
        return {row.name: row.bytes for row in connection.execute(query)}


def _table(record: Record) -> Table:
    size = record.size
    table = Table(
        title=f"{size.rows:,} training exemplars, half as many held out and scored, D={size.dimension}, "
        f"K={size.neighbours}",
        caption="CPU seconds; peak memory of this process, of the largest backend, and of the largest worker",
    )
    for heading in ("stage", "rows", "seconds", "CPU: here", "backends", "workers", "bare", "peaks, MiB", "WAL, MiB"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    table.add_column("tables grew by, bytes a row")
    for stage in record.stages:
        used = stage.used
        grown = sorted(stage.tables.items(), key=lambda item: -abs(item[1]))
        table.add_row(
            stage.name,
            f"{stage.rows:,}",
            f"{used.seconds:.1f}",
            *(f"{seconds:.1f}" for seconds in (used.client_cpu, used.backend_cpu, used.worker_cpu)),
            f"{stage.bare:.1f}" if stage.bare is not None else "",
            " ".join(f"{peak >> 20:,}" for peak in (used.client_peak, used.backend_peak, used.worker_peak)),
            f"{used.wal_bytes / 2**20:,.0f}",
            ", ".join(f"{name} {held / stage.rows:,.0f}" for name, held in grown if abs(held) > stage.rows),
        )
    return table


if __name__ == "__main__":
    typer.run(main)
