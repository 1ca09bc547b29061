"""The support read back out of the store, against COPY of the same rows out of a bare table, not decoded."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sqlalchemy import Engine, text

from benchmarks.data import draw_vectors, draw_view, generator
from benchmarks.measure import Measurement, compare
from venn_admit.core.split_names import Split
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import ingest
from venn_admit.store.database.binary_copy import INT4, INT8, Array, FilledColumns, Vector, copy_in
from venn_admit.store.database.engine import create_engine, driver_cursor, transaction
from venn_admit.store.database.schema import upgrade
from venn_admit.store.embedded.users import start_embedded, stop_embedded
from venn_admit.store.exemplars import classifiers
from venn_admit.store.search.array_cache import ArrayCache

_DIMENSION = 384
_CLASS_COUNT = 3
_TURNS = 5


def measure(large: bool) -> Iterator[Measurement]:
    row_count = 100_000 if large else 10_000
    with folder() as files, database(files / "home") as engine:
        path = _write_exemplars(files, row_count)
        create(engine, "bench", tuple(map(str, range(_CLASS_COUNT))), dimension=_DIMENSION, neighbour_count=25, seed=0)
        ingest(engine, "bench", FileSource(path), Split.TRAIN)
        _copy_bare(engine, path)
        yield _measure_support(engine, files, row_count)


def _measure_support(engine: Engine, files: Path, row_count: int) -> Measurement:
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, "bench")
    return compare(
        "support into a memory map",
        f"{row_count:,}, D={_DIMENSION}",
        "COPY of a bare table",
        lambda: ArrayCache(Path(tempfile.mkdtemp(dir=files))).support(engine, classifier),
        lambda: _read_bare(engine, "bare"),
        turns=_TURNS,
    )


@contextmanager
def folder() -> Iterator[Path]:
    """A folder to work in, that the embedded server may enter."""
    with tempfile.TemporaryDirectory(prefix="venn-admit-bench-") as name:
        path = Path(name).resolve()
        path.chmod(0o755)  # root runs the embedded server as another user
        yield path


@contextmanager
def database(home: Path) -> Iterator[Engine]:
    """An embedded server of its own, migrated."""
    url = start_embedded(home)
    try:
        upgrade(url)
        engine = create_engine(url)
        try:
            yield engine
        finally:
            engine.dispose()
    finally:
        stop_embedded(home)


def _write_exemplars(files: Path, row_count: int) -> Path:
    view, label = draw_view(generator(), row_count, _CLASS_COUNT, 25)
    path = files / "exemplars.npz"
    np.savez(path, r=draw_vectors(row_count, _DIMENSION), f=view.logits.astype(np.float32), y=label)
    return path


def _copy_bare(engine: Engine, path: Path) -> None:
    """The file's rows in a table of their own."""
    with np.load(path) as arrays:
        columns: FilledColumns = {
            "id": (INT8, np.arange(len(arrays["y"]))),
            "label": (INT4, arrays["y"]),
            "f": (Array(">f4", _CLASS_COUNT), arrays["f"]),
            "r": (Vector(_DIMENSION), arrays["r"]),
        }
    with transaction(engine) as connection:
        connection.execute(text(f"CREATE TABLE bare (id bigint, label integer, f real[], r vector({_DIMENSION}))"))
        copy_in(driver_cursor(connection), "bare", columns)


def _read_bare(engine: Engine, table: str) -> bytes:
    with (
        transaction(engine) as connection,
        driver_cursor(connection).copy(f"COPY {table} TO STDOUT (FORMAT binary)".encode()) as copy,
    ):
        return b"".join(map(bytes, copy))
