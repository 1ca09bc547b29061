"""Whether a database that was restored, or one that runs, holds all that its own rows say it should; read only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Engine

from venn_admit.store.checks import completeness
from venn_admit.store.checks.completeness import Counted
from venn_admit.store.database import schema
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


class Damage(StrEnum):
    """What can be wrong with a database, as a name that stays the same; `meaning` is a sentence for people."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "Damage":
        """Make a member, which equals its value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    SCHEMA_REVISION = "schema-revision", "The schema is not at the revision that this program needs."
    SCHEMA_DIFFERS = "schema-differs", "A table, column, key or index is missing, or there besides."
    RELATION_UNUSABLE = "relation-unusable", "An index was not built to the end, or a constraint was never checked."
    PARTITION_MISSING = "partition-missing", "The partition for vectors of a classifier is missing."
    SEQUENCE_BEHIND = "sequence-behind", "A sequence stands below a key that is there; the next row would be refused."
    VECTOR_MISSING = "vector-missing", "An exemplar has no vector."
    VECTOR_MISPLACED = "vector-misplaced", "The vector of a training exemplar is among the others, or the other way."
    VECTOR_UNOWNED = "vector-unowned", "A vector belongs to no exemplar."
    CONTENT_DIFFERS = "content-differs", "Vector, logits or document of an exemplar do not have its digest."
    LABEL_DIFFERS = "label-differs", "The label of an exemplar is not that of its newest label event."
    NEIGHBOURS_MISSING = "neighbours-missing", "An approximated exemplar has no neighbour list."
    NEIGHBOURS_INCOMPLETE = "neighbours-incomplete", "A neighbour list is not of K exemplars, the nearest first."
    SNAPSHOT_INCOMPLETE = "snapshot-incomplete", "A snapshot lacks points, or what belongs to it by its method."
    EVIDENCE_MISSING = "evidence-missing", "A decision has no evidence of its method."
    JOB_INCOMPLETE = "job-incomplete", "A job lacks rows or chunks, or a finished one decisions."


@dataclass(frozen=True, slots=True)
class Found:
    """A kind of damage. classifier: None if it is of no classifier. count: how often; first: the key or name of one."""

    damage: Damage
    classifier: str | None
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class Check:
    """What was compared: of which classifier, None if of none, how many rows, and what was wrong with them."""

    what: str
    classifier: str | None
    rows: int
    found: tuple[Found, ...]


def check_database(workspace: Workspace, *, on_check: Callable[[str], None] = lambda _: None) -> list[Check]:
    """Return what was checked, in order, with what is wrong; what it reads is of one moment.

    Rows are counted on the server, and contents pass through in blocks, so that memory does not grow with the database.
    Nothing is written, and a standby will do. If the schema is not that of this program, nothing else is checked.

    Args:
        on_check: Called with what is checked next.
    """
    on_check("schema")
    checks = [_schema(workspace.engine)]
    if checks[0].found:
        return checks
    with consistent_view(workspace.engine) as connection:
        checks.append(_keys(connection))
        # One that is being deleted lacks parts.
        for classifier in (one for one in classifiers.every(connection) if one.deleting_since is None):
            checks += _classifier(connection, classifier, on_check, workspace.memory_budget)
    return checks


def _schema(engine: Engine) -> Check:
    current, head = schema.current_revision(engine), schema.head_revision()
    if current != head:
        wrong = Found(Damage.SCHEMA_REVISION, None, 1, f"{current or 'none'} instead of {head}")
        return Check("schema", None, 1, (wrong,))
    from venn_admit.store.database.tables import differences  # which brings Alembic

    return Check("schema", None, 1, _named(Damage.SCHEMA_DIFFERS, None, differences(engine)))


def _keys(connection: Connection) -> Check:
    unusable = completeness.unusable_relations(connection)
    behind = completeness.exhausted_sequences(connection)
    partitions = completeness.missing_partitions(connection)
    found = [
        *_named(Damage.RELATION_UNUSABLE, None, unusable),
        *_named(Damage.SEQUENCE_BEHIND, None, behind),
        *(Found(Damage.PARTITION_MISSING, classifier, 1, partition) for classifier, partition in partitions),
    ]
    return Check("indexes, constraints, sequences, partitions", None, 1, tuple(found))


def _classifier(
    connection: Connection, classifier: Classifier, on_check: Callable[[str], None], memory_budget: int
) -> Iterator[Check]:
    name = classifier.name
    if classifier.knn is not None:
        on_check(f"vectors of {name}")
        vectors = completeness.count_vectors(connection, classifier)
        found = [
            *_counted(Damage.VECTOR_MISSING, name, vectors.missing),
            *_counted(Damage.VECTOR_MISPLACED, name, vectors.misplaced),
            *_counted(Damage.VECTOR_UNOWNED, name, vectors.unowned),
        ]
        yield Check("vectors", name, vectors.vectors, tuple(found))
    on_check(f"contents of {name}")
    contents = completeness.count_contents(connection, classifier, memory_budget=memory_budget)
    yield _check("contents by their digests", name, contents, Damage.CONTENT_DIFFERS)
    counts = {"labels": Damage.LABEL_DIFFERS, "decisions": Damage.EVIDENCE_MISSING, "jobs": Damage.JOB_INCOMPLETE}
    if classifier.knn is not None:
        counts |= {"lists": Damage.NEIGHBOURS_MISSING, "list_members": Damage.NEIGHBOURS_INCOMPLETE}
    for what, damage in counts.items():
        on_check(f"{_WORDS[what]} of {name}")
        yield _check(_WORDS[what], name, completeness.count(connection, classifier, what), damage)
    on_check(f"snapshots of {name}")
    snapshots = completeness.snapshots(connection, classifier)
    wrong = [str(one.calibration_id) for one in snapshots if not one.is_whole]
    yield Check("snapshots", name, len(snapshots), _named(Damage.SNAPSHOT_INCOMPLETE, name, wrong))


_WORDS = {
    "labels": "labels by the ledger",
    "decisions": "decisions",
    "jobs": "jobs",
    "lists": "approximations by their neighbour lists",
    "list_members": "neighbour lists",
}


def _check(what: str, classifier: str, counted: Counted, damage: Damage) -> Check:
    return Check(what, classifier, counted.checked, _counted(damage, classifier, counted))


def _counted(damage: Damage, classifier: str, counted: Counted) -> tuple[Found, ...]:
    return (Found(damage, classifier, counted.wrong, str(counted.first_wrong)),) if counted.wrong else ()


def _named(damage: Damage, classifier: str | None, names: list[str]) -> tuple[Found, ...]:
    return (Found(damage, classifier, len(names), names[0]),) if names else ()
