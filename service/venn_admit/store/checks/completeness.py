"""What is missing or contradicts itself in a database, told by counting on the server; nothing is written.

A restore may end early, leave out a table, or be made by somebody who may not create everything; rows may be deleted by
hand. Each function compares what the rows of one table say with those of another.
"""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import ColumnClause, Connection, column, func, select, table

from venn_admit.core.budget import block_rows
from venn_admit.core.content import content_digests
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.classifiers import Classifier

# A row is copied from the wire, to an array, and to the bytes that are digested.
_COPIES = 4


@dataclass(frozen=True, slots=True)
class Counted:
    """What one check found: rows that were checked, those that are wrong, and the key of the first; None without."""

    checked: int
    wrong: int
    first_wrong: int | None


@dataclass(frozen=True, slots=True)
class CountedVectors:
    """The exemplars and vectors of a classifier.

    missing: exemplars without a vector. misplaced: with one on the side of training, or the other, where their split
    does not belong. unowned: vectors of no exemplar.
    """

    exemplars: int
    vectors: int
    missing: Counted
    misplaced: Counted
    unowned: Counted


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A snapshot: its number of points by itself, what is stored of them, and whether the rest is there."""

    calibration_id: int
    mc_count: int
    vp_count: int
    mc_held: int
    vp_held: int
    is_complete: bool

    @property
    def is_whole(self) -> bool:
        return self.is_complete and (self.mc_count, self.vp_count) == (self.mc_held, self.vp_held)


def unusable_relations(connection: Connection) -> list[str]:
    """Return indexes that were not built to the end, and constraints that were never checked against the rows."""
    return list(execute(connection, "checks.unusable_relations").scalars())


def missing_partitions(connection: Connection) -> list[tuple[str, str]]:
    """Return the partitions of vectors that are missing, each with the name of its classifier."""
    return [(row.name, row.partition) for row in execute(connection, "checks.missing_partitions")]


def exhausted_sequences(connection: Connection) -> list[str]:
    """Return the columns whose sequence stands below a key that is there, so that the next row would be refused."""
    return [
        f"{row.relation}.{row.attribute}"
        for row in execute(connection, "checks.identities")
        if _is_behind(connection, row.relation, row.attribute)
    ]


def _is_behind(connection: Connection, name: str, key: str) -> bool:
    one: ColumnClause[int] = column(key)
    last = func.pg_sequence_last_value(func.pg_get_serial_sequence(f"{SCHEMA}.{name}", key))
    newest, last_given = connection.execute(
        select(func.max(one), last).select_from(table(name, one, schema=SCHEMA))
    ).one()
    return newest is not None and (last_given is None or last_given < newest)


def count_vectors(connection: Connection, classifier: Classifier) -> CountedVectors:
    """Compare the exemplars of a classifier with their vectors."""
    row = execute(connection, "checks.vectors", classifier_id=classifier.id).one()
    return CountedVectors(
        exemplars=row.exemplars,
        vectors=row.vectors,
        missing=Counted(row.exemplars, row.missing, row.first_missing),
        misplaced=Counted(row.vectors, row.misplaced, row.first_misplaced),
        unowned=Counted(row.vectors, row.unowned, row.first_unowned),
    )


def count_contents(connection: Connection, classifier: Classifier, *, memory_budget: int) -> Counted:
    """Compute the digests of each exemplar that has its vector again, and compare them with those that are stored."""
    width = (classifier.knn.dimension if classifier.knn else 0) + classifier.class_count
    limit = min(8192, block_rows(memory_budget, _COPIES * width * np.dtype(np.float32).itemsize))
    checked, wrong, first_wrong, after = 0, 0, None, 0
    while True:
        parameters = _of(classifier) | {"after": after, "has_vectors": classifier.knn is not None, "row_limit": limit}
        rows = execute(connection, "checks.contents", **parameters).all()
        if not rows:
            return Counted(checked, wrong, first_wrong)
        ids = np.array([row.id for row in rows], dtype=np.int64)
        vectors = None if classifier.knn is None else exemplars.vectors(connection, classifier, ids)
        logits = exemplars.network_logits(connection, classifier, ids)
        digests = content_digests(vectors, logits, [row.document_id for row in rows])
        of_points = content_digests(vectors, logits, [None] * len(rows))
        other = [
            row.id
            for row, digest, of_point in zip(rows, digests, of_points, strict=True)
            if bytes(row.content_digest) != digest or row.point_digest not in (None, of_point)
        ]
        checked, wrong, after = checked + len(rows), wrong + len(other), rows[-1].id
        first_wrong = first_wrong or next(iter(other), None)


def count(connection: Connection, classifier: Classifier, what: str) -> Counted:
    """Count the rows of a classifier that a check finds wrong: labels, lists, list_members, decisions or jobs."""
    parameters = _of(classifier)
    if what == "list_members":
        assert classifier.knn is not None, "a classifier with logits only has no neighbours"
        parameters["neighbour_count"] = classifier.knn.neighbour_count
    row = execute(connection, f"checks.{what}", **parameters).one()
    return Counted(row.checked, row.wrong, row.first_wrong)


def snapshots(connection: Connection, classifier: Classifier) -> list[SnapshotState]:
    """Return the state of each snapshot of a classifier that is kept."""
    rows = execute(connection, "checks.snapshots", classifier_id=classifier.id)
    return [
        SnapshotState(row.id, row.mc_count, row.vp_count, row.mc_held, row.vp_held, row.is_complete) for row in rows
    ]


def _of(classifier: Classifier) -> dict[str, int | bool]:
    return {"classifier_id": classifier.id}
