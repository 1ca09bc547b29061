"""Reading a folder of shards: documents in any order, each from a file that is mapped into memory."""

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import input_error
from venn_admit.layer.settings import PRESENCE
from venn_admit.layer.states.index import INDEX_NAME, UNFINISHED_NAME, Kind, StateDocument, StatesIndex, read_index
from venn_admit.layer.states.shard import Shard


class StateShards:
    """The documents of a folder of shards, in n = `document_count` rows.

    Memory: some tens of bytes a document, and the document that is read; the states stay in the files.

    Attributes:
        called: What messages call it.
        index: What `index.json` says; `kind`, `width`, `encoder`, `class_names` and both counts are from there.
        cut_count: The number of documents with more tokens than the encoder reads.
        lengths: (n,) int64, T >= 1 of each document.
        labels: (n,) int64, of each document, -1 if unknown and where tokens are labelled; sets of labels if each may
            have several, as `StateDocument` has them.
        several_labels: Whether it may.
    """

    def __init__(self, folder: Path, file: Path | None = None) -> None:
        """Open a folder, and check that its shards are those that were written, by reading all of them once.

        Args:
            file: What the states were made from, if its user knows that instead of the folder.

        Raises:
            InvalidInputError: The folder is not complete, or a file is invalid.
        """
        self.folder, self.called = folder, file or folder
        if not (folder / INDEX_NAME).exists() and (folder / UNFINISHED_NAME).exists():
            raise InvalidInputError(
                f"{folder}: expected a complete folder of states, got one whose writing was interrupted; "
                "run what wrote it again, which goes on from there"
            )
        self.index: StatesIndex = read_index(folder / INDEX_NAME)
        self.kind: Kind = self.index.kind
        self.width, self.encoder, self.class_names = self.index.width, self.index.encoder, self.index.class_names
        self.document_count, self.token_count = self.index.documents, self.index.tokens
        self.cut_count = sum(entry.cut for entry in self.index.shards)
        self.several_labels = self.index.several_labels
        self._shards = [Shard(folder / entry.file, entry, self.index) for entry in self.index.shards]
        if not self._shards:
            raise input_error(folder / INDEX_NAME, "shards", "at least one", 0)
        self._first_rows = np.cumsum([0] + [entry.documents for entry in self.index.shards])
        self.lengths: IntArray = np.concatenate([np.diff(shard.offsets) for shard in self._shards])
        self.labels: IntArray = np.concatenate([shard.labels for shard in self._shards])

    @cached_property
    def external_ids(self) -> list[str]:
        """The n ids, in order. InvalidInputError if one occurs twice."""
        ids = [external_id for shard in self._shards for external_id in shard.external_ids()]
        if len(set(ids)) < len(ids):
            raise input_error(self.called, "ids", "every id once", "one twice", "write the states again")
        return ids

    def documents(self, order: IntArray | None = None) -> Iterator[StateDocument]:
        """Yield documents.

        Args:
            order: (m,) int64, rows in [0, n), in the order in which they are wanted, and as often; None: all in order.
        """
        rows = np.arange(self.document_count) if order is None else order
        for (shard, row), label in zip(self._places(rows), self.labels[rows].tolist(), strict=True):
            yield shard.document(row, label)

    def of_label(self, label: str) -> Self:
        """Return the same documents for one of their labels alone, of which each has one of the classes `PRESENCE`.

        Raises:
            InvalidInputError: Each document has one label, or its tokens have one each.
        """
        if not self.several_labels:
            raise InvalidInputError(
                f"{self.called}: expected documents with any number of labels, as the memory layer was trained on, "
                "got one label each; give each a list of labels"
            )
        number = self.class_names.index(label)
        one = copy(self)
        one.class_names, one.several_labels = PRESENCE, False
        one.labels = np.where(self.labels < 0, self.labels, self.labels >> number & 1)
        return one

    def attributes(self, order: IntArray) -> Iterator[dict[str, object]]:
        """Yield the attributes of documents, whose states are not read."""
        for shard, row in self._places(order):
            yield shard.attributes(row)

    def tokens(self, order: IntArray) -> Iterator[tuple[str, ...]]:
        """Yield the texts of the tokens of documents, whose states are not read."""
        for shard, row in self._places(order):
            yield shard.tokens(row)

    def _places(self, rows: IntArray) -> Iterator[tuple[Shard, int]]:
        """The shard of each row, and the position in it."""
        shard_numbers = np.searchsorted(self._first_rows, rows, side="right") - 1
        for row, number in zip(rows.tolist(), shard_numbers.tolist(), strict=True):
            yield self._shards[number], row - int(self._first_rows[number])
