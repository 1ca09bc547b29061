"""Exemplars that are forgotten: removing all that is stored of them, and what is left of them.

What is left is a tombstone, by which an id that comes back is noticed; when a training exemplar trained; which
snapshots count a calibration point; and what a label shows the standing certificates that it counts for.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Connection, Delete, Row, any_, bindparam, column, table
from sqlalchemy import delete as delete_from

from venn_admit.core.types import IntArray
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

# The tables that refer to exemplars, in the order in which their rows can be deleted, and that of exemplars itself.
_TABLES = (
    "admit_evidence",
    "abers_evidence",
    "decision",
    "calibration_point",
    "standing_evidence",
    "audit_draw",
    "approximation",
    "neighbours",
    "job_row",
    "support_change",
    "review_point",
    "review_label",
    "label_event",
    "exemplar_vector",
    "exemplar",
)
# Those whose rows are not simply deleted by the exemplar that they name.
_BY_OTHER_KEYS = ("admit_evidence", "abers_evidence", "label_event", "exemplar_vector", "exemplar")
# No id of an exemplar holds NUL, so that none has the tombstone of a document.
_DOCUMENT = b"document\x00"
INSTEAD = "(forgotten)"


@dataclass(frozen=True, slots=True)
class LostPoints:
    """How many points of a snapshot were forgotten, in each split."""

    mc: int
    vp: int

    @property
    def total(self) -> int:
        return self.mc + self.vp


class Tombstones:
    """The digests of ids of one generation of a classifier. are_none: whether there can be no tombstone."""

    def __init__(self, salt: bytes | None) -> None:
        """salt: None if nothing was ever forgotten, so that no digest is that of a tombstone."""
        self._salt = salt or b""
        self.are_none = salt is None

    def of_exemplar(self, external_id: str) -> bytes:
        """Return the tombstone of an exemplar, 32 bytes."""
        return hashlib.sha256(self._salt + external_id.encode()).digest()

    def of_document(self, document_id: str) -> bytes:
        """Return the tombstone of a document, 32 bytes."""
        return hashlib.sha256(self._salt + _DOCUMENT + document_id.encode()).digest()


def make_salt(connection: Connection, generations: Sequence[Classifier]) -> None:
    """See that all generations of a classifier have the same salt, before its first tombstone."""
    execute(connection, "forgotten.make_salt", classifier_ids=_ids(generations))


def tombstones_of(connection: Connection, classifier: Classifier) -> Tombstones:
    """Return what tells the tombstones of a classifier's exemplars."""
    salt = execute(connection, "forgotten.salt", classifier_id=classifier.id).scalar_one()
    return Tombstones(None if salt is None else bytes(salt))


def forgotten_since(connection: Connection, digests: Iterable[bytes]) -> dict[bytes, datetime]:
    """Return those of the digests that are tombstones, and since when."""
    rows = execute(connection, "forgotten.tombstones", digests=list(digests))
    return {bytes(row.digest): row.created_at for row in rows}


def add_tombstones(connection: Connection, digests: Iterable[bytes]) -> None:
    """Record tombstones, of which some may be there already."""
    execute(connection, "forgotten.add_tombstones", digests=sorted(digests))


def asked_for(
    connection: Connection, classifier: Classifier, external_ids: Sequence[str], document_ids: Sequence[str]
) -> Sequence[Row[Any]]:
    """Return a generation's exemplars with one of these ids, or of one of these documents, in order of keys."""
    parameters = {
        "classifier_id": classifier.id,
        "external_ids": list(external_ids),
        "document_ids": list(document_ids),
    }
    return execute(connection, "forgotten.asked_for", **parameters).all()


def lock(connection: Connection, generations: Sequence[Classifier]) -> None:
    """Keep others from recording jobs or results of these generations until this transaction ends."""
    execute(connection, "forgotten.lock_classifiers", classifier_ids=_ids(generations)).all()


def running_jobs(connection: Connection, generations: Sequence[Classifier], kinds: Sequence[str]) -> Sequence[Row[Any]]:
    """Return id and kind of the jobs of these generations that are not over, of some kinds."""
    parameters = {"classifier_ids": _ids(generations), "kinds": list(kinds)}
    return execute(connection, "forgotten.running_jobs", **parameters).all()


def training_now(connection: Connection, exemplar_ids: IntArray) -> IntArray:
    """Return those of some exemplars that train."""
    return execute_ids(connection, "forgotten.training_now", exemplar_ids=exemplar_ids)


def lists_of_training(connection: Connection, classifier: Classifier, external_ids: Sequence[str]) -> dict[str, int]:
    """Return those of some exemplars of a generation that train, and how many neighbour lists name each."""
    parameters = {"classifier_id": classifier.id, "external_ids": list(external_ids)}
    rows = execute(connection, "forgotten.lists_of_training", **parameters)
    return {row.external_id: row.lists for row in rows}


def lists_naming(connection: Connection, exemplar_ids: IntArray) -> IntArray:
    """Return the other points whose neighbour lists name one of some exemplars."""
    return execute_ids(connection, "forgotten.lists_naming", exemplar_ids=exemplar_ids)


def add_trainings(connection: Connection, exemplar_ids: IntArray, next_version: int) -> None:
    """Record when these exemplars trained, those that ever did; next_version: the first without them."""
    execute(connection, "forgotten.add_trainings", exemplar_ids=exemplar_ids, next_version=next_version)


def add_points(connection: Connection, exemplar_ids: IntArray) -> set[int]:
    """Record which snapshots count points of these exemplars, and give these a new revision.

    Return the calibrators of those that are current. The caller holds the locks of the calibrators. Nobody reads such a
    snapshot as it was cached.
    """
    parameters = {"exemplar_ids": exemplar_ids}
    execute(connection, "forgotten.add_points", **parameters)
    rows = execute(connection, "forgotten.renew_snapshots", **parameters)
    return {row.calibrator_id for row in rows if row.is_current}


def keep_evidence(connection: Connection, exemplar_ids: IntArray) -> None:
    """Keep what the labels of these exemplars show standing certificates, and alarms that they may have raised."""
    for name in ("add_evidence", "keep_alarms"):
        execute(connection, f"forgotten.{name}", exemplar_ids=exemplar_ids)


def delete_lists(connection: Connection, exemplar_ids: IntArray) -> Counter[str]:
    """Delete the neighbour lists of some points, which name what is forgotten, and what was computed from them.

    Return the rows by table.
    """
    parameters = {"exemplar_ids": exemplar_ids}
    tables = ("approximation", "neighbours")
    return Counter({name: connection.execute(_rows_of(name), parameters).rowcount for name in tables})


def delete(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> Counter[str]:
    """Delete all that is stored of some exemplars, which have tombstones; return the rows by table."""
    parameters = {"classifier_id": classifier.id, "exemplar_ids": exemplar_ids}
    rows: Counter[str] = Counter()
    for name in _TABLES:
        if name in _BY_OTHER_KEYS:
            done = execute(connection, f"forgotten.delete_{name}", **parameters)
        else:
            done = connection.execute(_rows_of(name), parameters)
        rows[name] = done.scalar_one() if name == "label_event" else done.rowcount
    execute(connection, "forgotten.delete_point_change", **parameters)  # after what the others wrote there
    return rows


@cache
def _rows_of(name: str) -> Delete:
    """The statement that deletes the rows of a table that name one of `exemplar_ids`; it is the same for all tables."""
    one = table(name, column("exemplar_id", BigInteger()), schema=SCHEMA)
    return delete_from(one).where(one.c.exemplar_id == any_(bindparam("exemplar_ids", type_=ARRAY(BigInteger()))))


def forget_errors(connection: Connection, generations: Sequence[Classifier], ids: Sequence[str]) -> int:
    """Take ids out of the messages of errors that jobs of these generations have kept; return how many named any."""
    changed = 0
    for row in execute(connection, "forgotten.errors", classifier_ids=_ids(generations)).all():
        error = row.error
        for one in ids:
            error = error.replace(repr(one), INSTEAD)
        if error != row.error:
            execute(connection, f"forgotten.set_error_of_{row.origin}", id=row.id, ordinal=row.ordinal, error=error)
            changed += 1
    return changed


def trained_then(
    connection: Connection, classifier: Classifier, support_version: int, *, after: datetime | None = None
) -> int:
    """Return how many training exemplars of a version were forgotten; after: since then only."""
    parameters = {"classifier_id": classifier.id, "support_version": support_version, "after": after}
    return int(execute(connection, "forgotten.trained_then", **parameters).scalar_one())


def lost_points(connection: Connection, calibration_id: int, *, after: datetime | None = None) -> LostPoints:
    """Return how many points of a snapshot were forgotten; after: since then only."""
    row: Row[Any] = execute(connection, "forgotten.lost_points", calibration_id=calibration_id, after=after).one()
    return LostPoints(row.mc, row.vp)


def used_revisions(connection: Connection, revisions: Collection[str]) -> frozenset[str]:
    """Return those of some revisions, each a UUID, that may be cached."""
    return frozenset(map(str, execute(connection, "forgotten.used_revisions", revisions=list(revisions)).scalars()))


def _ids(generations: Sequence[Classifier]) -> list[int]:
    return [one.id for one in generations]
