"""Deleting a classifier, or a generation of it that is not current, with all that belongs to it.

The first transaction marks what is to be deleted, so that it cannot be used any more, and each of the following ones
removes a limited number of rows. Another call after an interruption goes on from there.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, Engine

from venn_admit.errors import Code, ConflictError, DatabaseError
from venn_admit.flows.keys.keys import Asker, asked_by
from venn_admit.flows.removal import batches
from venn_admit.flows.removal.forget import require_no_jobs
from venn_admit.flows.shell import OnRows
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrators
from venn_admit.store.cascades import cascades
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars import classifiers, deletion, exemplars, forgotten, generations
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.data import Deletion

_KINDS = ("approximate", "score", "fit", "certify")
_TRIES = 50
_PAUSE_SECONDS = 0.2


def delete(
    workspace: Workspace,
    name: str,
    *,
    dry_run: bool = False,
    by: Asker = Origin.COMMAND_LINE,
    on_rows: OnRows = lambda _: None,
    on_stored: Callable[[Connection, Deletion], object] = lambda *_: None,
) -> Deletion:
    """Delete a classifier with all its generations, or one generation that is not current.

    Args:
        name: The classifier's name, for all its generations; or NAME@NUMBER, for that one.
        on_rows: Called with the number of exemplars, or of rows that refer to none, of each transaction.
        on_stored: Is called with what was deleted in the last transaction.

    Raises:
        ConflictError: The generation is current, it is a stage of a cascade, or jobs are running.
        DatabaseError: Others use the table of vectors without a pause; what is left is deleted by the next run.
    """
    with consistent_view(workspace.engine) as connection:
        found = classifiers.by_name(connection, name, even_if_deleting=True)
        doomed = _doomed(connection, found, name)
        every = found.is_current
        called = found.shared_name if every else found.address
        if dry_run:
            cascades.require_none_of(connection, doomed)
            require_no_jobs(connection, doomed, _KINDS)
            rows = sum((deletion.counts(connection, one) for one in doomed), Counter[str]())
            return _deleted(called, doomed, rows, is_done=False)
    _begin(workspace.engine, doomed, called, every=every, by=by)
    tally = _Tally(workspace.engine, on_rows)
    # The first generation goes last: the others refer to it.
    for one in sorted(doomed, key=lambda one: one.generation, reverse=True):
        tally.empty(one)
    with transaction(workspace.engine) as connection:
        left = [one for one in reversed(doomed) if not _delete_row(connection, one, tally.rows)]
        if left:
            raise DatabaseError(f"others still refer to {left[0].address!r}: delete it again to complete this")
        result = _deleted(called, doomed, tally.rows, is_done=True, longest_seconds=tally.longest_seconds)
        on_stored(connection, result)
    workspace.cache.delete_outdated(workspace.engine)
    return result


def _doomed(connection: Connection, found: Classifier, name: str) -> list[Classifier]:
    """The generations that a name stands for, in the order of their numbers."""
    if found.is_current and found.name == name:
        return generations.of_same(connection, found)
    if found.is_current:
        raise ConflictError(
            f"generation {found.generation} of {found.shared_name!r} is the current one, which cannot be deleted "
            "alone: switch to another first, or delete the classifier by its name",
            code=Code.GENERATION_IN_USE,
            classifier=found.shared_name,
        )
    return [found]


def _begin(engine: Engine, doomed: Sequence[Classifier], called: str, *, every: bool, by: Asker) -> None:
    """Mark what is to be deleted, once nobody works on it, unless that was done before."""
    with transaction(engine) as connection:
        locked = exemplars.lock_ingestion_of_all(connection, doomed[0])
        if every and [one.id for one in locked] != [one.id for one in doomed]:
            raise ConflictError(
                f"a generation of {called!r} was added or deleted meanwhile; delete it again", classifier=called
            )
        for one in doomed:
            for calibrator in calibrators.of_classifier(connection, one):
                calibrators.lock(connection, one, calibrator.settings)
        forgotten.lock(connection, doomed)
        now = [classifiers.left_of(connection, one, {one.id}) for one in doomed]
        if all(one.deleting_since is not None for one in now):
            return
        cascades.require_none_of(connection, doomed)
        if not every and now[0].is_current:  # somebody has switched to it meanwhile
            _doomed(connection, now[0], called)
        require_no_jobs(connection, doomed, _KINDS)
        deletion.begin(connection, doomed, every=every, asked=asked_by(by))


class _Tally:
    """Deletes all that refers to a generation, some in each transaction, and counts it by table.

    longest_seconds: how long the longest transaction took.
    """

    def __init__(self, engine: Engine, on_rows: OnRows) -> None:
        self._engine = engine
        self._on_rows = on_rows
        self.rows = Counter[str]()
        self.longest_seconds = 0.0

    def empty(self, one: Classifier) -> None:
        """Delete all that refers to a generation."""
        with transaction(self._engine) as connection:
            deletion.cancel_jobs(connection, one)
        if one.knn is not None:
            _drop_vectors(self._engine, one)
        self._delete_exemplars(one)
        for table, first in deletion.TABLES.items():
            self._delete_table(one, table, first)

    def _delete_exemplars(self, one: Classifier) -> None:
        last, count = deletion.FIRST_EXEMPLAR, batches.BATCH
        while count == batches.BATCH:
            with transaction(self._engine) as connection:
                # A call that labels or removes jobs began before the deletion did, or waits until this batch is gone.
                exemplars.lock_ingestion(connection, one)
                began = time.monotonic()
                ids, last = deletion.some_exemplars(connection, one, last, batches.BATCH)
                self.rows.update(forgotten.delete(connection, one, ids))
            count = len(ids)
            if one.knn is not None:
                self.rows["exemplar_vector"] += count
            self._count(count, began)

    def _delete_table(self, one: Classifier, table: str, last: deletion.Key) -> None:
        count = batches.OTHER_ROWS
        while count == batches.OTHER_ROWS:
            began = time.monotonic()
            with transaction(self._engine) as connection:
                count, last = deletion.delete_some(connection, one, table, last, batches.OTHER_ROWS)
            self.rows[table] += count
            self._count(count, began)

    def _count(self, rows: int, began: float) -> None:
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
        if rows:
            self._on_rows(rows)


def _drop_vectors(engine: Engine, one: Classifier) -> None:
    for _ in range(_TRIES):
        with transaction(engine) as connection:
            if deletion.drop_vectors(connection, one):
                return
        time.sleep(_PAUSE_SECONDS)
    raise DatabaseError(
        f"the table of vectors was in use all the while, so that those of {one.address!r} could not be deleted; "
        "nothing else can be done with it: delete it again when less is going on"
    )


def _delete_row(connection: Connection, one: Classifier, rows: Counter[str]) -> bool:
    forgotten.lock(connection, [one])
    deleted = deletion.delete_row(connection, one)
    rows["classifier"] += deleted
    return deleted


def _deleted(
    called: str, doomed: Sequence[Classifier], rows: Counter[str], *, is_done: bool, longest_seconds: float = 0.0
) -> Deletion:
    return Deletion(
        classifier=called,
        is_done=is_done,
        generations=tuple(one.address for one in doomed),
        rows={table: count for table, count in sorted(rows.items()) if count},
        longest_seconds=longest_seconds,
    )
