"""Writing a folder of shards, document by document; an interrupted run goes on after its last complete shard."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np

from venn_admit.core.budget import BLOCK_SHARE, DEFAULT_MEMORY_BUDGET
from venn_admit.core.types import UNKNOWN_LABEL
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import input_error
from venn_admit.files.output.atomic import remove_partials, writing
from venn_admit.files.records import check_id
from venn_admit.layer.states.index import (
    INDEX_NAME,
    NOT_A_WORD,
    UNFINISHED_NAME,
    EncoderIdentity,
    Kind,
    ShardEntry,
    StateDocument,
    StatesIndex,
    read_index,
    write_index,
)
from venn_admit.layer.states.shard import Shard, write_shard

_SHARD_BYTES = 64 << 20


class ShardWriter:
    """Writes documents to a folder, which is complete once the context succeeds.

    An error leaves the complete shards, and `unfinished.json`, which names them. A writer with the same arguments goes
    on after them: its `written` says how many documents they hold.

    Attributes:
        written: The number of documents that complete shards hold.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kind: Kind,
        width: int,
        class_names: Sequence[str],
        encoder: EncoderIdentity,
        dtype: Literal["float16", "float32"] = "float16",
        source: str = "",
        several_labels: bool = False,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        """Take what all documents have in common.

        Args:
            folder: Made if it is missing; otherwise it must be empty, or hold what such a writer left.
            source: A digest of the data that the states are computed from. Without one, no run is continued.
            memory_budget: Bytes that writing may take; the documents of a shard are held until it is complete.
        """
        self._folder = folder
        self._index = StatesIndex(
            kind=kind,
            width=width,
            dtype=dtype,
            class_names=tuple(class_names),
            encoder=encoder,
            source=source,
            several_labels=several_labels,
        )
        self._shard_bytes = min(_SHARD_BYTES, memory_budget // BLOCK_SHARE)
        self._entries: list[ShardEntry] = []
        self._ids: set[str] = set()
        self._held: list[StateDocument] = []
        self._held_bytes = 0
        self.written = 0

    def __enter__(self) -> Self:
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            remove_partials(self._folder)
            found = sorted(path.name for path in self._folder.iterdir() if not path.name.endswith(".partial"))
        if UNFINISHED_NAME in found:
            self._continue()
        elif found:
            raise InvalidInputError(
                f"{self._folder}: expected an empty folder for the states, got one with {found[0]!r}; "
                "choose another name, or remove it"
            )
        self._write_index(UNFINISHED_NAME)
        return self

    def append(self, document: StateDocument) -> None:
        """Add a document.

        Args:
            document: With states of this width. Its arrays are kept until its shard is written.
        """
        self._check(document)
        self._ids.add(document.external_id)
        self._held.append(document)
        itemsize = np.dtype(self._index.dtype).itemsize
        text_bytes = sum(map(len, document.tokens)) + len(str(document.attributes))
        self._held_bytes += document.states.size * itemsize + text_bytes
        if self._held_bytes >= self._shard_bytes:
            self._write_shard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            return
        if self._held:
            self._write_shard()
        if not self._entries:
            raise input_error(self._folder, "documents", "at least one", 0)
        self._write_index(INDEX_NAME)
        with writing(self._folder):
            (self._folder / UNFINISHED_NAME).unlink()

    def _continue(self) -> None:
        """Take over the complete shards that a writer with the same arguments left."""
        left = read_index(self._folder / UNFINISHED_NAME)
        empty = left.model_copy(update={"shards": (), "documents": 0, "tokens": 0})
        if empty != self._index or not self._index.source:
            raise InvalidInputError(
                f"{self._folder}: expected a folder of states of the same documents, encoder and options, got one "
                "that was left unfinished with others; remove it, or choose another name"
            )
        for entry in left.shards:
            self._ids.update(Shard(self._folder / entry.file, entry, left).external_ids())
        self._entries = list(left.shards)
        self.written = left.documents

    def _write_shard(self) -> None:
        path = self._folder / f"shard-{len(self._entries):05}.safetensors"
        self._entries.append(write_shard(path, self._held, self._index))
        self.written += len(self._held)
        self._held, self._held_bytes = [], 0
        self._write_index(UNFINISHED_NAME)

    def _write_index(self, name: str) -> None:
        counts = {
            "documents": sum(entry.documents for entry in self._entries),
            "tokens": sum(entry.tokens for entry in self._entries),
        }
        write_index(self._folder / name, self._index.model_copy(update={"shards": tuple(self._entries), **counts}))

    def _check(self, document: StateDocument) -> None:
        where = f"document {document.external_id!r}"
        check_id(self._folder, where, document.external_id)
        if document.external_id in self._ids:
            raise input_error(self._folder, where, "every id once", "it twice")
        shape, width = document.states.shape, self._index.width
        if len(shape) != 2 or shape[0] < 1 or shape[1] != width:
            raise input_error(self._folder, f"{where}, states", f"shape (T >= 1, {width})", shape)
        limit = np.finfo(self._index.dtype).max
        if not (np.abs(document.states) <= limit).all():
            raise input_error(self._folder, f"{where}, states", f"numbers that {self._index.dtype} can hold", "others")
        if len(document.tokens) not in (0, shape[0]):
            raise input_error(self._folder, f"{where}, tokens", f"none or {shape[0]}", len(document.tokens))
        self._check_labels(where, document)

    def _check_labels(self, where: str, document: StateDocument) -> None:
        given = document.token_labels
        if self._index.kind == "document":
            given, least, shape = np.array([document.label]), UNKNOWN_LABEL, (1,)
        else:
            least, shape = NOT_A_WORD, (len(document.states),)
        if given is None or given.shape != shape:
            got = "none" if given is None else given.shape
            raise input_error(self._folder, f"{where}, labels", f"shape {shape}", got)
        last = self._index.label_limit - 1
        if given.min() < least or given.max() > last:
            raise input_error(self._folder, f"{where}, labels", f"{least}..{last}", f"{given.min()}..{given.max()}")
