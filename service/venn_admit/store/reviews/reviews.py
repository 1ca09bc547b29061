"""The queue for reviewers: it is filled, claims are taken, renewed and ended, and labels are kept."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.store.database.engine import unlimited
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier


def pushing(engine: Engine, classifier: Classifier) -> AbstractContextManager[None]:
    """Keep others from sending points of any generation of a classifier to a tool; no transaction is open meanwhile."""
    return _alone(engine, classifier, "reviews.begin_push", "reviews.end_push")


def recording(engine: Engine, classifier: Classifier) -> AbstractContextManager[None]:
    """Keep others from recording labels of a file or a tool for any generation of a classifier, as `pushing` does.

    Requests over HTTP do not wait here, since they would hold the connections that the first one needs.
    """
    return _alone(engine, classifier, "reviews.begin_recording", "reviews.end_recording")


@contextmanager
def _alone(engine: Engine, classifier: Classifier, begin: str, end: str) -> Iterator[None]:
    with unlimited(engine) as connection:
        execute(connection, begin, first_id=classifier.first_id)
        try:
            yield
        finally:
            execute(connection, end, first_id=classifier.first_id)


def fill(connection: Connection, classifier: Classifier, *, unless_within: float) -> bool:
    """Put in rejected points without a label, and take out what was decided on again since.

    unless_within: seconds; the result is False, and nothing is done, if that was done as recently.
    """
    parameters = {"classifier_id": classifier.id}
    begun = execute(connection, "reviews.begin_fill", seconds=unless_within, **parameters).one_or_none()
    if begun is None:
        return False
    execute(connection, "reviews.take_out", **parameters)
    execute(connection, "reviews.fill", **parameters)
    execute(connection, "reviews.arrange", **parameters)
    return True


def renew(
    connection: Connection,
    classifier: Classifier,
    reviewer: str,
    *,
    lease_seconds: float,
    external_ids: Sequence[str] | None = None,
) -> Sequence[bool]:
    """Extend claims of a reviewer that still hold, all or those on some points.

    Returns:
        Whether it is for a second opinion, for each that does.
    """
    ids = _lock_held(connection, classifier, reviewer, external_ids)
    return execute(connection, "reviews.renew", exemplar_ids=ids, lease_seconds=lease_seconds).scalars().all()


def claim(
    connection: Connection, classifier: Classifier, reviewer: str, *, count: int, lease_seconds: float, again: bool
) -> int:
    """Lease at most `count` points that nobody holds; return how many.

    again: whether points that one other reviewer has labelled are meant, rather than those without a label.
    """
    parameters = {"count": count, "lease_seconds": lease_seconds, "again": again}
    return len(execute(connection, "reviews.claim", **_of(classifier, reviewer), **parameters).all())


def held(connection: Connection, classifier: Classifier, reviewer: str) -> Sequence[Row[Any]]:
    """Return the points that a reviewer holds, in the order of the queue."""
    return execute(connection, "reviews.held", **_of(classifier, reviewer)).all()


def admit_sets(connection: Connection, decision_ids: Sequence[int]) -> dict[int, str]:
    """Return the ADMIT sets of those of some decisions that have one, a bit for each class."""
    rows = execute(connection, "reviews.admit_sets", decision_ids=list(decision_ids))
    return {row.decision_id: row.admit_set for row in rows}


def precedents(connection: Connection, exemplar_ids: Sequence[int]) -> dict[int, list[Row[Any]]]:
    """Return, of each point, the nearest training exemplar of each class that its K nearest have."""
    found: dict[int, list[Row[Any]]] = {}
    for row in execute(connection, "reviews.precedents", exemplar_ids=list(exemplar_ids)):
        found.setdefault(row.exemplar_id, []).append(row)
    return found


def release(
    connection: Connection,
    classifier: Classifier,
    reviewer: str,
    external_ids: Sequence[str] | None = None,
    *,
    to_others: bool = False,
) -> int:
    """Give back claims of a reviewer, all or those on some points; return how many.

    to_others: whether others get the points first.
    """
    ids = _lock_held(connection, classifier, reviewer, external_ids)
    return execute(connection, "reviews.release", exemplar_ids=ids, to_others=to_others).rowcount


def _lock_held(
    connection: Connection, classifier: Classifier, reviewer: str, external_ids: Sequence[str] | None
) -> list[int]:
    """Keep others from changing the points that a reviewer holds, all or some of them; return their keys."""
    rows = execute(connection, "reviews.lock_held", **_of(classifier, reviewer), external_ids=external_ids)
    return list(rows.scalars())


def offer_left(connection: Connection, classifier: Classifier, reviewer: str, *, count: int, again: bool) -> None:
    """Let a reviewer claim at most `count` of the points that this reviewer left to others; again: as in `claim`."""
    execute(connection, "reviews.offer_left", **_of(classifier, reviewer), count=count, again=again)


def lock_points(connection: Connection, classifier: Classifier, external_ids: Sequence[str]) -> None:
    """Keep others from changing the points of exemplars, in every generation, until the transaction ends."""
    execute(connection, "reviews.lock_points", first_id=classifier.first_id, external_ids=list(external_ids))


def add_labels(
    connection: Connection, classifier: Classifier, reviewer: str, external_ids: Sequence[str], *, resolves: bool
) -> None:
    """Keep the labels that a reviewer gave, which are in the ledger by now, and end the claims on their points."""
    parameters = {"external_ids": list(external_ids)}
    added = {"first_id": classifier.first_id, "reviewer": reviewer, "resolves": resolves}
    execute(connection, "reviews.add_labels", **parameters, **added)
    execute(connection, "reviews.end_claims", classifier_id=classifier.id, **parameters)


def labelled(
    connection: Connection, classifier: Classifier, reviewer: str, external_ids: Sequence[str]
) -> Sequence[Row[Any]]:
    """Return what is known of those exemplars that a reviewer has labelled, what was predicted among it, by id.

    Any generation may have them.
    """
    parameters = {**_of(classifier, reviewer), "first_id": classifier.first_id, "external_ids": list(external_ids)}
    return execute(connection, "reviews.labelled", **parameters).all()


def drawn_of_documents(
    connection: Connection, classifier: Classifier, external_ids: Sequence[str]
) -> list[list[Row[Any]]]:
    """Return the drawn points of each document that exemplars are of, with their labels."""
    parameters = {"classifier_id": classifier.id, "external_ids": list(external_ids)}
    found: dict[str, list[Row[Any]]] = {}
    for row in execute(connection, "reviews.drawn_of_documents", **parameters):
        found.setdefault(row.document_id, []).append(row)
    return list(found.values())


def newest_of_reviewer(
    connection: Connection, classifier: Classifier, reviewer: str, external_ids: Sequence[str]
) -> dict[str, int | None]:
    """Return the newest label that a reviewer gave of each of some exemplars that any generation has.

    It is None if there is none, or if the exemplar's was corrected, or taken back, since reviewers gave theirs.
    """
    parameters = {**_of(classifier, reviewer), "first_id": classifier.first_id, "external_ids": list(external_ids)}
    rows = execute(connection, "reviews.newest_of_reviewer", **parameters)
    return {row.external_id: row.label for row in rows}


def disagreements(
    connection: Connection, classifier_id: int, external_ids: Sequence[str] | None = None, *, limit: int
) -> dict[str, list[Row[Any]]]:
    """Return the labels of exemplars about which reviewers disagree, the exemplar that was labelled last first."""
    parameters = {"classifier_id": classifier_id, "external_ids": external_ids, "row_limit": limit}
    found: dict[str, list[Row[Any]]] = {}
    for row in execute(connection, "reviews.disagreements", **parameters):
        found.setdefault(row.external_id, []).append(row)
    return found


def standing(connection: Connection, classifier: Classifier) -> Row[Any]:
    """Return how many points wait, are claimed, and are overdue."""
    return execute(connection, "reviews.standing", classifier_id=classifier.id).one()


def reviewers(connection: Connection, classifier: Classifier) -> Sequence[Row[Any]]:
    """Return how many points each reviewer has labelled and holds."""
    return execute(connection, "reviews.reviewers", classifier_id=classifier.id).all()


def _of(classifier: Classifier, reviewer: str) -> dict[str, Any]:
    return {"classifier_id": classifier.id, "reviewer": reviewer}
