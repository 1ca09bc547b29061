"""Which documents are trained on, which choose the epoch, and the mini-batches of an epoch."""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from venn_admit.core.splits import hash_keys
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import NotReadyError
from venn_admit.layer.states.index import StateDocument
from venn_admit.layer.states.reader import StateShards
from venn_admit.layer.symbols import no_symbols, symbol_numbers

_POOL_BATCHES = 64
"""How many mini-batches' documents are sorted by length together. More would make mini-batches less random."""


class MiniBatch(NamedTuple):
    """Documents that are computed together.

    Attributes:
        states: (n, H) float32, of their tokens, one document after the other.
        lengths: (B,) int64, tokens of each document.
        labels: (B,) int64 of the documents, or (n,) int64 of the tokens; below 0 if there is none.
        symbols: (n,) int64, the numbers of their symbols; None if the layer takes none.
    """

    states: Float32Array
    lengths: IntArray
    labels: IntArray
    symbols: IntArray | None = None


def split_dev(shards: StateShards, rows: IntArray, *, dev_share: float, seed: int) -> tuple[IntArray, IntArray]:
    """Cut documents into those to train on and those to choose the epoch by, by a hash of their texts.

    So copies of a text are on the same side. Documents whose text is unknown are cut by a hash of their ids.

    Args:
        dev_share: In (0, 1), the expected share of the second part.

    Returns:
        Rows to train on and rows of the dev split, int64, ascending.

    Raises:
        NotReadyError: One of them would be empty.
    """
    keys = [
        shards.external_ids[row] if text is None else text
        for row, text in zip(rows.tolist(), _text_keys(shards, rows), strict=True)
    ]
    chosen = hash_keys(keys, seed=seed, purpose="memory dev") < np.uint64(dev_share * 2.0**64)
    if not chosen.any() or chosen.all():
        raise NotReadyError(
            f"expected labelled documents to train on and others to choose the epoch by, got {len(rows)} labelled "
            f"documents, of which {int(chosen.sum())} fell to the dev split of share {dev_share}; "
            "label more documents, or choose another share or seed"
        )
    return rows[~chosen], rows[chosen]


def _text_keys(shards: StateShards, rows: IntArray) -> Iterator[str | None]:
    """A digest of each document's text; None if it is unknown."""
    for attributes in shards.attributes(rows):
        text = attributes.get("text")
        yield hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest() if isinstance(text, str) else None


def count_labels(labels: IntArray, class_count: int, *, several: bool) -> IntArray:
    """Return how often each class occurs among labels, (C,) int64; unknown ones are left out.

    Args:
        labels: (n,) int64.
        class_count: C.
        several: Whether they are sets of labels, as `StateDocument` has them.

    Examples:
        >>> count_labels(np.array([0b11, 0b10, 0b00, -1]), 2, several=True).tolist()
        [1, 2]
    """
    known = labels[labels >= 0]
    if several:
        counts: IntArray = (known[:, np.newaxis] >> np.arange(class_count) & 1).sum(axis=0)
        return counts
    return np.bincount(known, minlength=class_count)


def epoch_batches(
    lengths: IntArray, rows: IntArray, *, batch_tokens: int, generator: np.random.Generator | None
) -> list[IntArray]:
    """Cut documents into mini-batches of similar length.

    Documents are shuffled, cut into pools of about 64 mini-batches, sorted by length within each pool and cut into
    mini-batches, which are shuffled.

    Args:
        batch_tokens: >= 1; a mini-batch holds at most this many tokens, its longest document counted for each, or one
            longer document.
        generator: What shuffles; None for no shuffling and one pool.

    Examples:
        >>> parts = epoch_batches(np.array([3, 1, 2, 9]), np.arange(4), batch_tokens=6, generator=None)
        >>> [part.tolist() for part in parts]
        [[1, 2], [0], [3]]
    """
    if generator is None:
        return _batches_by_length(lengths, rows, batch_tokens)
    shuffled = rows[generator.permutation(len(rows))]
    ends = np.cumsum(lengths[shuffled])
    pool_numbers = (ends - 1) // (_POOL_BATCHES * batch_tokens)
    pools = np.split(shuffled, np.flatnonzero(np.diff(pool_numbers)) + 1)
    parts = [part for pool in pools for part in _batches_by_length(lengths, pool, batch_tokens)]
    return [parts[number] for number in generator.permutation(len(parts))]


def read_batches(
    shards: StateShards, parts: list[IntArray], symbols: Mapping[str, int] | None = None
) -> Iterator[MiniBatch]:
    """Read mini-batches, one at a time. symbols: the number of each symbol; None if the layer takes none."""
    documents = shards.documents(np.concatenate(parts))
    for part in parts:
        read = list(islice(documents, len(part)))
        labels = [
            np.array([document.label]) if document.token_labels is None else document.token_labels for document in read
        ]
        yield MiniBatch(
            states=np.concatenate([document.states for document in read]),
            lengths=shards.lengths[part],
            labels=np.concatenate(labels),
            symbols=None if symbols is None else np.concatenate([_symbols(shards, one, symbols) for one in read]),
        )


def _symbols(shards: StateShards, document: StateDocument, known: Mapping[str, int]) -> IntArray:
    if not document.tokens:
        raise no_symbols(f"{shards.called}: document {document.external_id!r}")
    return symbol_numbers(known, document.tokens)


def _batches_by_length(lengths: IntArray, rows: IntArray, batch_tokens: int) -> list[IntArray]:
    ordered = rows[np.argsort(lengths[rows], kind="stable")]
    longest = lengths[ordered].tolist()  # of a mini-batch that ends there, because lengths ascend
    starts = [0]
    for end, length in enumerate(longest):
        if end > starts[-1] and (end + 1 - starts[-1]) * length > batch_tokens:
            starts.append(end)
    return [ordered[start:end] for start, end in pairwise([*starts, len(ordered)])]
