"""Claims on points of the queue: taken, renewed and given back."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.core.names import NAME_LENGTH_LIMIT, check_stored_id, is_title, refused_as
from venn_admit.core.reasons import Reason
from venn_admit.errors import InvalidInputError
from venn_admit.flows.reviews.possible import possible_classes
from venn_admit.layer.contributions import without_prediction
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.reviews import reviews
from venn_admit_client.records.reviews import Claims, Precedent, ReviewerCount, ReviewPoint, ReviewQueue
from venn_admit_client.reviewer_interface import LEASE_SECONDS

MOST_CLAIMS = 1000
LEAST_LEASE, MOST_LEASE = 10.0, 30 * 86_400.0
MOST_DISAGREEMENTS = 1000
# How long the queue stays as it was filled, unless it runs empty.
_FILLED_FOR = 60.0
_AUDITED = "The prediction was drawn for an audit."


def claim(
    engine: Engine,
    name: str,
    reviewer: str,
    *,
    count: int = 1,
    lease_seconds: float = LEASE_SECONDS,
    again: bool = False,
    on_stored: Callable[[Connection, Claims], object] = lambda *_: None,
) -> Claims:
    """Return the points that a reviewer holds, whose claims are renewed, and claim others until `count` are as wanted.

    No two reviewers hold a point at a time. A claim ends with a label, when it is given back, and with its lease.

    Args:
        again: Whether points that one other reviewer has labelled are wanted, for a second opinion.

    Raises:
        InvalidInputError: The name of the reviewer, the number or the lease is out of range.
    """
    check_reviewer(reviewer)
    _check_lease(lease_seconds)
    if not 1 <= count <= MOST_CLAIMS:
        raise InvalidInputError(f"count: expected 1 to {MOST_CLAIMS:,} points, got {count}")
    is_filled = _fill(engine, name, _FILLED_FOR)
    with transaction(engine) as connection:
        classifier = classifiers.usable(connection, classifiers.by_name(connection, name))
        lacking = count - reviews.renew(connection, classifier, reviewer, lease_seconds=lease_seconds).count(again)
        asked = partial(reviews.claim, connection, classifier, reviewer, lease_seconds=lease_seconds, again=again)
        if lacking > 0:
            lacking -= asked(count=lacking)
        if lacking > 0 and not is_filled and not again:
            # If another claim has just filled it, the points are there too.
            reviews.fill(connection, classifier, unless_within=1.0)
            lacking -= asked(count=lacking)
        if lacking > 0:
            reviews.offer_left(connection, classifier, reviewer, count=lacking, again=again)
            asked(count=lacking)
        found = _claims(connection, classifier, reviewer)
        on_stored(connection, found)
    return found


def _fill(engine: Engine, name: str, unless_within: float) -> bool:
    with transaction(engine) as connection:
        classifier = classifiers.usable(connection, classifiers.by_name(connection, name))
        return reviews.fill(connection, classifier, unless_within=unless_within)


def holding(engine: Engine, name: str, reviewer: str) -> Claims:
    """Return the points that a reviewer holds; their claims are not renewed."""
    check_reviewer(reviewer)
    with consistent_view(engine) as connection:
        return _claims(connection, classifiers.by_name(connection, name), reviewer)


def renew(
    engine: Engine,
    name: str,
    reviewer: str,
    external_ids: Sequence[str] | None = None,
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> int:
    """Extend claims that still hold; return how many do. Others may have taken those that do not.

    Raises:
        InvalidInputError: The name of the reviewer or the lease is out of range, or an id is none.
    """
    check_reviewer(reviewer)
    check_ids(external_ids or ())
    _check_lease(lease_seconds)
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        return len(
            reviews.renew(connection, classifier, reviewer, lease_seconds=lease_seconds, external_ids=external_ids)
        )


def release(
    engine: Engine, name: str, reviewer: str, external_ids: Sequence[str] | None = None, *, to_others: bool = False
) -> int:
    """Give claims back, so that others get the points; return how many.

    Args:
        to_others: Whether the reviewer gets them again only after all else.

    Raises:
        InvalidInputError: The name of the reviewer is invalid, or an id is none.
    """
    check_reviewer(reviewer)
    check_ids(external_ids or ())
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        return reviews.release(connection, classifier, reviewer, external_ids, to_others=to_others)


def queue(engine: Engine, name: str) -> ReviewQueue:
    """Return how the queue stands; it is not filled for that."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        counts = reviews.standing(connection, classifier)
        disputed = reviews.disagreements(connection, classifier.id, limit=MOST_DISAGREEMENTS)
        return ReviewQueue(
            **counts._mapping,
            disagreements=len(disputed),
            reviewers=tuple(ReviewerCount(**row._mapping) for row in reviews.reviewers(connection, classifier)),
        )


def check_reviewer(reviewer: str) -> None:
    """Raise InvalidInputError unless this can be the name of a reviewer."""
    if not is_title(reviewer, NAME_LENGTH_LIMIT):
        expected = f"1 to {NAME_LENGTH_LIMIT} printable characters, without spaces around them"
        raise InvalidInputError(f"reviewer: expected {expected}, got {reviewer[:200]!a}")


def check_ids(external_ids: Iterable[str]) -> None:
    """Raise InvalidInputError unless points may have these ids."""
    for external_id in external_ids:
        with refused_as("ids"):
            check_stored_id(external_id)


def _check_lease(seconds: float) -> None:
    if not LEAST_LEASE <= seconds <= MOST_LEASE:
        raise InvalidInputError(f"lease: expected {LEAST_LEASE:g} to {MOST_LEASE:,.0f} seconds, got {seconds:g}")


def _claims(connection: Connection, classifier: Classifier, reviewer: str) -> Claims:
    rows = reviews.held(connection, classifier, reviewer)
    near = reviews.precedents(connection, [row.exemplar_id for row in rows])
    names = classifier.class_names
    points = tuple(
        ReviewPoint(
            id=row.external_id,
            document=row.document_id,
            attributes=without_prediction(row.attributes),
            reason=row.reason,
            why=_AUDITED if row.reason is None else Reason(row.reason).meaning,
            due=row.due,
            possible=possible,
            precedents=_of_several_classes(near.get(row.exemplar_id, []), names),
            lease_until=row.lease_until,
        )
        for row, possible in zip(rows, possible_classes(connection, classifier, rows), strict=True)
    )
    return Claims(reviewer, points, reviews.standing(connection, classifier).waiting)


def _of_several_classes(near: Sequence[Row[Any]], names: Sequence[str]) -> tuple[Precedent, ...]:
    """The nearest of each class; none if there is one class, which would be the prediction."""
    if len(near) < 2:
        return ()
    return tuple(Precedent(row.external_id, names[row.label], without_prediction(row.attributes)) for row in near)
