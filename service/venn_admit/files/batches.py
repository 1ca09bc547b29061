"""Batches on their way into the database: merged into larger ones, and read while the one before is stored."""

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from venn_admit.files.records import ROW_ARRAYS, ROW_LISTS, ExemplarBatch

_Batch = TypeVar("_Batch")


def merged(batches: Iterable[ExemplarBatch], row_count: int) -> Iterator[ExemplarBatch]:
    """Yield the same rows in batches of at least `row_count` rows, the last one excepted.

    At most `row_count` rows and one batch are held at once. The batches are those of one source, in its order.
    """
    held: list[ExemplarBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch.external_ids)
        if rows >= row_count:
            yield _joined(held)
            held, rows = [], 0
    if held:
        yield _joined(held)


def _joined(batches: list[ExemplarBatch]) -> ExemplarBatch:
    first, *others = batches
    if not others:
        return first
    columns: dict[str, Any] = {
        name: list(chain.from_iterable(getattr(batch, name) for batch in batches)) for name in ROW_LISTS
    }
    for name in ROW_ARRAYS:
        if getattr(first, name) is not None:
            columns[name] = np.concatenate([getattr(batch, name) for batch in batches])
    return replace(first, **columns)


def read_ahead(batches: Generator[_Batch, None, None]) -> Iterator[_Batch]:
    """Yield the same batches, while a thread of its own reads the one after; an error comes in its place.

    At most two batches are held at once. Closing this closes `batches` as well, once what is being read has been.
    """
    end = object()
    try:
        with ThreadPoolExecutor(1, "read-ahead") as reader:
            upcoming = reader.submit(next, batches, end)
            while (batch := upcoming.result()) is not end:
                upcoming = reader.submit(next, batches, end)
                yield batch  # type: ignore[misc]
    finally:
        batches.close()
