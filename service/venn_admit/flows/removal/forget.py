"""Forgetting exemplars: all that is stored of them goes, in every generation, and a tombstone stays.

One transaction removes some exemplars and repairs what it can at once: a snapshot that is in use or kept current and
counts one of them is followed by one that does not. Neighbour lists that name one are deleted in the same transaction,
and searched again by a job that is recorded with it, so that there is no moment at which a list names what is gone.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.errors import (
    BrokerError,
    Code,
    ConflictError,
    DatabaseError,
    InvalidInputError,
    NotFoundError,
    VennAdmitError,
)
from venn_admit.flows.jobs.submit import Send, Submission, submit_job
from venn_admit.flows.keys.keys import Asker, note
from venn_admit.flows.removal.batches import batches_of
from venn_admit.flows.removal.one_generation import Total, count_answers, forget_answers, remove_from
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrators, chains
from venn_admit.store.calibrations.calibration_points import vacuum_points
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars import classifiers, exemplars, forgotten, generations
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.data import Forgetting

MOST_IDS = 100_000
"""How many ids can be given at once."""

_SHOWN_IDS = 5
# Jobs of these kinds compute from, or for, single exemplars as they were when the job was recorded.
_DISTURBED = ("score", "fit", "certify")
# How long waiting for such jobs holds new ones back at most: less than these wait for a lock, ...
_HOLD_SECONDS = 10.0
# ... and then lets them come for this long; it also looks this often whether the jobs are over.
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Found:
    """What ids stand for: exemplars that are stored in any generation, and documents that are or were."""

    external_ids: list[str]
    document_ids: list[str]
    found: int
    already: int
    unknown: list[str]


# Removes some exemplars and documents in one transaction.
_Remove = Callable[[list[str], list[str]], None]


class _DryRun(Exception):  # noqa: N818 - no error: it rolls a transaction back
    """Nothing is to be stored."""


def forget(
    workspace: Workspace,
    name: str,
    external_ids: Collection[str] = (),
    document_ids: Collection[str] = (),
    *,
    missing_ok: bool = False,
    dry_run: bool = False,
    wait: bool = False,
    send: Send | None = None,
    by: Asker = Origin.COMMAND_LINE,
    on_stored: Callable[[Connection, Forgetting], object] = lambda *_: None,
) -> Forgetting:
    """Remove all that is stored of some exemplars, in every generation of a classifier.

    Doing it again changes nothing, so that a run that was interrupted is completed by another. What stays is listed in
    `docs/how-to/delete-data.md`.

    Args:
        document_ids: Ids of documents, all of whose exemplars are meant.
        missing_ok: Whether ids that nothing is stored under are left out rather than refused.
        wait: Whether to wait for jobs of the classifier that score, fit or certify a cascade. While they end, new ones
            are held back, but none for long: if jobs that take long overlap without a pause, it waits on.
        on_stored: Is called with what was removed in a transaction that begins once all of it is gone.

    Raises:
        InvalidInputError: No id is given, or too many.
        NotFoundError: There is no such classifier, or an id is unknown; nothing is removed then.
        ConflictError: A job of the classifier that scores, fits or certifies a cascade is running, unless that is
            awaited; or the classifier is being deleted.
    """
    asked = list(dict.fromkeys(external_ids)), list(dict.fromkeys(document_ids))
    _check_count(len(asked[0]) + len(asked[1]))
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        found = _find(connection, classifier, *asked)
    if found.unknown and not missing_ok:
        raise _unknown(classifier, found.unknown)
    total = Total()

    def remove(external_ids: list[str], document_ids: list[str]) -> None:
        with suppress(_DryRun), submit_job(workspace, send) as submission:
            _remove(
                submission,
                classifier,
                external_ids,
                document_ids,
                total,
                by=by,
                hold_seconds=_HOLD_SECONDS if wait else 0.0,
            )
            if dry_run:
                raise _DryRun
            if not total.transactions:
                note(submission.connection, "forget_exemplars", classifier.shared_name, by)
        total.count()

    with nullcontext() if dry_run else _ended_well(workspace, total):
        documents = found.document_ids
        if documents and not dry_run:
            # Nobody adds to them from now on, and who was about to has done so: look again for what they have.
            _in_turn(remove, [], documents, wait=wait)
            with consistent_view(workspace.engine) as connection:
                classifier = classifiers.usable(connection, classifier)
                found = _find(connection, classifier, *asked)
            documents = [one for one in found.document_ids if one not in set(documents)]
        with consistent_view(workspace.engine) as connection:
            batches = batches_of(connection, classifier, found.external_ids)
        for batch in batches:
            _in_turn(remove, batch, documents, wait=wait)
        total.rows["idempotent_request"] += _remove_answers(workspace.engine, classifier, found, dry_run=dry_run)
        with transaction(workspace.engine) as connection:
            jobs = () if dry_run else _searches(connection, generations.of_same(connection, classifier))
            result = _result(classifier, found, total, jobs, is_done=not dry_run)
            if not dry_run:
                on_stored(connection, result)
    if total.renewed and not dry_run:
        vacuum_points(workspace.engine)
    return result


def _in_turn(remove: _Remove, external_ids: list[str], document_ids: list[str], *, wait: bool) -> None:
    """Remove some exemplars; wait: again and again, until no job keeps them."""
    while True:
        try:
            return remove(external_ids, document_ids)
        except ConflictError as error:
            if not wait or error.code is not Code.JOBS_RUNNING:
                raise
        time.sleep(_PAUSE_SECONDS)


def _remove_answers(engine: Engine, classifier: Classifier, found: _Found, *, dry_run: bool) -> int:
    if dry_run:
        return count_answers(engine, [*found.external_ids, *found.document_ids])
    return forget_answers(engine, classifier)


def _check_count(count: int) -> None:
    if not 0 < count <= MOST_IDS:
        raise InvalidInputError(f"expected 1 to {MOST_IDS:,} ids of exemplars or documents, got {count:,}")


@contextmanager
def _ended_well(workspace: Workspace, total: Total) -> Iterator[None]:
    """Leave nothing in the cache of what was removed, however the block ends; say so if it did not remove all."""
    try:
        yield
    except BaseException as error:
        # Jobs are sent once their transaction is over.
        removed = total.exemplars if isinstance(error, BrokerError) else total.removed
        if isinstance(error, VennAdmitError) and removed:
            error.args = (f"{error}; {removed:,} exemplars were removed before: run it again to complete it",)
        with suppress(DatabaseError):  # the error is what matters, and the next run deletes them
            workspace.cache.delete_outdated(workspace.engine)
        raise
    workspace.cache.delete_outdated(workspace.engine)


def _find(connection: Connection, classifier: Classifier, external_ids: list[str], document_ids: list[str]) -> _Found:
    stored: dict[str, None] = {}
    known, already = set[tuple[bool, str]](), set[tuple[bool, str]]()
    for generation in generations.of_same(connection, classifier):
        hits = forgotten.asked_for(connection, generation, external_ids, document_ids)
        stored |= dict.fromkeys(hit.external_id for hit in hits)
        known |= {(False, hit.external_id) for hit in hits} | {(True, hit.document_id or "") for hit in hits}
        marks = forgotten.tombstones_of(connection, generation)
        digests = {marks.of_exemplar(one): (False, one) for one in external_ids}
        digests |= {marks.of_document(one): (True, one) for one in document_ids}
        already |= {digests[digest] for digest in forgotten.forgotten_since(connection, digests)}
    asked = [(False, one) for one in external_ids] + [(True, one) for one in document_ids]
    return _Found(
        external_ids=list(stored),
        document_ids=[one for one in document_ids if (True, one) in known | already],
        found=sum(one in known for one in asked),
        already=sum(one in already and one not in known for one in asked),
        unknown=[one for is_document, one in asked if (is_document, one) not in known | already],
    )


def _unknown(classifier: Classifier, unknown: list[str]) -> NotFoundError:
    more = f" and {len(unknown) - _SHOWN_IDS:,} more" if len(unknown) > _SHOWN_IDS else ""
    return NotFoundError(
        f"classifier {classifier.shared_name!r} has no exemplar or document "
        f"{', '.join(map(repr, unknown[:_SHOWN_IDS]))}{more}; nothing was removed: correct the ids",
        code=Code.NOTHING_TO_FORGET,
        classifier=classifier.shared_name,
        exemplar=unknown[0],
    )


def _remove(
    submission: Submission,
    classifier: Classifier,
    external_ids: list[str],
    document_ids: list[str],
    total: Total,
    *,
    by: Asker,
    hold_seconds: float,
) -> None:
    """Remove some exemplars from every generation, within a transaction; nothing is removed if it raises.

    hold_seconds: for how long jobs that are running may end, while no new one comes.
    """
    connection = submission.connection
    generations = exemplars.lock_ingestion_of_all(connection, classifier)
    until = time.monotonic() + hold_seconds
    while forgotten.running_jobs(connection, generations, _DISTURBED) and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
    for generation in generations:
        for calibrator in calibrators.of_classifier(connection, generation):
            calibrators.lock(connection, generation, calibrator.settings)
    # After those, as who calibrates takes them: certificates of a family that are made again count all before them.
    chains.lock(connection, classifier)
    forgotten.lock(connection, generations)
    generations = [classifiers.usable(connection, one) for one in generations]
    require_no_jobs(connection, generations, _DISTURBED)
    forgotten.make_salt(connection, generations)
    for generation in generations:
        marks = forgotten.tombstones_of(connection, generation)
        digests = [marks.of_exemplar(one) for one in external_ids] + [marks.of_document(one) for one in document_ids]
        forgotten.add_tombstones(connection, digests)
    for generation in generations:
        hits = forgotten.asked_for(connection, generation, external_ids, [])
        if hits:
            remove_from(submission, generation, hits, total, by)
    forgotten.forget_errors(connection, generations, [*external_ids, *document_ids])


def _searches(connection: Connection, generations: Sequence[Classifier]) -> tuple[int, ...]:
    """The jobs that bring neighbours up to date and are not done."""
    return tuple(one.id for one in forgotten.running_jobs(connection, generations, ("approximate",)))


def require_no_jobs(connection: Connection, generations: Sequence[Classifier], kinds: Sequence[str]) -> None:
    """Raise ConflictError if a job of these kinds is running for one of these generations."""
    running = forgotten.running_jobs(connection, generations, kinds)
    if running:
        named = ", ".join(f"{one.id} ({one.kind})" for one in running)
        raise ConflictError(
            f"jobs of {generations[0].shared_name!r} are running: {named}; wait until they are done, or cancel them",
            code=Code.JOBS_RUNNING,
            classifier=generations[0].shared_name,
            job=running[0].id,
        )


def _result(classifier: Classifier, found: _Found, total: Total, jobs: tuple[int, ...], *, is_done: bool) -> Forgetting:
    return Forgetting(
        classifier=classifier.shared_name,
        ids=found.found,
        exemplars=total.exemplars,
        forgotten_before=found.already,
        unknown=len(found.unknown),
        rows={table: rows for table, rows in sorted(total.rows.items()) if rows},
        calibrations_renewed=total.renewed,
        recalibrations_due=sum(total.recalibrations.values()),
        jobs=jobs,
        is_done=is_done,
    )
