"""The classifiers that are calibrated, and their generations: a row each, as nothing of two of them may mix.

The name of a classifier stands for its current generation, and NAME@NUMBER for any of them.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row

from venn_admit.errors import Code, ConflictError, InvalidInputError, NotFoundError
from venn_admit.store.database.statements import execute

# The most names that a message lists.
_MOST_NAMED = 20
_ADDRESS = re.compile(r"(?P<shared_name>.+)@(?P<generation>[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class KnnSize:
    """D, the length of an exemplar vector, and K, the neighbours that the KNN looks at."""

    dimension: int
    neighbour_count: int


@dataclass(frozen=True, slots=True)
class Classifier:
    """A generation of a stored classifier. knn: None if it has logits only.

    name: the classifier's own if this is the current generation, otherwise its address. The shares are those of
    held-out labelled points. support_version: of its training exemplars; neighbours_support_version: the version that
    all stored neighbour lists are complete to at least. extractor: the version of what its vectors come from; None if
    it was not stated. first_id: of the first generation, the same for all. address: a name that stays with the
    generation, whichever is current. deleting_since: when its deletion began; None if it is not being deleted.
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
    extractor: str | None
    generation: int
    is_current: bool
    first_id: int
    address: str
    deleting_since: datetime | None = None

    @property
    def shared_name(self) -> str:
        """The name that stands for the current generation."""
        return self.name if self.is_current else self.name.removesuffix(f"@{self.generation}")

    @property
    def class_count(self) -> int:
        return len(self.class_names)

    @property
    def growth(self) -> Fraction:
        """How many times as many points as mc those of mc and vp together are, as the shares say."""
        return (1 - Fraction(self.knn_share)) / Fraction(self.mc_share)

    @property
    def dimension(self) -> int:
        """D; InvalidInputError if it has logits only."""
        return require_vectors(self, "this").dimension

    @property
    def neighbour_count(self) -> int:
        """K; InvalidInputError if it has logits only."""
        return require_vectors(self, "this").neighbour_count

    @property
    def neighbours(self) -> int | None:
        """K; None if it has logits only."""
        return None if self.knn is None else self.knn.neighbour_count


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


_COLUMNS = tuple(field.name for field in fields(Classifier) if field.name not in ("knn", "class_names"))


def classifier_of(row: Row[Any]) -> Classifier:
    """Return the generation of a row that has the columns of `classifier_row_v1`."""
    knn = None if row.dimension is None else KnnSize(row.dimension, row.neighbour_count)
    columns = {name: row._mapping[name] for name in _COLUMNS}
    return Classifier(class_names=tuple(row.class_names), knn=knn, **columns)


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
    extractor: str | None = None,
) -> Classifier:
    """Store a new classifier; ConflictError if the name is taken.

    dimension, neighbour_count: both None if it has logits only, for then there are no vectors to make partitions for.
    extractor: None if it is not stated.
    """
    classifier_id = execute(
        connection,
        "classifiers.create_classifier",
        name=name,
        class_names=list(class_names),
        dimension=dimension,
        neighbour_count=neighbour_count,
        knn_share=knn_share,
        mc_share=mc_share,
        seed=seed,
        extractor=extractor,
    ).scalar_one_or_none()
    if classifier_id is None:
        raise name_taken(name)
    return with_partitions(connection, classifier_id, dimension)


def with_partitions(connection: Connection, classifier_id: int, dimension: int | None) -> Classifier:
    """Return a new generation, for whose vectors, if it has any, there are partitions now."""
    if dimension is not None:
        execute(connection, "classifiers.create_vector_partitions", classifier_id=classifier_id, dimension=dimension)
    return by_id(connection, classifier_id)


def name_taken(name: str) -> ConflictError:
    """Return the error that a name is taken."""
    return ConflictError(
        f"a classifier named {name!r} exists already; choose another name", code=Code.NAME_TAKEN, classifier=name
    )


def lock(connection: Connection, classifier: Classifier) -> None:
    """Wait until nobody else changes the generations of a classifier; they are locked to the end of the transaction."""
    execute(connection, "classifiers.lock_classifier", first_id=classifier.first_id).all()


def set_extractor(connection: Connection, classifier: Classifier, extractor: str) -> None:
    """State which extractor the vectors of a generation come from."""
    execute(connection, "classifiers.set_extractor", classifier_id=classifier.id, extractor=extractor)


def has_results(connection: Connection, classifier: Classifier) -> bool:
    """Return whether a generation was fitted, or a job of it is under way, so that what is stored has its K."""
    return bool(execute(connection, "classifiers.has_results", classifier_id=classifier.id).scalar_one())


def set_neighbour_count(connection: Connection, classifier: Classifier, neighbour_count: int) -> None:
    """Change K of a generation without results."""
    parameters = {"classifier_id": classifier.id, "neighbour_count": neighbour_count}
    execute(connection, "classifiers.set_neighbour_count", **parameters)


def addressed(name: str) -> dict[str, Any]:
    """Return what statements look a name or an address up by.

    >>> addressed("reviews@2")
    {'name': 'reviews@2', 'shared_name': 'reviews', 'generation': 2}
    >>> addressed("reviews")
    {'name': 'reviews', 'shared_name': None, 'generation': None}
    """
    parts = _ADDRESS.fullmatch(name)
    if parts is None:
        return {"name": name, "shared_name": None, "generation": None}
    return {"name": name, "shared_name": parts["shared_name"], "generation": int(parts["generation"])}


def require_usable(classifier: Classifier) -> None:
    """Raise ConflictError if a classifier is being deleted."""
    if classifier.deleting_since is not None:
        raise ConflictError(
            f"classifier {classifier.name!r} is being deleted (begun at {classifier.deleting_since:%Y-%m-%d %H:%M %Z}) "
            "and can no longer be used; if that was interrupted, delete it again to complete it",
            code=Code.BEING_DELETED,
            classifier=classifier.name,
        )


def by_name(connection: Connection, name: str, *, even_if_deleting: bool = False) -> Classifier:
    """Return the classifier of that name; NotFoundError, which names the known ones, if there is none.

    name: of a classifier, for its current generation; or an address, for that one. Raises ConflictError for one that is
    being deleted, unless that is wanted.
    """
    row = None
    if name.isprintable():  # any other name was never stored, and may not be text to the database
        row = execute(connection, "classifiers.classifier_by_name", **addressed(name)).one_or_none()
    if row is None:
        raise _unknown(connection, name)
    found = classifier_of(row)
    if not even_if_deleting:
        require_usable(found)
    return found


def _unknown(connection: Connection, name: str) -> NotFoundError:
    names = execute(connection, "classifiers.classifier_names").scalars().all()
    known = ", ".join(names[:_MOST_NAMED]) if names else "none yet; create one"
    if len(names) > _MOST_NAMED:
        known += f" and {len(names) - _MOST_NAMED:,} more"
    return NotFoundError(
        f"no classifier is named {name!r}; known: {known}",
        code=Code.UNKNOWN_CLASSIFIER if names else Code.NO_CLASSIFIER,
        classifier=name,
    )


def left_of(connection: Connection, classifier: Classifier, ids: Collection[int]) -> Classifier:
    """Return the first of these generations of a classifier that was not deleted, as it is now.

    If the first generation was deleted, they are known by another one. Raises NotFoundError if none is left.
    """
    found = next((one for one in every(connection) if one.id in ids), None)
    if found is None:
        raise _unknown(connection, classifier.name)
    return found


def every(
    connection: Connection, *, shared_name: str | None = None, limit: int | None = None, after: str | None = None
) -> list[Classifier]:
    """Return all classifiers and all their generations, by name.

    shared_name: only the generations of the classifier of this name. limit: the most of them; None for all. after: only
    those whose names come after this one.
    """
    parameters = {"shared_name": shared_name, "row_limit": limit, "after": after}
    return [classifier_of(row) for row in execute(connection, "classifiers.classifiers", **parameters)]


def usable(connection: Connection, classifier: Classifier) -> Classifier:
    """Return a generation as it is now; ConflictError if it is being deleted, NotFoundError if it was."""
    found = left_of(connection, classifier, {classifier.id})
    require_usable(found)
    return found


def by_id(connection: Connection, classifier_id: int) -> Classifier:
    """Return a generation as it is now; NotFoundError if it was deleted."""
    row = execute(connection, "classifiers.classifier_by_id", classifier_id=classifier_id).one_or_none()
    if row is None:
        raise NotFoundError("the classifier was deleted meanwhile")
    return classifier_of(row)
