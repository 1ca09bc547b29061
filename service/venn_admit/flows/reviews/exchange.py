"""Points of the queue as files for people and for tools for labelling, and the labels that come back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import Engine

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.names import check_stored_id
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.reviews.formats import ReviewFormat, check_reviews_output, read_labels_of_reviewers, write_points
from venn_admit.files.reviews.given import GivenLabels
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.reviews.claims import check_reviewer, claim
from venn_admit.flows.reviews.labels import give
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.labels import unknown_exemplar
from venn_admit.store.reviews import reviews
from venn_admit_client.records.reviews import Claims, Reviewed

_MOST_SHOWN = 200


def export_points(
    engine: Engine,
    name: str,
    reviewer: str,
    path: Path,
    wanted: ReviewFormat,
    *,
    count: int,
    lease_seconds: float,
) -> Claims:
    """Claim points and write all that the reviewer holds to a file, for people or a tool to label.

    Raises:
        InvalidInputError: As in `claim`, or the file cannot be written.
    """
    check_reviews_output(path, wanted)
    found = claim(engine, name, reviewer, count=count, lease_seconds=lease_seconds)
    write_points(path, wanted, found.points, reviewer)
    return found


def import_labels(
    engine: Engine,
    name: str,
    path: Path,
    wanted: ReviewFormat,
    *,
    reviewer: str,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> list[Reviewed]:
    """Record the labels of a file, those of a point in the order in which they were given; again, it is a no-op.

    Args:
        reviewer: Who gave the labels of which the file does not say that.

    Raises:
        InvalidInputError: The file is invalid, or a label is of no class; nothing is recorded then.
        NotFoundError: An id is stored for no generation; nothing is recorded then.
    """
    given = read_labels_of_reviewers(path, wanted)
    with reviews.recording(engine, find(engine, name)):
        return record(engine, name, str(path), given, reviewer=reviewer, memory_budget=memory_budget)


def record(
    engine: Engine,
    name: str,
    place: str,
    found: Sequence[GivenLabels],
    *,
    reviewer: str,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> list[Reviewed]:
    """Record labels in their order, as `import_labels` does. place: what messages call their source."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        new: list[tuple[str, dict[str, int]]] = []
        for who, labels in _newest(found, reviewer):
            check_reviewer(who)
            numbers = _numbers(place, classifier.class_names, labels)
            known = reviews.newest_of_reviewer(connection, classifier, who, list(labels))
            unknown = next((one for one in labels if one not in known), None)
            if unknown is not None:
                raise unknown_exemplar(classifier.name, unknown, where=place)
            new.append((who, {one: number for one, number in numbers.items() if known[one] != number}))
    return [give(engine, name, who, labels, memory_budget=memory_budget) for who, labels in new if labels]


def _newest(found: Sequence[GivenLabels], reviewer: str) -> list[tuple[str, dict[str, str]]]:
    """Return who gave which labels, the last of each reviewer for each point; reviewer: of those without a name."""
    given: list[tuple[str, dict[str, str]]] = []
    seen: set[tuple[str, str]] = set()
    for one in reversed(found):
        who = one.reviewer or reviewer
        labels = {external_id: label for external_id, label in one.labels.items() if (who, external_id) not in seen}
        seen.update((who, external_id) for external_id in labels)
        given.append((who, labels))
    return given[::-1]


def _numbers(place: str, class_names: Sequence[str], labels: Mapping[str, str]) -> dict[str, int]:
    """The classes of labels. Files show names to choose from, so a name counts, also if it is the number of another."""
    of_name = {name: number for number, name in enumerate(class_names)}
    classes = ClassNumbers(len(class_names), class_names)
    found: dict[str, int] = {}
    for external_id, label in labels.items():
        try:
            check_stored_id(external_id)
            found[external_id] = of_name[label] if label in of_name else classes.of(label)
        except ValueError as error:
            expected, got = error.args
            of = ascii(external_id[:_MOST_SHOWN])
            raise InvalidInputError(f"{place}: label of {of}: expected {expected}, got {got[:_MOST_SHOWN]}") from None
    return found
