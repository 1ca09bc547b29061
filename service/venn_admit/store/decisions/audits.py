"""The rules by which points are drawn to be audited, and the draws, which are made when a point is first decided on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.audits import AuditRates, drawn
from venn_admit.core.reasons import ADMITTED
from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import execute
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars.classifiers import Classifier

MONTH_DAYS = 30
"""How many days of traffic labels are foretold by, and for."""


@dataclass(frozen=True, slots=True)
class AuditRule:
    """A rule. key: of the draws. rates: None if nothing is drawn any more."""

    id: int
    key: bytes
    rates: AuditRates | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AuditCount:
    """How many admitted, or rejected, points had a chance to be drawn, were, and were labelled for it."""

    is_admitted: bool
    points: int
    drawn: int
    labelled: int


def rule_of(connection: Connection, classifier_id: int) -> AuditRule | None:
    """Return the newest rule of a generation of a classifier; None if it never had one."""
    row = execute(connection, "audits.rule", classifier_id=classifier_id).one_or_none()
    if row is None:
        return None
    rates = None if row.admitted_rates is None else AuditRates(tuple(row.admitted_rates), row.rejected_rate)
    return AuditRule(row.id, bytes(row.key), rates, row.created_at)


def add_rule(connection: Connection, generations: Sequence[Classifier], rates: AuditRates | None) -> None:
    """State by which rule the points of all generations of a classifier are drawn from now on; None: none is."""
    execute(
        connection,
        "audits.add_rule",
        classifier_ids=[one.id for one in generations],
        admitted_rates=None if rates is None else list(rates.admitted),
        rejected_rate=None if rates is None else rates.rejected,
    )


def carry_rule(connection: Connection, classifier_id: int, new_id: int) -> None:
    """Let a new generation draw at the rates of another one, if that has a rule."""
    execute(connection, "audits.carry_rule", classifier_id=classifier_id, new_id=new_id)


def draw(connection: Connection, classifier_id: int, exemplar_ids: IntArray, decided: Decided) -> None:
    """Draw those of some points, on which was just decided, that have neither a draw nor a label.

    Nothing happens without a rule. exemplar_ids: (n,) int64, distinct, in the order of the decisions.
    """
    rule = rule_of(connection, classifier_id) if len(exemplar_ids) else None
    if rule is None or rule.rates is None:
        return
    undrawn = execute(connection, "audits.undrawn", exemplar_ids=exemplar_ids).all()
    ids = np.array([row.id for row in undrawn], dtype=np.int64)
    order = np.argsort(exemplar_ids)
    rows = order[np.searchsorted(exemplar_ids, ids, sorter=order)]
    rates, predicted = rule.rates, decided.values["predicted"][rows].astype(np.int64)
    admitted = decided.values["reason"][rows] == ADMITTED
    contents = [bytes(row.content) for row in undrawn]
    probabilities = rates.probabilities(predicted, admitted)
    # Other methods predict by the KNN, so that points of one class of the network have any of the rates.
    least = np.full(len(ids), rates.least_of_all)
    if decided.never_admitted is not None:
        least = rates.least(predicted, decided.never_admitted)
    execute(
        connection,
        "audits.add_draws",
        rule_id=rule.id,
        exemplar_ids=ids,
        predicted=predicted.tolist(),
        is_admitted=admitted.tolist(),
        probability=probabilities.tolist(),
        least_probability=least.tolist(),
        is_drawn=drawn(rule.key, contents, probabilities).tolist(),
        contents=contents,
    )


def labels_a_month(connection: Connection, classifier: Classifier, rates: AuditRates) -> int | None:
    """Return about how many points rates would draw in `MONTH_DAYS`, by the draws of as many days.

    None before there was a day of these.
    """
    rows = execute(connection, "audits.recent", classifier_id=classifier.id, days=MONTH_DAYS).all()
    days = max((row.days for row in rows), default=0.0)
    if days < 1:
        return None
    predicted, admitted = np.array([row.predicted for row in rows]), np.array([row.is_admitted for row in rows])
    points = np.array([row.points for row in rows])
    return round(float(rates.probabilities(predicted, admitted) @ points) * MONTH_DAYS / days)


def counts(connection: Connection, classifier: Classifier) -> list[AuditCount]:
    """Return how many points of a generation were drawn so far, the admitted ones first."""
    rows = execute(connection, "audits.counts", classifier_id=classifier.id)
    return [AuditCount(**row._mapping) for row in rows]
