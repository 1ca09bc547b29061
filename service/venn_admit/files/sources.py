"""Where exemplars come from: a file, a table of Arrow, or arrays in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.files import count_rows, read_exemplars
from venn_admit.files.arrow.batches import exemplar_batches
from venn_admit.files.batches import read_ahead
from venn_admit.files.inputs import OF_NETWORK, batch_bytes, input_error
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.records import (
    NOTHING_STATED,
    Attributes,
    ExemplarBatch,
    Layout,
    Stated,
    make_batch,
    unwanted_vectors,
)
from venn_admit_client.arrays import is_missing

_BATCH_ROWS = 8192


class ExemplarSource(Protocol):
    """Exemplars that can be read once, in batches; `str` of it is what messages call it."""

    @property
    def name(self) -> str:
        """What is recorded as the source of the exemplars."""

    def count_rows(self) -> int | None:
        """Return the number of rows if it is known before they are read. InvalidInputError as in `batches`."""

    def batches(
        self, *, dimension: int | None, class_count: int, class_names: Sequence[str]
    ) -> Iterator[ExemplarBatch]:
        """Yield batches of checked rows for a classifier.

        Args:
            dimension: D, the length of a vector r; None for a classifier with logits only, which takes no vectors.
            class_count: C, the number of logits f.
            class_names: Names that labels may use instead of numbers; may be empty.

        Raises:
            InvalidInputError: The content is invalid; the message names the row (counted from 0) and column.
        """


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file, .npz or .parquet.

    memory_budget: bytes that reading it may take. extractor: the version of the extractor, if it is stated apart from
    the file.
    """

    path: Path
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    stated: Stated = NOTHING_STATED

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    def count_rows(self) -> int:
        return count_rows(self.path)

    def batches(
        self, *, dimension: int | None, class_count: int, class_names: Sequence[str]
    ) -> Iterator[ExemplarBatch]:
        return read_ahead(
            read_exemplars(
                self.path,
                dimension=dimension,
                class_count=class_count,
                class_names=class_names,
                memory_budget=self.memory_budget,
                stated=self.stated,
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class ArrowSource:
    """A table or a stream of record batches, with the columns that a Parquet file of exemplars has.

    Attributes:
        name: What it is called, in messages too.
        data: The table, or a reader of record batches, which is read once.
        extractor: The version of the extractor, if it is stated apart from the data.
    """

    name: str
    data: pa.Table | pa.RecordBatchReader
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    stated: Stated = NOTHING_STATED

    def __str__(self) -> str:
        return self.name

    def count_rows(self) -> int | None:
        return self.data.num_rows if isinstance(self.data, pa.Table) else None

    def batches(
        self, *, dimension: int | None, class_count: int, class_names: Sequence[str]
    ) -> Iterator[ExemplarBatch]:
        classes = ClassNumbers(class_count, class_names)
        layout = Layout(self.name, dimension, class_count, classes, self.memory_budget, self.stated)
        if self.count_rows() == 0:  # its columns may have no types
            raise input_error(self.name, "table", "at least one row", 0)
        parts = self.data.to_batches() if isinstance(self.data, pa.Table) else self.data
        yield from exemplar_batches(layout, self.data.schema, parts)


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """Arrays in memory, a row an exemplar.

    Attributes:
        name: What it is called, in messages too.
        vectors: (n, D), r, of any float type; None for a classifier with logits only.
        logits: (n, C), f(x), of any float type.
        labels: (n,), class numbers with -1 or NaN for an unknown label, or n class names with None; None if unknown.
        ids: n texts or integers; None for ids that follow from the content.
        documents: n texts or integers, None for an exemplar of no document; None if no exemplar has one.
        row_attributes: Instead of them, n dictionaries, which need not have the same keys.
    """

    name: str
    vectors: npt.NDArray[Any] | None
    logits: npt.NDArray[Any]
    labels: npt.NDArray[Any] | Sequence[object] | None = None
    ids: Sequence[object] | None = None
    documents: Sequence[object] | None = None
    attributes: Mapping[str, Sequence[Any]] | None = None
    row_attributes: Sequence[Attributes] | None = None
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    stated: Stated = NOTHING_STATED

    def __str__(self) -> str:
        return self.name

    def count_rows(self) -> int:
        return len(self.logits)

    def batches(
        self, *, dimension: int | None, class_count: int, class_names: Sequence[str]
    ) -> Iterator[ExemplarBatch]:
        classes = ClassNumbers(class_count, class_names)
        layout = array_layout(self.name, dimension, classes, class_count, self.memory_budget, self.stated)
        return self.checked(layout)

    def checked(self, layout: Layout, first_row: int = 0) -> Iterator[ExemplarBatch]:
        """Yield batches of checked rows; errors as of `batches`.

        layout: as `array_layout` makes it. first_row: the number of the first row, if other rows came before these.
        """
        self._check(layout.dimension, layout.class_count)
        size = rows_at_once(layout)
        for first in range(0, len(self.logits), size):
            rows = slice(first, first + size)
            labels = None if self.labels is None else self.labels[rows]
            yield make_batch(
                layout,
                first_row + first,
                vectors=None if self.vectors is None else self.vectors[rows],
                logits=self.logits[rows],
                labels=labels.tolist() if isinstance(labels, np.ndarray) and labels.dtype.kind not in "iuf" else labels,
                external_ids=self._texts("ids", self.ids, rows, first_row),
                document_ids=self._texts("documents", self.documents, rows, first_row),
                attributes=self._attributes(rows),
            )

    def _check(self, dimension: int | None, class_count: int) -> None:
        """Raise InvalidInputError unless every array has the shape that it must have."""
        floats = {"logits": (self.logits, class_count)}
        if dimension is None:
            if self.vectors is not None:
                raise unwanted_vectors(self.name, "vectors", f"shape {self.vectors.shape}")
        elif self.vectors is None:
            raise input_error(self.name, "vectors", f"shape (n, {dimension})", "none", "give them with the logits")
        else:
            floats = {"vectors": (self.vectors, dimension), **floats}
        for name, (values, width) in floats.items():
            if values.ndim != 2 or values.shape[1] != width:
                raise input_error(self.name, name, f"shape (n, {width})", values.shape, OF_NETWORK)
            if values.dtype.kind != "f":
                raise input_error(self.name, name, "an array of floats", values.dtype, "cast it")
        first, (values, _) = next(iter(floats.items()))
        self._check_lengths(first, len(values))

    def _check_lengths(self, first: str, row_count: int) -> None:
        """Raise InvalidInputError unless every column has a value for each row of the first array, and it has any."""
        if len(self.logits) != row_count:
            raise input_error(self.name, "logits", f"{row_count} rows, as many as {first} has", len(self.logits))
        columns = {"labels": self.labels, "ids": self.ids, "documents": self.documents}
        for name, column in columns.items():
            if isinstance(column, np.ndarray) and column.ndim != 1:
                raise input_error(self.name, name, f"shape ({row_count},)", column.shape)
        for name, column in {**columns, **(self.attributes or {})}.items():
            if column is not None and len(column) != row_count:
                raise input_error(self.name, name, f"{row_count} rows, as many as {first} has", len(column))
        if not row_count:
            raise input_error(self.name, first, "at least one row", 0)

    def _attributes(self, rows: slice) -> Iterable[Attributes] | None:
        if self.row_attributes is not None:
            return self.row_attributes[rows]
        return _transposed(self.attributes, rows) if self.attributes else None

    def _texts(
        self, column: str, values: Sequence[object] | None, rows: slice, first_row: int
    ) -> list[str | None] | None:
        if values is None:
            return None
        texts = []
        for row, given in enumerate(plain_list(values[rows]), start=first_row + rows.start):
            value = given.item() if isinstance(given, np.generic) else given
            if column == "documents" and is_missing(value):
                value = None  # as tables have it
            if not (value is None or isinstance(value, (str, int))) or isinstance(value, bool):
                raise input_error(self.name, f"row {row}, {column}", "a text or an integer", repr(value))
            texts.append(None if value is None else str(value))
        return texts


def array_layout(
    name: str,
    dimension: int | None,
    classes: ClassNumbers,
    class_count: int,
    memory_budget: int,
    stated: Stated = NOTHING_STATED,
    *,
    vector: str = "vectors",
) -> Layout:
    """Return the layout of arrays, whose columns are called as arguments are; vector: what vectors are called."""
    return Layout(
        name,
        dimension,
        class_count,
        classes,
        memory_budget,
        stated,
        vector=vector,
        label="labels",
        external_id="ids",
        document_id="documents",
    )


def rows_at_once(layout: Layout) -> int:
    """Return how many rows of arrays a batch may have, at least 1."""
    row_bytes = ((layout.dimension or 0) + layout.class_count) * np.dtype(np.float64).itemsize
    return max(1, min(_BATCH_ROWS, batch_bytes(layout.memory_budget) // row_bytes))


def _transposed(columns: Mapping[str, Sequence[Any]], rows: slice) -> Iterator[Attributes]:
    lists = [plain_list(column[rows]) for column in columns.values()]
    return (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def plain_list(values: Any) -> list[Any]:
    """Return a column as a list of plain values."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
