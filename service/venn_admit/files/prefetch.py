"""Batches that are read while the one before is stored: the server takes rows on another processor."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Batch = TypeVar("_Batch")


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
