"""The splits of exemplars that are held out: copies come into one split, and none is beside a copy that trains.

The caller holds the ingestion lock of the classifier, so that what is stored stays as it is until all are placed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from venn_admit.core.copies import Units
from venn_admit.core.splits import assign_splits
from venn_admit.core.types import IntArray, Split
from venn_admit.errors import Code, ConflictError
from venn_admit.files.records import ExemplarBatch
from venn_admit.store.exemplars import copies
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.copies import StoredCopy

_NAMED = 5
_NONE_NEW = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where some exemplars belong.

    splits: as far as is known now. is_copy: whether an exemplar before it, stored or given, is held out and has the
    same vector and logits. opposed: by row, one with the same that trains, or is held out if these train.
    """

    splits: list[Split]
    is_copy: list[bool]
    opposed: dict[int, StoredCopy]


class Placement:
    """Places the exemplars of one source, part after part."""

    def __init__(self, connection: Connection, classifier: Classifier, split: Split | None = None) -> None:
        """Begin. split: `train`, or the one of those that are held out without copies in another; None: it is drawn."""
        self._has_vectors = classifier.knn is not None
        if self._has_vectors:
            copies.complete_digests(connection, classifier)
        self._connection, self._classifier, self._trains = connection, classifier, split is Split.TRAIN
        self._units = Units(_drawn(classifier) if split is None else lambda keys: [split] * len(keys))
        self._documents: set[str] = set()
        self._first_new_id = _NONE_NEW

    def place(
        self, external_ids: Sequence[str], document_ids: Sequence[str | None], digests: Sequence[bytes]
    ) -> Placed:
        """Place some exemplars; digests: of vector and logits. Without vectors there are no copies."""
        keys = document_keys(external_ids, document_ids)
        if not self._has_vectors:
            return Placed(self._units.splits(keys), [False] * len(keys), {})
        stored = copies.stored_copies(self._connection, self._classifier, dict.fromkeys(digests))
        others = stored.held_out if self._trains else stored.training
        opposed = {row: others[digest] for row, digest in enumerate(digests) if digest in others}
        if self._trains:
            return Placed([Split.TRAIN] * len(digests), [False] * len(digests), opposed)
        self._keep_documents(document_ids)
        first: dict[bytes, int] = {}
        is_copy = []
        for row, (key, digest) in enumerate(zip(keys, digests, strict=True)):
            other, before = stored.held_out.get(digest), first.setdefault(digest, row)
            self._units.join(key, keys[before])
            if other is not None:
                self._units.join(key, other.document_key)
                if other.document_key != key and other.id < self._first_new_id:
                    self._units.keep(other.document_key, other.split)
            earlier = {external_ids[before]} | (set() if other is None else {other.external_id})
            is_copy.append(earlier != {external_ids[row]})
        return Placed(self._units.splits(keys), is_copy, opposed)

    def note_new(self, ids: IntArray) -> None:
        """Note the ids, ascending, of those that were new: where they belong may still change."""
        if len(ids):
            self._first_new_id = min(self._first_new_id, int(ids[0]))

    def finish(self) -> copies.Moved:
        """Move what turned out to be copies of exemplars in another split."""
        moved = self._units.moved()
        if not moved:
            return copies.Moved(Counter(), Counter())
        before = self._units.moved_before()
        for key, split in before.items():
            for other in copies.connected(self._connection, self._classifier, [key]):
                moved.setdefault(other, split)
        return copies.move(self._connection, self._classifier, moved, first_new_id=self._first_new_id)

    def _keep_documents(self, document_ids: Sequence[str | None]) -> None:
        """Note the splits of documents that are stored, and were not asked for yet."""
        asked = {one for one in document_ids if one is not None} - self._documents
        self._documents |= asked
        if asked:
            stored = copies.splits_of_documents(self._connection, self._classifier, sorted(asked))
            for document_id, split in stored.items():
                self._units.keep(document_id, split)


class TrainingCopies:
    """Exemplars of a source that would calibrate beside copies that train, or train beside copies that calibrate."""

    def __init__(self, source: object) -> None:
        self._source = source
        self._named: list[str] = []
        self.count = 0

    def add(self, batch: ExemplarBatch, placed: Placed, new_rows: Sequence[int]) -> None:
        """Count those of a batch that are new."""
        opposed = [row for row in new_rows if row in placed.opposed] if placed.opposed else []
        self.count += len(opposed)
        for row in opposed[: _NAMED - len(self._named)]:
            copy = placed.opposed[row]
            self._named.append(
                f"row {batch.first_row + row}, id {batch.external_ids[row]!r} (that of {copy.external_id!r} in split "
                f"{copy.split})"
            )

    def require_none(self, classifier: Classifier) -> None:
        """Raise ConflictError if there are any."""
        if not self.count:
            return
        rest = self.count - len(self._named)
        raise ConflictError(
            f"{self._source}: expected exemplars that either train or are held out, got {self.count:,} with the vector "
            f"and logits of one that does the other: {'; '.join(self._named)}{f'; and {rest:,} more' if rest else ''}. "
            "The network does better on what it was trained on than on the traffic; leave them out, unless the traffic "
            "repeats training data as often",
            code=Code.TRAINING_ROWS,
            classifier=classifier.name,
        )


def document_keys(external_ids: Sequence[str], document_ids: Sequence[str | None]) -> list[str]:
    """Return the document of each exemplar, or else its own id."""
    return [
        external_id if document_id is None else document_id
        for external_id, document_id in zip(external_ids, document_ids, strict=True)
    ]


def _drawn(classifier: Classifier) -> Callable[[Sequence[str]], list[Split]]:
    return partial(assign_splits, seed=classifier.seed, knn_share=classifier.knn_share, mc_share=classifier.mc_share)
