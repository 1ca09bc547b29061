"""What a model makes of batches, as exemplars that are stored or decided on while they are computed."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from venn_admit.errors import InvalidInputError
from venn_admit.files.batches import merged
from venn_admit.files.inputs import input_error
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.records import NOTHING_STATED, ExemplarBatch, Layout, Stated, unwanted_vectors
from venn_admit.files.sources import ArraySource, ExemplarSource, array_layout, plain_list, rows_at_once
from venn_admit.interface.hooks.columns import BatchColumns
from venn_admit.interface.hooks.model import Model, check_outputs
from venn_admit_client.naming import type_text


def row_count(rows: Any) -> int:
    """Return how many rows an array, a table or a list has."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def blocks(rows: Any, size: int) -> Iterator[Any]:
    """Yield blocks of at most `size` rows of an array, a tensor, a sparse matrix, a DataFrame or a list."""
    rows = rows.tocsr() if hasattr(rows, "tocsr") else rows
    sliced = rows.iloc if hasattr(rows, "iloc") else rows
    for first in range(0, row_count(rows), size):
        yield sliced[first : first + size]


def check_batches(data: Any) -> None:
    """Raise InvalidInputError unless data can be batches: an iterable, which is no text, mapping or Dataset."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, torch.utils.data.Dataset):
        raise InvalidInputError(
            "expected batches, such as a DataLoader, got a Dataset; wrap it: DataLoader(dataset, batch_size=256)"
        )
    if isinstance(data, (str, bytes, dict)) or not isinstance(data, Iterable):
        raise InvalidInputError(
            f"expected batches, such as a DataLoader, or an array of rows, got {type_text(data)}; a single batch "
            "goes into a list"
        )


def is_reordered(data: Any) -> bool:
    """Whether a DataLoader may return rows in another order than its Dataset has them."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(data, torch.utils.data.DataLoader):
        return False
    if isinstance(data.dataset, torch.utils.data.IterableDataset):
        return False
    batch_sampler = data.batch_sampler
    in_order = isinstance(data.sampler, torch.utils.data.SequentialSampler)
    return not (in_order and (batch_sampler is None or type(batch_sampler) is torch.utils.data.BatchSampler))


def is_read_once(data: Any) -> bool:
    """Whether data can be read once only, as a generator or an open file."""
    return isinstance(data, Iterator)


class HookedBatches:
    """What a model makes of batches. It is made by `Hook.over`, and is what `ingest`, `score` and `evaluate` take.

    Nothing is computed before it is read: each batch is stored before the next but few are computed, so that memory
    does not grow with the number of batches. If a batch is refused, or the model fails, nothing of them all is stored.
    """

    def __init__(self, model: Model, data: Any, columns: BatchColumns, batch_size: int) -> None:
        """Check that data can be batches, or rows that can be divided.

        Raises:
            InvalidInputError: They cannot; or columns of all rows were given, and the order of the rows is not known.
        """
        if batch_size < 1:
            raise InvalidInputError(f"batch_size: expected at least 1, got {batch_size}")
        self._model, self._data, self._columns, self._batch_size = model, data, columns, batch_size
        self._is_rows = model.are_rows(data)
        if not self._is_rows:
            check_batches(data)
        elif isinstance(data, (list, tuple)) and columns.inputs is None:
            self._columns = replace(columns, inputs=_itself)  # a block of them is no tuple of inputs and labels
        if columns.whole and is_reordered(data):
            raise InvalidInputError(
                f"{', '.join(columns.whole)}: expected a name, a position or a function of the batch, because the "
                "DataLoader does not read its rows in their order, got values for all rows; let the Dataset return them"
            )
        self._was_read = False

    def __repr__(self) -> str:
        return f"<HookedBatches of {self._model.name}>"

    def arrays(self) -> dict[str, Any]:
        """Compute all of them, and return them as arrays.

        Returns:
            Those of `vectors` (n, D), `logits` (n, C), `labels`, `ids`, `documents` and `attributes` that there are:
            the arguments of `ingest` and `score`, also of the client of the HTTP service.

        Raises:
            InvalidInputError: A batch is invalid.
        """
        parts = list(self.parts())
        found: dict[str, Any] = {"logits": np.concatenate([part.logits for part in parts])}
        vectors = [part.vectors for part in parts if part.vectors is not None]
        if vectors:
            found = {"vectors": np.concatenate(vectors), **found}
        for name in ("labels", "ids", "documents"):
            if any(getattr(part, name) is not None for part in parts):
                found[name] = list(chain.from_iterable(_filled(getattr(part, name), part) for part in parts))
        names = dict.fromkeys(name for part in parts for name in part.attributes or ())
        if names:
            found["attributes"] = {
                name: list(chain.from_iterable(_filled((part.attributes or {}).get(name), part) for part in parts))
                for name in names
            }
        return found

    def source(self, name: str | None, *, memory_budget: int, stated: Stated = NOTHING_STATED) -> ExemplarSource:
        """Return them as a source of exemplars. name: what it is called; None: what the model is called."""
        rows = row_count(self._data) if self._is_rows else None
        return _HookedSource(name or self._model.name, self._model, self, rows, memory_budget, stated)

    def check_order(self) -> None:
        """Raise InvalidInputError if rows could not be told apart: a DataLoader shuffles, and there are no ids."""
        if self._columns.ids is None and is_reordered(self._data):
            raise InvalidInputError(
                "ids: expected some, because the DataLoader does not read its rows in their order, so that decisions "
                "could not be told apart, got none; name what holds them, or make the DataLoader with shuffle=False"
            )

    def parts(self) -> Iterator[ArraySource]:
        """Run the model on each batch, and yield what comes out; batches without rows are left out.

        Raises:
            InvalidInputError: A batch is invalid, there are no rows, or they were read before and cannot be
                read again.
        """
        if self._was_read and is_read_once(self._data):
            raise InvalidInputError(
                "expected batches that were not read yet, got a generator, which was; call over(...) with a new "
                "one, or with a DataLoader, which can be read again"
            )
        self._was_read = True
        rows = 0
        for batch in self._batches():
            part = self._part(batch, rows)
            rows += len(part.logits)
            if len(part.logits):
                yield part
        for name, values in self._columns.whole.items():
            if len(values) != rows:
                raise input_error(self._model.name, name, f"{rows} values, one for each row", len(values))
        if not rows:
            raise input_error(self._model.name, "logits", "at least one row", 0)

    def _batches(self) -> Iterable[Any]:
        return blocks(self._data, self._batch_size) if self._is_rows else self._data

    def _part(self, batch: Any, first_row: int) -> ArraySource:
        model, columns = self._model, self._columns
        outputs = model.outputs(columns.arguments(batch, model.parameters), columns.mask_of(batch))
        check_outputs(model.name, model.vector_name, outputs)
        count = len(outputs.logits)
        labels = columns.labels_of(batch, first_row, count)
        return ArraySource(
            model.name,
            vectors=outputs.vectors,
            logits=outputs.logits,
            labels=None if labels is None else model.class_numbers(labels, first_row),
            ids=columns.ids_of(batch, first_row, count),
            documents=columns.documents_of(batch, first_row, count),
            attributes=columns.attributes_of(batch, first_row, count),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _HookedSource:
    """The rows of hooked batches. known_rows: their number, if it is known. memory_budget: bytes that they may take."""

    name: str
    model: Model
    hooked: HookedBatches
    known_rows: int | None
    memory_budget: int
    stated: Stated

    def __str__(self) -> str:
        return self.name

    def count_rows(self) -> int | None:
        return self.known_rows

    def batches(
        self, *, dimension: int | None, class_count: int, class_names: Sequence[str]
    ) -> Iterator[ExemplarBatch]:
        self.model.check_classes(class_names)
        classes = ClassNumbers(class_count, class_names)
        layout = array_layout(
            self.name, dimension, classes, class_count, self.memory_budget, self.stated, vector=self.model.vector_name
        )
        return merged(self._checked(layout), rows_at_once(layout))

    def _checked(self, layout: Layout) -> Iterator[ExemplarBatch]:
        rows = 0
        for part in self.hooked.parts():
            self._check_widths(layout, part)
            yield from part.checked(layout, rows)
            rows += len(part.logits)

    def _check_widths(self, layout: Layout, part: ArraySource) -> None:
        """Raise InvalidInputError unless vectors and logits have the lengths that the classifier has."""
        vector_name = self.model.vector_name
        if part.logits.shape[1] != layout.class_count:
            expected = f"shape (n, {layout.class_count}), a column for each class"
            raise input_error(self.name, "logits", expected, part.logits.shape)
        if layout.dimension is None:
            if part.vectors is not None:
                raise unwanted_vectors(self.name, vector_name, f"shape {part.vectors.shape}")
            return
        expected = f"shape (n, {layout.dimension}), as the classifier has dimension {layout.dimension}"
        if part.vectors is None:
            raise input_error(self.name, "vectors", expected, "none", "name the layer: hook(model, layer=...)")
        if part.vectors.shape[1] != layout.dimension:
            advice = "name another layer, or create a classifier of this dimension"
            raise input_error(self.name, vector_name, expected, part.vectors.shape, advice)


def _itself(batch: Any) -> tuple[Any, ...]:
    return (batch,)


def _filled(values: Sequence[Any] | None, part: ArraySource) -> Sequence[Any]:
    if values is None:
        return [None] * len(part.logits)
    return plain_list(values)
