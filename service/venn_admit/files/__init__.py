"""Files in and out: exemplars from npz and parquet, tables to parquet and CSV, settings to JSON."""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.npz import reader as npz
from venn_admit.files.parquet import reader as parquet
from venn_admit.files.records import NOTHING_STATED, ExemplarBatch, Layout, Stated

_Reader = TypeVar("_Reader", bound=Callable[..., object])


def read_exemplars(
    path: Path,
    *,
    dimension: int | None,
    class_count: int,
    class_names: Sequence[str] = (),
    batch_rows: int = 8192,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    stated: Stated = NOTHING_STATED,
) -> Generator[ExemplarBatch, None, None]:
    """Read a file of exemplars, .npz or .parquet, in batches of at most `batch_rows` rows, in file order.

    This is a generator: nothing is read before the first batch is requested. Then everything that the headers tell
    (missing columns, types, sizes) is checked at once, and values are checked as their batch is read. Store the batches
    in one transaction, and roll it back on an error.

    Args:
        dimension: D >= 1, the length of a vector r; None for a classifier with logits only, whose files have none.
        class_count: C >= 1, the number of logits f. Labels y are 0..C-1, or -1 if unknown.
        class_names: Names that labels may use instead of numbers.
        batch_rows: >= 1. Batches are smaller if rows are wide.
        memory_budget: Bytes that reading may take. A file that does not fit even in small batches is refused from its
            headers, before it is decoded.
        stated: What is stated apart from the file.

    Raises:
        InvalidInputError: The file is invalid. The message names the row (counted from 0) and column, what
            was expected and received.
    """
    for name, value in (("dimension", dimension), ("class_count", class_count), ("batch_rows", batch_rows)):
        if value is not None and value < 1:
            raise InvalidInputError(f"{name}: expected at least 1, got {value}")
    read_batches = _for_suffix(path, npz=npz.read_batches, parquet=parquet.read_batches)
    layout = Layout(path, dimension, class_count, ClassNumbers(class_count, class_names), memory_budget, stated)
    yield from read_batches(path, layout, batch_rows)


def count_rows(path: Path) -> int:
    """Return the number of rows of a file of exemplars, from its headers.

    Raises:
        InvalidInputError: The file is missing, has another format, or cannot be read.
    """
    return _for_suffix(path, npz=npz.count_rows, parquet=parquet.count_rows)(path)


def _for_suffix(path: Path, *, npz: _Reader, parquet: _Reader) -> _Reader:
    match path.suffix.lower():
        case ".npz":
            return npz
        case ".parquet":
            return parquet
        case other:
            got = repr(other) if other else "no ending"
            raise InvalidInputError(f"{path}: expected a name ending in .npz or .parquet, got {got}")
