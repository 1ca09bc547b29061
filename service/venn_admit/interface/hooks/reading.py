"""Batches from whatever holds them: a DataLoader, an iterable, or rows that are divided here."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from venn_admit.errors import InvalidInputError


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
            f"expected batches, such as a DataLoader, or an array of rows, got a {type(data).__name__}; a single batch "
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
