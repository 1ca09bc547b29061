"""A file of logits scored by one process, against COPY of the logits and decisions into a bare table."""

import logging
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import structlog
from sqlalchemy import Engine, text

from benchmarks.data import generator
from benchmarks.measure import Measurement, compare
from benchmarks.storage import database, folder
from tests.running import workspace
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, settings_for
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import HELD_OUT, ingest
from venn_admit.flows.decisions.score import request_score, write_scores
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.runtime.settings import Settings
from venn_admit.store.database.binary_copy import FLOAT8, INT4, INT8, Array, FilledColumns, copy_in
from venn_admit.store.database.engine import driver_cursor, transaction
from venn_admit.store.search.array_cache import ArrayCache

_NAME = "bench"
_CLASS_COUNT = 3
_TURNS = 3


def measure(large: bool) -> Iterator[Measurement]:
    rows, held_out = (1_000_000, 100_000) if large else (100_000, 20_000)
    with folder() as files, database(files / "home") as engine:
        create(engine, _NAME, tuple(map(str, range(_CLASS_COUNT))), seed=0, logits_only=True)
        ingest(engine, _NAME, FileSource(_write(files, "held-out", held_out)), HELD_OUT)
        known = find(engine, _NAME)
        calibrate_on_stored(workspace(engine), known, settings_for(known, "venn-abers", {}), reason="benchmark")
        # Each turn has rows that are new.
        paths = (_write(files, f"score-{number}", rows) for number in range(_TURNS + 1))
        tables = (f"bare_{number}" for number in count())
        yield compare(
            "score a file of logits",
            f"{rows:,} points, mc {held_out // 2:,}, C={_CLASS_COUNT}",
            "COPY into a bare table",
            lambda: _score(engine, next(paths), files),
            lambda: _copy_bare(engine, next(tables), rows),
            turns=1 if large else _TURNS,
        )


def _write(files: Path, name: str, rows: int) -> Path:
    random = generator()
    label = random.integers(_CLASS_COUNT, size=rows)
    logits = random.normal(size=(rows, _CLASS_COUNT)) + 2 * np.eye(_CLASS_COUNT)[label]
    path = files / f"{name}.npz"
    ids = np.char.add(f"{name}-", np.arange(rows).astype(str))
    np.savez(path, f=logits.astype(np.float32), y=label, id=ids)
    return path


def _score(engine: Engine, path: Path, files: Path) -> None:
    """As the command line does it, but for a worker: stored, computed here, written out."""
    settings = Settings(home=files / "home")
    cache = ArrayCache(files / "cache")
    request = request_score(
        workspace(engine, chunk_rows=settings.chunk_rows),
        _NAME,
        FileSource(path),
        weighted=None,
        require_full_match=False,
        calibration_id=None,
    )
    silent = structlog.wrap_logger(logging.getLogger("benchmark"))
    runner = chunk_runner(workspace(engine, cache), settings, worker="benchmark", log=silent)
    compute_job(engine, runner, request.job_id)
    write_scores(engine, request.job_id, files / "scores.parquet")


def _copy_bare(engine: Engine, table: str, rows: int) -> None:
    columns: FilledColumns = {
        "id": (INT8, np.arange(rows)),
        "decision": (INT4, np.zeros(rows, dtype=np.int64)),
        "lower": (FLOAT8, np.zeros(rows)),
        "f": (Array(">f4", _CLASS_COUNT), np.zeros((rows, _CLASS_COUNT), dtype=np.float32)),
    }
    with transaction(engine) as connection:
        connection.execute(text(f"CREATE TABLE {table} (id bigint, decision integer, lower float8, f real[])"))
        copy_in(driver_cursor(connection), table, columns)
