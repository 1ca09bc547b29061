"""The same exemplars in either file format, to be spoilt by the tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from venn_admit.files import read_exemplars
from venn_admit.files.records import ExemplarBatch

ROWS, DIMENSION, CLASS_COUNT = 7, 4, 3
SUFFIXES = (".npz", ".parquet")

# What a column is called in an .npz; in Parquet its name is the key.
NPZ_NAMES = {"vector": "r", "logits": "f", "label": "y", "external_id": "id", "document_id": "doc"}
PARQUET_TYPES = {
    "vector": pa.list_(pa.float32()),
    "logits": pa.list_(pa.float32()),
    "external_id": pa.string(),
    "document_id": pa.string(),
}

Columns = dict[str, Any]


def sample() -> Columns:
    """Return every column, with an attribute `group`."""
    generator = np.random.default_rng(7)
    return {
        "external_id": np.array([f"näme {row}" for row in range(ROWS)]),
        "document_id": np.array([f"document {row // 2}" for row in range(ROWS)]),
        "vector": generator.normal(size=(ROWS, DIMENSION)).astype(np.float32),
        "logits": generator.normal(size=(ROWS, CLASS_COUNT)).astype(np.float32),
        "label": np.arange(ROWS) % (CLASS_COUNT + 1) - 1,
        "group": np.arange(ROWS),
    }


def write(path: Path, columns: Columns) -> Path:
    """Write the columns in the format of the path's suffix."""
    return write_npz(path, columns) if path.suffix == ".npz" else write_parquet(path, columns)


def write_npz(path: Path, columns: Columns) -> Path:
    np.savez(path, **{NPZ_NAMES.get(name, name): values for name, values in columns.items()})
    return path


def write_parquet(path: Path, columns: Columns, **options: Any) -> Path:
    arrays = {name: _to_arrow(name, values) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), path, **options)
    return path


def _to_arrow(name: str, values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ndarray) and (values.ndim == 2 or values.dtype.kind == "U"):
        values = list(values) if values.ndim == 2 else values.tolist()  # Arrow would cut numpy's texts at a NUL
    return pa.array(values, PARQUET_TYPES.get(name))


def read(path: Path, *, batch_rows: int = 8192) -> Iterator[ExemplarBatch]:
    return read_exemplars(path, dimension=DIMENSION, class_count=CLASS_COUNT, batch_rows=batch_rows)


def read_one(path: Path) -> ExemplarBatch:
    """Return the only batch of a small file."""
    (batch,) = read(path)
    return batch
