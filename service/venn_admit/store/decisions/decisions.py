"""Decisions: written by binary COPY, read in the order of a job's request."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row

from venn_admit.core.evidence import EVIDENCE, PREDICTION, SHARED, VERDICT, VIEW, Field, Kind, values_of
from venn_admit.core.reasons import ADMITTED, Reason
from venn_admit.core.split_names import Split
from venn_admit.core.types import IntArray
from venn_admit.errors import Code, NotFoundError
from venn_admit.store.database.binary_copy import BOOL, FLOAT8, INT4, INT8, TEXT, Array, Bits, Column, Values, copy_in
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.ids import execute_ids, unpacked_ids
from venn_admit.store.database.statements import execute, stream
from venn_admit.store.decisions import removal
from venn_admit.store.decisions.removal import Why
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work.jobs import Job

# A key that no decision has.
_AFTER_ALL = 2**63 - 1
_REASONS = {reason.code: reason.encode() for reason in Reason} | {ADMITTED: None}


@dataclass(frozen=True, slots=True)
class DecisionCount:
    """The number of rows whose exemplars have the same split, predicted class, and decision or reason.

    split: that in which the snapshot knows them; `scored` for what was labelled since.
    """

    split: Split
    predicted: int
    decision: int | None
    reason: Reason | None
    rows: int


def rows_in_use(counts: Iterable[DecisionCount]) -> Counter[Split]:
    """Return how many rows train the KNN or calibrate, by split."""
    rows: Counter[Split] = Counter()
    for count in counts:
        if count.split != Split.SCORED:
            rows[count.split] += count.rows
    return rows


def undecided(
    connection: Connection,
    exemplar_ids: IntArray,
    *,
    calibration_id: int | None,
    weighted: bool | None,
    require_full_match: bool | None,
) -> IntArray:
    """Return the exemplars without a decision under a snapshot and options, each once, in the given order."""
    return execute_ids(
        connection,
        "decisions.undecided",
        exemplar_ids=list(dict.fromkeys(exemplar_ids.tolist())),
        calibration_id=calibration_id,
        weighted=weighted,
        require_full_match=require_full_match,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The decisions on m points by one method, with all that is kept of them.

    values: an array of m each, by the names of `core.evidence`; none of the KNN's view without vectors. never_admitted:
    (C,) bool, the classes of which the policy admits nothing; None if it is not on the network's predictions.
    """

    method: str
    values: Mapping[str, NDArray[Any]]
    never_admitted: NDArray[np.bool_] | None = None

    def fields_of_each(self) -> list[dict[str, Any]]:
        """Return what is stored of the decision on each of the points, by the names of the columns."""
        fields = (*PREDICTION, *VIEW, *EVIDENCE[self.method].fields, *VERDICT)
        unknown = [None] * len(self.values["predicted"])
        columns = (
            values_of(field, self.values[field.name].tolist()) if field.name in self.values else unknown
            for field in fields
        )
        names = [field.name for field in fields]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def write(connection: Connection, job: Job, exemplar_ids: IntArray, support_version: int, decided: Decided) -> None:
    """Append the decisions on n exemplars with their evidence, except on exemplars that were decided on meanwhile.

    The caller must keep other results out: see `support.lock_for_results`.
    """
    wanted = undecided(
        connection,
        exemplar_ids,
        calibration_id=job.calibration_id,
        weighted=job.weighted,
        require_full_match=job.require_full_match,
    )
    rows = np.isin(exemplar_ids, wanted)
    n = int(rows.sum())
    ids = unpacked_ids(execute(connection, "decisions.allocate_decision_ids", count=n).scalar_one())
    values = {name: of_field[rows] for name, of_field in decided.values.items()}
    key: dict[str, tuple[Column, NDArray[Any]]] = {
        "id": (INT8, ids),
        "calibration_id": (INT8, np.full(n, job.calibration_id)),
        "exemplar_id": (INT8, exemplar_ids[rows]),
        "weighted": (BOOL, np.full(n, job.weighted)),
        "require_full_match": (BOOL, np.full(n, job.require_full_match)),
        "support_version": (INT8, np.full(n, support_version)),
    }
    _copy(connection, "decision", key, SHARED, values)
    evidence = EVIDENCE[decided.method]
    _copy(connection, evidence.table, {"decision_id": (INT8, ids)}, evidence.fields, values)


def _copy(
    connection: Connection,
    table: str,
    key: Mapping[str, tuple[Column, NDArray[Any]]],
    fields: Iterable[Field],
    values: Mapping[str, NDArray[Any]],
) -> None:
    """Append rows: columns of their own, and those of the fields that there are values of."""
    known = [field for field in fields if field.name in values]
    nulls = {field.name: _is_null(field, values[field.name]) for field in known if field.nullable}
    copy_in(
        driver_cursor(connection),
        table,
        {**key, **{field.name: _column(field.kind, values[field.name]) for field in known}},
        nulls={name: mask for name, mask in nulls.items() if mask.any()},
    )


def _column(kind: Kind, values: NDArray[Any]) -> tuple[Column, Values]:
    match kind:
        case Kind.INTEGER | Kind.CLASS:
            return INT4, values
        case Kind.REAL | Kind.UNBOUNDED:
            return FLOAT8, values
        case Kind.REASON:
            return TEXT, [_REASONS[code] for code in values.tolist()]
        case Kind.BITS:
            return Bits(values.shape[1]), values
    return Array(">i4" if kind is Kind.INTEGERS else ">f8", values.shape[1]), values


def job_rows(connection: Connection, job_id: int) -> Iterator[Sequence[Row[Any]]]:
    """Yield the decisions of a job, one for each row of its request and in that order, in blocks."""
    return stream(connection, "decisions.job_decisions", {"job_id": job_id})


def counts(connection: Connection, job_id: int) -> list[DecisionCount]:
    """Return the rows of a job, counted by decision."""
    rows = execute(connection, "decisions.decision_counts", job_id=job_id)
    return [
        DecisionCount(
            Split(row.split), row.predicted, row.decision, None if row.reason is None else Reason(row.reason), row.rows
        )
        for row in rows
    ]


def by_id(connection: Connection, decision_id: int) -> Row[Any]:
    """Return a decision as it is stored, with its classifier's name; NotFoundError if it does not exist."""
    row = execute(connection, "decisions.decision_by_id", decision_id=decision_id).one_or_none()
    if row is None:
        _check_removal(connection, decision_id)
        raise NotFoundError(
            f"there is no decision {decision_id}; name the classifier and the row's id instead",
            code=Code.UNKNOWN_DECISION,
            decision=decision_id,
        )
    return row


def _check_removal(connection: Connection, decision_id: int) -> None:
    """Raise NotFoundError, with the reason, if a decision was removed."""
    found = removal.removal(connection, decision_id)
    if found is None:
        return
    because = {
        Why.AGE: "because its job had been over for longer than decisions are kept (VENN_ADMIT_KEEP_DECISIONS)",
        Why.REQUEST: "because somebody asked for that",
    }
    raise NotFoundError(
        f"decision {decision_id} was removed on {found.removed_at:%Y-%m-%d at %H:%M %Z}, {because[found.reason]}; "
        "score the exemplar again for a new one",
        code=Code.REMOVED_DECISION,
        decision=decision_id,
    )


def newest(connection: Connection, classifier: Classifier, external_id: str) -> int:
    """The key of the newest decision on an exemplar; NotFoundError if nothing was decided on it."""
    parameters = {"classifier_id": classifier.id, "external_id": external_id}
    decision_id: int | None = execute(connection, "decisions.newest_decision", **parameters).scalar_one_or_none()
    if decision_id is None:
        raise NotFoundError(
            f"classifier {classifier.name!r} has decided on no exemplar with the id {external_id!r}",
            code=Code.UNKNOWN_EXEMPLAR,
            classifier=classifier.name,
            exemplar=external_id,
        )
    return decision_id


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions are wanted; None: any. before: a decision; only older ones are wanted."""

    calibration_id: int | None = None
    external_id: str | None = None
    admitted: bool | None = None
    before: int | None = None


def page(connection: Connection, classifier: Classifier, wanted: DecisionFilter, *, limit: int) -> Sequence[Row[Any]]:
    """Return the newest decisions of a classifier that are wanted, newest first."""
    parameters: dict[str, Any] = {
        "classifier_id": classifier.id,
        "calibration_id": wanted.calibration_id,
        "outcomes": [True, False] if wanted.admitted is None else [wanted.admitted],
        "before": _AFTER_ALL if wanted.before is None else wanted.before,
        "row_limit": limit,
    }
    if wanted.external_id is None:
        return execute(connection, "decisions.page_of_decisions", **parameters).all()
    parameters["external_id"] = wanted.external_id
    return execute(connection, "decisions.page_of_exemplar", **parameters).all()


def _is_null(field: Field, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of the values of n points, as in `values_of`, stand for null, (n,)."""
    if field.kind in (Kind.REAL, Kind.UNBOUNDED):
        is_nan: NDArray[np.bool_] = np.isnan(values)
        return is_nan
    if field.kind is Kind.CLASS:
        return values < 0
    return np.zeros(len(values), dtype=np.bool_)
