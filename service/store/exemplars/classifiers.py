"""The classifiers that are calibrated."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from venn_admit.service.errors import Code, ConflictError, InvalidInputError, NotFoundError
from venn_admit.service.store.database.statements import statement


@dataclass(frozen=True, slots=True)
class KnnSize:
    """D, the length of an exemplar vector, and K, the neighbours that the KNN looks at."""

    dimension: int
    neighbour_count: int


@dataclass(frozen=True, slots=True)
class Classifier:
    """A stored classifier. knn: None if it has logits only; the shares are those of held-out labelled points.

    support_version: of its training exemplars; neighbours_support_version: the version that all stored neighbour lists
    are complete to at least.
    """

    id: int
    name: str
    class_names: tuple[str, ...]
    knn: KnnSize | None
    knn_share: Decimal
    mc_share: Decimal
    seed: int
    support_revision: UUID
    support_version: int
    neighbours_support_version: int
    created_at: datetime

    @property
    def class_count(self) -> int:
        return len(self.class_names)

    @property
    def dimension(self) -> int:
        """D; InvalidInputError if it has logits only."""
        return require_vectors(self, "this").dimension

    @property
    def neighbour_count(self) -> int:
        """K; InvalidInputError if it has logits only."""
        return require_vectors(self, "this").neighbour_count


def require_vectors(classifier: Classifier, what: str) -> KnnSize:
    """Return D and K of a classifier, or raise InvalidInputError if it has logits only; what: what needs vectors."""
    if classifier.knn is None:
        raise InvalidInputError(
            f"{what} needs vectors, and classifier {classifier.name!r} has logits only, which suffice for plain "
            "decisions by the method venn-abers with the network's score; use a classifier with vectors",
            code=Code.NO_VECTORS,
            classifier=classifier.name,
        )
    return classifier.knn


def _classifier(row: Row[Any]) -> Classifier:
    columns = dict(row._mapping)
    dimension, neighbour_count = columns.pop("dimension"), columns.pop("neighbour_count")
    knn = None if dimension is None else KnnSize(dimension, neighbour_count)
    return Classifier(**{**columns, "class_names": tuple(row.class_names), "knn": knn})


def create(
    connection: Connection,
    *,
    name: str,
    class_names: tuple[str, ...],
    dimension: int | None,
    neighbour_count: int | None,
    knn_share: Decimal,
    mc_share: Decimal,
    seed: int,
) -> Classifier:
    """Store a new classifier; ConflictError if the name is taken.

    dimension, neighbour_count: both None if it has logits only, for then there are no vectors to make partitions for.
    """
    classifier_id = connection.execute(
        statement("classifiers.create_classifier"),
        {
            "name": name,
            "class_names": list(class_names),
            "dimension": dimension,
            "neighbour_count": neighbour_count,
            "knn_share": knn_share,
            "mc_share": mc_share,
            "seed": seed,
        },
    ).scalar_one_or_none()
    if classifier_id is None:
        raise _name_taken(name)
    if dimension is not None:
        parameters = {"classifier_id": classifier_id, "dimension": dimension}
        connection.execute(statement("classifiers.create_vector_partitions"), parameters)
    return by_id(connection, classifier_id)


def _name_taken(name: str) -> ConflictError:
    return ConflictError(
        f"a classifier named {name!r} exists already; choose another name", code=Code.NAME_TAKEN, classifier=name
    )


def lock(connection: Connection, classifier: Classifier) -> None:
    """Wait until nobody else changes the row of a classifier; the lock is held to the end of the transaction."""
    connection.execute(statement("classifiers.lock_classifier"), {"classifier_id": classifier.id})


def rename(connection: Connection, classifier: Classifier, name: str) -> None:
    """Rename a classifier; ConflictError if the name is taken, after which the transaction cannot continue."""
    try:
        connection.execute(statement("classifiers.rename_classifier"), {"classifier_id": classifier.id, "name": name})
    except IntegrityError as error:
        raise _name_taken(name) from error


def by_name(connection: Connection, name: str) -> Classifier:
    """Return the classifier of that name; NotFoundError, which names the known ones, if there is none."""
    row = None
    if name.isprintable():  # any other name was never stored, and may not be text to the database
        row = connection.execute(statement("classifiers.classifier_by_name"), {"name": name}).one_or_none()
    if row is None:
        names = connection.execute(statement("classifiers.classifier_names")).scalars().all()
        known = ", ".join(names) if names else "none yet; create one"
        raise NotFoundError(
            f"no classifier is named {name!r}; known: {known}",
            code=Code.UNKNOWN_CLASSIFIER if names else Code.NO_CLASSIFIER,
            classifier=name,
        )
    return _classifier(row)


def every(connection: Connection) -> list[Classifier]:
    """Return all classifiers, by name."""
    return [_classifier(row) for row in connection.execute(statement("classifiers.classifiers"))]


def by_id(connection: Connection, classifier_id: int) -> Classifier:
    row = connection.execute(statement("classifiers.classifier_by_id"), {"classifier_id": classifier_id}).one()
    return _classifier(row)
