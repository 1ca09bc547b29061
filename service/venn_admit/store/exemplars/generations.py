"""The generations of one classifier: adding one, and which of them the name stands for."""

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from venn_admit.core.names import NAME_LENGTH_LIMIT
from venn_admit.errors import Code, ConflictError, InvalidInputError
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import (
    Classifier,
    by_id,
    by_name,
    classifier_of,
    name_taken,
    with_partitions,
)


def add_generation(
    connection: Connection, classifier: Classifier, *, dimension: int | None, extractor: str | None
) -> Classifier:
    """Store a further generation of a classifier, which is locked; ConflictError if another has its name or address.

    dimension: None if it has logits only.
    """
    number = 1 + max(one.generation for one in of_same(connection, classifier))
    require_free(connection, classifier, classifier.shared_name, number)
    parameters = {
        "name": f"{classifier.shared_name}@{number}",
        "first_id": classifier.first_id,
        "generation": number,
        "dimension": dimension,
        "extractor": extractor,
    }
    new_id: int = execute(connection, "classifiers.add_generation", **parameters).scalar_one()
    return with_partitions(connection, new_id, dimension)


def rename(connection: Connection, classifier: Classifier, name: str) -> None:
    """Rename a classifier, which is locked, with its generations.

    Raises ConflictError, after which the transaction cannot continue, if the name or an address of it is taken.
    """
    known = of_same(connection, classifier)
    if len(known) > 1:
        require_free(connection, classifier, name, known[-1].generation)
    try:
        execute(connection, "classifiers.rename_classifier", first_id=classifier.first_id, name=name)
    except IntegrityError as error:
        raise name_taken(name) from error


def require_free(connection: Connection, classifier: Classifier, name: str, count: int) -> None:
    """Raise ConflictError unless a classifier can have this name and `count` generations.

    Raises InvalidInputError if the name is too long for that.
    """
    addresses = [f"{name}@{number}" for number in range(1, count + 1)]
    if len(addresses[-1]) > NAME_LENGTH_LIMIT:
        raise InvalidInputError(
            f"name: expected at most {NAME_LENGTH_LIMIT} characters of {addresses[-1]!r}, which the generation is "
            f"called, got {len(addresses[-1])}; rename the classifier first"
        )
    parameters = {"names": addresses, "first_id": classifier.first_id}
    taken = execute(connection, "classifiers.names_of_others", **parameters).scalars().first()
    if taken is not None:
        raise ConflictError(
            f"a classifier named {taken!r} exists already, which a generation of {name!r} would be called; rename it",
            code=Code.NAME_TAKEN,
            classifier=taken,
        )


def make_current(connection: Connection, before: Classifier, after: Classifier) -> None:
    """Have the name of a classifier, which is locked, stand for another generation."""
    execute(connection, "classifiers.take_name", classifier_id=before.id)
    execute(connection, "classifiers.give_name", classifier_id=after.id, name=before.name)


def having(connection: Connection, name: str, classifier_id: int) -> Classifier | None:
    """Return the classifier of an id if it is a generation of the classifier of that name; otherwise None.

    What has a number is found by the classifier's name also when that stands for another generation than its own.
    Raises NotFoundError if there is no classifier of that name.
    """
    found = by_id(connection, classifier_id)
    return found if found.first_id == by_name(connection, name).first_id else None


def of_same(connection: Connection, classifier: Classifier) -> list[Classifier]:
    """Return all generations of the same classifier, in the order of their numbers."""
    rows = execute(connection, "classifiers.generations", first_id=classifier.first_id)
    return [classifier_of(row) for row in rows]
