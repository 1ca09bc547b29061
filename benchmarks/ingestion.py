"""A Parquet file into the store, against its COPYs alone: the same rows, the same tables, the same constraints.

The peer's rows are read back from the tables that ours filled, under keys and a classifier of their own. It sends as
many rows at a time in one transaction, and checks, encodes and looks up nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sqlalchemy import Connection, Engine, text

from benchmarks.data import draw_vectors, draw_view, generator
from benchmarks.measure import Cost, Measurement, compare_costs, cost_of
from benchmarks.storage import database, folder
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import ingest
from venn_admit.store.database.engine import driver_cursor, transaction
from venn_admit.store.exemplars import classifiers

_DIMENSION = 384
_CLASS_COUNT = 3
_BATCH_ROWS = 8192
_TURNS = 5

_COPIES = {
    "exemplar (id, classifier_id, external_id, document_id, split, network_logits, network_predicted, label,"
    " attributes, content_digest)": "SELECT id + {shift}, {peer}, external_id, document_id, split, network_logits,"
    " network_predicted, label, attributes, content_digest FROM exemplar WHERE id BETWEEN {first} AND {last}"
    " ORDER BY id",
    "exemplar_vector (classifier_id, support, exemplar_id, vector)": "SELECT {peer}, support, exemplar_id + {shift},"
    " vector FROM exemplar_vector WHERE classifier_id = {ours} AND exemplar_id BETWEEN {first} AND {last}"
    " ORDER BY exemplar_id",
    "label_event (exemplar_id, label, selection, source)": "SELECT exemplar_id + {shift}, label, selection, source"
    " FROM label_event WHERE exemplar_id BETWEEN {first} AND {last} ORDER BY id",
}
"""What is sent to which columns, in the order in which a batch is stored."""


def measure(large: bool) -> Iterator[Measurement]:
    row_count = 100_000 if large else 25_000
    with folder() as files, database(files / "home") as engine:
        path = write_exemplars(files / "exemplars.parquet", row_count)
        numbers = {"ours": iter(range(_TURNS + 1)), "peer": iter(range(_TURNS + 1))}
        _create(engine, "source")
        _ingest(engine, "source", path)

        def ours() -> Cost:
            name = f"ours-{next(numbers['ours'])}"
            _create(engine, name)
            return cost_of(lambda: _ingest(engine, name, path))

        def peer() -> Cost:
            name = f"peer-{next(numbers['peer'])}"
            _create(engine, name)
            copies = copies_for(engine, "source", name)
            return cost_of(lambda: _copy(engine, copies))

        size = f"{row_count:,}, D={_DIMENSION}"
        found = compare_costs("ingest a Parquet file", size, "the same COPYs, same tables", ours, peer, turns=_TURNS)
        note = f"rows a second {row_count / found.ours:,.0f}, peer {row_count / found.peer:,.0f}"
        yield replace(found, peer_peak=None, note=note)  # the peer holds all rows from the beginning


def write_exemplars(path: Path, row_count: int) -> Path:
    """A file of exemplars as pyarrow writes it by default."""
    view, label = draw_view(generator(), row_count, _CLASS_COUNT, 25)
    columns = {
        "external_id": pa.array([f"exemplar-{row}" for row in range(row_count)]),
        "vector": lists(draw_vectors(row_count, _DIMENSION)),
        "logits": lists(view.logits.astype(np.float32)),
        "label": pa.array(label),
    }
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def lists(values: Float32Array) -> pa.Array:
    """The rows of a matrix as a column of lists."""
    n, width = values.shape
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32) * width), pa.array(values.ravel()))


def _create(engine: Engine, name: str) -> None:
    create(engine, name, tuple(map(str, range(_CLASS_COUNT))), dimension=_DIMENSION, neighbour_count=25, seed=0)


def _ingest(engine: Engine, name: str, path: Path) -> None:
    ingest(engine, name, FileSource(path), Split.TRAIN)


def copies_for(engine: Engine, source: str, peer: str, *, most: int | None = None) -> list[tuple[str, bytes]]:
    """The COPYs that store the exemplars of one classifier, or the first of them, for another, with what is sent."""
    with transaction(engine) as connection:
        of, to = (classifiers.by_name(connection, name).id for name in (source, peer))
        keys = text("SELECT array_agg(id ORDER BY id) FROM exemplar WHERE classifier_id = :id")
        ids = connection.execute(keys, {"id": of}).scalar_one()[:most]
        draw = text("SELECT min(nextval(pg_get_serial_sequence('exemplar', 'id'))) FROM generate_series(1, :count)")
        shift = connection.execute(draw, {"count": ids[-1] - ids[0] + 1}).scalar_one() - ids[0]
        batches = [ids[start : start + _BATCH_ROWS] for start in range(0, len(ids), _BATCH_ROWS)]
        return [
            (f"COPY {table} FROM STDIN (FORMAT binary)", _read(connection, query, of, to, shift, batch[0], batch[-1]))
            for batch in batches
            for table, query in _COPIES.items()
        ]


def _read(connection: Connection, query: str, of: int, to: int, shift: int, first: int, last: int) -> bytes:
    filled = query.format(ours=of, peer=to, shift=shift, first=first, last=last)
    with driver_cursor(connection).copy(f"COPY ({filled}) TO STDOUT (FORMAT binary)".encode()) as copy:
        return b"".join(map(bytes, copy))


def _copy(engine: Engine, copies: list[tuple[str, bytes]]) -> None:
    with transaction(engine) as connection:
        send(connection, copies)


def send(connection: Connection, copies: list[tuple[str, bytes]]) -> None:
    """Send what `copies_for` returned."""
    for statement, rows in copies:
        with driver_cursor(connection).copy(statement.encode()) as copy:
            copy.write(rows)
