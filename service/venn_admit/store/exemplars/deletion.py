"""Deleting a generation of a classifier with all that belongs to it, some rows at a time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Double,
    FromClause,
    Select,
    TableClause,
    Text,
    any_,
    bindparam,
    column,
    delete,
    func,
    literal,
    literal_column,
    select,
    table,
    tuple_,
    union_all,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import TypeEngine

from venn_admit.core.types import IntArray
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

Key = Mapping[str, object]
"""The columns of a key, by their names."""

FIRST_EXEMPLAR: Key = {"split": "", "id": 0}
"""A key before that of any exemplar."""

TABLES: Mapping[str, Key] = {
    "recalibration_request": {"calibrator_id": 0},
    "snapshot_view": {"calibrator_id": 0},
    "monitor_state": {"monitor_id": 0, "documents": 0},
    "monitor_reading": {"monitor_id": 0, "lamp": "", "number": 0},
    "monitor_alarm": {"id": 0},
    "monitor": {"id": 0},
    "cascade_request": {"job_id": 0},
    "job_chunk": {"job_id": 0, "ordinal": 0},
    "job": {"id": 0},
    "venn_abers_step": {"calibrator_id": 0, "cell": 0, "score": 0.0, "valid_from": 0},
    "forgotten_point": {"id": 0},
    "band_radius": {"calibration_id": 0},
    "snapshot_quartiles": {"calibration_id": 0},
    "score_choice": {"calibration_id": 0},
    "certificate": {"calibration_id": 0},
    "standing_state": {"chain_id": 0, "documents": 0, "predicted": 0},
    "standing_position": {"chain_id": 0, "documents": 0},
    "forgotten_evidence": {"id": 0},
    "standing_chain": {"id": 0},
    "withheld_calibration": {"calibration_id": 0},
    "calibration_use": {"id": 0},
    "certificate_look": {"id": 0},
    "calibration": {"id": 0},
    "calibrator": {"id": 0},
    "training_epoch": {"knn_parameters_id": 0, "model": "", "epoch": 0},
    "knn_parameters": {"id": 0},
    "forgotten_training": {"id": 0},
    "audit_rule": {"id": 0},
    "point_change": {"id": 0},
}
"""What refers to no exemplar, in the order in which it can be deleted; of each, a key before that of any row."""

_TYPES: Mapping[type, TypeEngine[Any]] = {int: BigInteger(), float: Double(), str: Text()}

_PARENTS = {
    "recalibration_request": "calibrator",
    "snapshot_view": "calibrator",
    "monitor_state": "monitor",
    "monitor_reading": "monitor",
    "monitor_alarm": "monitor",
    "monitor": "calibrator",
    "cascade_request": "job",
    "job_chunk": "job",
    "venn_abers_step": "calibrator",
    "forgotten_point": "calibrator",
    "band_radius": "calibration",
    "snapshot_quartiles": "calibration",
    "score_choice": "calibration",
    "certificate": "calibration",
    "standing_state": "standing_chain",
    "standing_position": "standing_chain",
    "forgotten_evidence": "standing_chain",
    "standing_chain": "calibrator",
    "withheld_calibration": "calibration",
    "calibration": "calibrator",
    "training_epoch": "knn_parameters",
    "approximation": "knn_parameters",
    "calibration_point": "calibrator",
    "decision": "calibration",
    "job_row": "job",
    "label_event": "exemplar",
    "neighbours": "exemplar",
    "review_label": "exemplar",
    "audit_draw": "exemplar",
    "standing_evidence": "exemplar",
}
"""The table through which one that does not name its classifier belongs to one."""

_OWN_NAMES = {"standing_chain": "chain_id"}
"""Columns that refer to a table by another name than its own."""

# All but the evidence of decisions, which goes with them, the ledger of changed points and what reads snapshots.
_COUNTED = (
    *sorted(TABLES.keys() - {"point_change", "snapshot_view"}),
    *("approximation", "audit_draw", "calibration_point", "decision", "exemplar", "exemplar_vector", "job_row"),
    *("label_event", "neighbours", "review_label", "review_point", "standing_evidence", "support_change"),
)


def begin(
    connection: Connection, generations: Sequence[Classifier], *, every: bool, asked: Mapping[str, object]
) -> None:
    """Let generations count as being deleted, and add that to the audit ledger.

    every: whether these are all, so that keys for the classifier go too. asked: the columns `origin`, `key_id` and
    `subject` of the event.
    """
    parameters = {"classifier_ids": [one.id for one in generations]}
    execute(connection, "deletion.begin", **parameters, **asked)
    if every:
        execute(connection, "deletion.revoke_keys", **parameters)
        execute(connection, "deletion.end_sessions", **parameters)


def cancel_jobs(connection: Connection, classifier: Classifier) -> None:
    """Cancel jobs that were recorded while the deletion began."""
    execute(connection, "deletion.cancel_jobs", classifier_id=classifier.id)


def drop_vectors(connection: Connection, classifier: Classifier) -> bool:
    """Drop the partitions of the vectors; return False if others kept the table in use, so that nothing was done."""
    return bool(execute(connection, "deletion.drop_vector_partitions", classifier_id=classifier.id).scalar_one())


def some_exemplars(connection: Connection, classifier: Classifier, after: Key, batch: int) -> tuple[IntArray, Key]:
    """Return at most `batch` of the exemplars that are left, the first ones after a key, and the key of the last."""
    parameters = {"classifier_id": classifier.id, "batch": batch, **after}
    rows = execute(connection, "deletion.some_exemplars", **parameters).mappings().all()
    return np.array([row["id"] for row in rows], dtype=np.int64), dict(rows[-1]) if rows else after


def delete_some(connection: Connection, classifier: Classifier, table: str, after: Key, batch: int) -> tuple[int, Key]:
    """Delete at most `batch` rows of a table, the first ones after a key; return how many, and the key of the last."""
    parameters = {"classifier_id": classifier.id, "batch": batch, **after}
    rows = connection.execute(part_of(table), parameters).mappings().all()
    return len(rows), dict(rows[-1]) if rows else after


@cache
def part_of(name: str) -> Select[Any]:
    """Return the statement that deletes some rows of a table of `TABLES`, and returns their keys in order.

    Its parameters are `classifier_id`, `batch`, and the columns of the key after which it begins: rows that are deleted
    stay in the index while anybody may still see them. It is assembled because it is the same for all tables.
    """
    one = table(name, *(column(key, _TYPES[type(least)]) for key, least in TABLES[name].items()), schema=SCHEMA)
    place: ColumnElement[Any] = literal_column(f"{one.fullname}.ctid")
    keys = list(one.c)
    joined, belongs = _of_classifier(one)
    part = (
        select(place.label("place"), *keys)
        .select_from(joined)
        .where(belongs, tuple_(*keys) > tuple_(*(bindparam(key.name, type_=key.type) for key in keys)))
        .order_by(*keys)
        .limit(bindparam("batch"))
        .cte("part")
        .prefix_with("MATERIALIZED")
    )
    gone = delete(one).where(place == any_(func.array(select(part.c.place).scalar_subquery()))).cte("gone")
    found = [part.c[key.name] for key in keys]
    return select(*found).order_by(*found).add_cte(gone)


def _of_classifier(one: TableClause) -> tuple[FromClause, ColumnElement[bool]]:
    """A table joined to the one that names its classifier, and the condition that it is `classifier_id`."""
    owner = one
    joined: FromClause = one
    while owner.name in _PARENTS:
        parent = table(_PARENTS[owner.name], column("id"), schema=SCHEMA)
        refers = _OWN_NAMES.get(parent.name, f"{parent.name}_id")
        joined = joined.join(parent, literal_column(f"{owner.fullname}.{refers}") == parent.c.id)
        owner = parent
    return joined, literal_column(f"{owner.fullname}.classifier_id") == bindparam("classifier_id")


def delete_row(connection: Connection, classifier: Classifier) -> bool:
    """Delete the generation itself; return False if something refers to it again.

    The generations that are left get another first one. What was rolled back in that case is to be done again.
    """
    parameters = {"classifier_id": classifier.id}
    savepoint = connection.begin_nested()
    try:
        execute(connection, "deletion.release_keys", **parameters)
        execute(connection, "deletion.hand_on", **parameters)
        execute(connection, "deletion.delete_classifier", **parameters)
    except IntegrityError:
        savepoint.rollback()
        return False
    savepoint.commit()
    return True


def counts(connection: Connection, classifier: Classifier) -> Counter[str]:
    """Return how many rows of each table belong to a generation, its own row among them."""
    rows = connection.execute(_count_rows(), {"classifier_id": classifier.id})
    return Counter({row.name: row.rows for row in rows}) + Counter({"classifier": 1})


@cache
def _count_rows() -> CompoundSelect[Any]:
    counted = []
    for name in _COUNTED:
        joined, belongs = _of_classifier(table(name, schema=SCHEMA))
        counted.append(
            select(literal(name).label("name"), func.count().label("rows")).select_from(joined).where(belongs)
        )
    return union_all(*counted)
