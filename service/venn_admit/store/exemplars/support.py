"""Versions of the training exemplars: how they changed, and which version a result was computed from.

A version is a number from the sequence of exemplar ids, so that after an ingestion of training exemplars it is the id
of the newest; other changes are kept in `support_change`. Exemplars of split train with an id above the version wait:
they arrived while a job that computes from those before them was under way, and train from the next version on.
"""

from datetime import timedelta

from sqlalchemy import Connection

from venn_admit.errors import Code, ConflictError, NotReadyError
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.statements import execute, statement
from venn_admit.store.exemplars.classifiers import Classifier

# How long training exemplars wait for jobs at most.
_MOST_WAIT = timedelta(minutes=10)
# Autovacuum's own thresholds.
_ANALYZED_ROWS, _ANALYZED_SHARE = 50, 0.1


class SupportChangedError(ConflictError):
    """The training exemplars changed while something was computed from them; compute it again."""


def too_few(classifier: Classifier, count: int) -> NotReadyError:
    """Return the error for fewer than K training exemplars, ready to be raised."""
    return NotReadyError(
        f"classifier {classifier.name!r} has {count} training exemplars, but its KNN needs at least "
        f"K = {classifier.neighbour_count}: ingest more",
        code=Code.TOO_FEW_TRAINING_EXEMPLARS,
        classifier=classifier.name,
    )


def next_version(connection: Connection) -> int:
    """Return a version above all versions and all exemplar ids before it."""
    return int(execute(connection, "support.next_version").scalar_one())


def renew(connection: Connection, classifier: Classifier, version: int) -> None:
    """Give the training exemplars, which changed in this transaction, a new version."""
    execute(connection, "support.renew", classifier_id=classifier.id, version=version)


def join_waiting(connection: Connection, classifier_id: int | None, *, wait: bool = False) -> list[int]:
    """Let training exemplars that wait train from now on, and return the ids of the classifiers that have such.

    They wait on while a job that computes from them is under way, ten minutes at most. No lock of ingestion is needed:
    what it has not committed is invisible here, and has higher ids than all that is visible. A job that is being
    recorded, under `lock`, is seen once the lock is free, because the transaction is READ COMMITTED.

    classifier_id: None for all. wait: whether to wait for the lock, for as long as it takes; otherwise a classifier
    that somebody else has locked is left to the next one to look.
    """
    having = list(execute(connection, "support.having_waiting", classifier_id=classifier_id).scalars())
    if not having:
        return []
    if wait:
        execute(connection, "support.await_locks")
    lock_them = statement("support.lock_waiting" if wait else "support.lock_waiting_if_free")
    locked = list(connection.execute(lock_them, {"classifier_ids": having}).scalars())
    return list(execute(connection, "support.join_waiting", classifier_ids=locked, most_wait=_MOST_WAIT).scalars())


def release(connection: Connection, job_id: int) -> None:
    """Let no training exemplars wait any more for that for which a job that is done brought neighbours up to date."""
    execute(connection, "support.release", job_id=job_id)


def waiting(connection: Connection, classifier: Classifier | None) -> int:
    """Return how many training exemplars wait, of one classifier or of all."""
    asked = {"classifier_id": None if classifier is None else classifier.id}
    return int(execute(connection, "support.waiting", **asked).scalar_one())


def size(connection: Connection, classifier: Classifier, *, at_most: int | None = None) -> int:
    """Return how many training exemplars there are, without those that wait; no more than `at_most` are counted."""
    return int(execute(connection, "support.size", classifier_id=classifier.id, at_most=at_most).scalar_one())


def analyze(connection: Connection, classifier: Classifier, added: int) -> None:
    """Count the vectors for the planner, if those that were added in this transaction change the picture.

    Autovacuum does the same later, but an embedded server seldom runs that long. Without statistics, the exact search
    for one point reads the vectors by their key, which takes twice as long. Skipped if somebody does it already. A
    tenth of the usual sample counts well enough.
    """
    partition = f"{SCHEMA}.exemplar_vector_{classifier.id}_support"
    known = execute(connection, "support.estimated_rows", partition=partition).scalar_one()
    if added > _ANALYZED_ROWS + _ANALYZED_SHARE * max(known, 0):
        execute(connection, "support.sample_a_tenth")
        connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {partition} (classifier_id, support, exemplar_id)")


def grew_after(connection: Connection, classifier: Classifier, version: int) -> bool:
    """Return whether any training exemplars arrived after a version, without those that wait."""
    parameters = {"classifier_id": classifier.id, "version": version, "support_version": classifier.support_version}
    return bool(execute(connection, "support.grew", **parameters).scalar_one())


def require_version(connection: Connection, classifier: Classifier) -> None:
    """Raise SupportChangedError if the training exemplars changed since `classifier` was read."""
    _check_version(classifier, execute(connection, "support.version", classifier_id=classifier.id).scalar_one())


def lock_for_results(connection: Connection, classifier: Classifier) -> None:
    """Do what `require_version` does, and keep other results and changes out until this transaction ends."""
    _check_version(classifier, execute(connection, "support.lock", classifier_id=classifier.id).scalar_one())


def lock(connection: Connection, classifier: Classifier) -> None:
    """Keep other results, changes and arrivals out until this transaction ends, whatever changed before."""
    execute(connection, "support.lock", classifier_id=classifier.id)


def _check_version(classifier: Classifier, version: int) -> None:
    if version != classifier.support_version:
        raise SupportChangedError(
            f"training exemplars of {classifier.name!r} changed meanwhile: expected version "
            f"{classifier.support_version}, got {version}; compute again"
        )


def complete_neighbours(connection: Connection, job_id: int) -> None:
    """If a job that brings all neighbour lists up to date has done so, record what they are complete to."""
    execute(connection, "support.complete_neighbours", job_id=job_id)
