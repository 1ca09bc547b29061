"""The splits of exemplars that are held out: copies come into one split, and none is beside a copy that trains.

The caller holds the ingestion lock of the classifier, so that what is stored stays as it is until all are placed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from venn_admit.core.copies import HeldOutDocument, shared_split
from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits
from venn_admit.errors import Code, ConflictError
from venn_admit.files.records import ExemplarBatch
from venn_admit.store.exemplars import copies
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.copies import Moved, StoredCopy

_NAMED = 5
_NONE_NEW = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where some exemplars belong.

    splits: unless it turns out at the end that they are of copies. opposed: by row, one with the same vector and logits
    or of the same document that trains, or is held out if these train.
    """

    splits: list[Split]
    opposed: dict[int, StoredCopy]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What became of copies.

    copies: how many new exemplars are of documents that are copies of one before. splits: of the documents that moved.
    """

    copies: int
    splits: Mapping[str, Split]
    moved: Moved


class Placement:
    """Places the exemplars of one source, part after part."""

    def __init__(self, connection: Connection, classifier: Classifier, split: Split | None = None) -> None:
        """Begin. split: `train`, or the one of those that are held out without copies in another; None: it is drawn."""
        self._has_vectors = classifier.knn is not None
        if self._has_vectors:
            copies.complete_digests(connection, classifier)
        self._connection, self._classifier, self._trains = connection, classifier, split is Split.TRAIN
        self._draw = _drawn(classifier) if split is None else lambda keys: [split] * len(keys)
        self._stored: dict[str, Split | None] = {}  # by document
        self._suspects: set[str] = set()
        self._new: set[str] = set()
        self._first_new_id = _NONE_NEW

    def place(
        self, external_ids: Sequence[str], document_ids: Sequence[str | None], digests: Sequence[bytes]
    ) -> Placed:
        """Place some exemplars; digests: of vector and logits. Without vectors there are no copies."""
        keys = document_keys(external_ids, document_ids)
        if not self._has_vectors:
            return Placed(self._draw(keys), {})
        held_out, training = copies.stored_copies(self._connection, self._classifier, dict.fromkeys(digests))
        others = held_out if self._trains else training
        documents, beside = sorted({one for one in document_ids if one is not None}), {}
        if documents:
            beside = copies.of_documents(self._connection, self._classifier, documents, that_train=not self._trains)
        opposed = {row: beside[document] for row, document in enumerate(document_ids) if document in beside}
        opposed |= {row: others[digest] for row, digest in enumerate(digests) if digest in others}
        if self._trains:
            return Placed(self._draw(keys), opposed)
        first: dict[bytes, str] = {}
        for key, digest in zip(keys, digests, strict=True):
            before = first.setdefault(digest, key)
            other = held_out.get(digest)
            if before != key or (other is not None and other.document_key != key):
                self._suspects.add(key)
        self._find_documents(document_ids)
        splits = self._draw(keys)
        for row, document_id in enumerate(document_ids):
            if document_id is not None:
                splits[row] = self._stored[document_id] or splits[row]
        return Placed(splits, opposed)

    def note_new(self, keys: Iterable[str], ids: Sequence[int] = ()) -> None:
        """Note which exemplars are new: the documents, or points without one, and the ids if they were not stored."""
        self._new.update(key for key in keys if self._stored.get(key) is None)
        self._first_new_id = min(self._first_new_id, *ids) if len(ids) else self._first_new_id

    def finish(self) -> Gathered:
        """Move copies, once all are stored, to the split that they share."""
        if not self._suspects:
            return Gathered(0, {}, Moved(Counter(), Counter()))
        count = 0
        moving: dict[HeldOutDocument, Split] = {}
        for unit in copies.equal_documents(self._connection, self._classifier, self._suspects, new=self._new):
            split = shared_split(unit, self._draw)
            moving |= {document: split for document in unit if document.split is not split}
            new = [document.points for document in unit if document.is_new]
            count += sum(new) - (unit[0].points if len(new) == len(unit) else 0)
        moved = copies.move(self._connection, self._classifier, moving, first_new_id=self._first_new_id)
        return Gathered(count, {document.key: split for document, split in moving.items()}, moved)

    def _find_documents(self, document_ids: Sequence[str | None]) -> None:
        """Look up where documents are that were not asked for yet."""
        asked = {one for one in document_ids if one is not None} - self._stored.keys()
        if asked:
            found = copies.splits_of_documents(self._connection, self._classifier, sorted(asked))
            self._stored |= {document_id: found.get(document_id) for document_id in asked}


class TrainingCopies:
    """Exemplars of a source that would calibrate beside others that train, or train beside others that calibrate.

    The others are copies, or of the same document.
    """

    def __init__(self, source: object) -> None:
        self._source = source
        self._named: list[str] = []
        self._of_documents = False
        self.count = 0

    def add(self, batch: ExemplarBatch, placed: Placed, new_rows: Sequence[int]) -> None:
        """Count those of a batch that are new."""
        opposed = [row for row in new_rows if row in placed.opposed] if placed.opposed else []
        self.count += len(opposed)
        for row in opposed:
            other = placed.opposed[row]
            of_document = other.document_key == batch.document_ids[row]
            self._of_documents |= of_document
            if len(self._named) < _NAMED:
                what = "of the document" if of_document else "a copy"
                self._named.append(
                    f"row {batch.first_row + row}, id {batch.external_ids[row]!r} ({what} of {other.external_id!r} in "
                    f"split {other.split})"
                )

    def require_none(self, classifier: Classifier) -> None:
        """Raise ConflictError if there are any."""
        if not self.count:
            return
        rest = self.count - len(self._named)
        renamed = "; give documents that are others ids of their own" if self._of_documents else ""
        raise ConflictError(
            f"{self._source}: expected exemplars that either train or are held out, got {self.count:,} with the vector "
            f"and logits, or of the document, of one that does the other: {'; '.join(self._named)}"
            f"{f'; and {rest:,} more' if rest else ''}. The network does better on what it was trained on than on the "
            f"traffic{renamed}; leave them out, unless the traffic repeats training data as often",
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
