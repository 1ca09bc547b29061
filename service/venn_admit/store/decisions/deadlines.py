"""Label deadlines of monitors: documents count in the order of their first decisions, once the deadline has passed.

Decisions have ascending numbers, and their times hardly ever differ from that order. What has passed are all decisions
before the first whose deadline has not, so that documents are added at the end alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from venn_admit.store.database.statements import execute


@dataclass(frozen=True, slots=True)
class LabelDeadline:
    """The label deadline of a monitor.

    time: after the first decision on a document. passed: the last decision up to which all deadlines had passed when
    labels were counted. decided: points that were decided on first up to it, of the decisions that count. is_due:
    whether further deadlines have passed since.
    """

    time: timedelta
    passed: int
    decided: int = 0
    is_due: bool = False


def of_classifier(connection: Connection, classifier_id: int) -> timedelta | None:
    """Return the label deadline of the newest monitor of a classifier; None if there is none."""
    return execute(connection, "deadlines.newest_of_classifier", classifier_id=classifier_id).scalar_one_or_none()


def newest_decision(connection: Connection) -> int:
    """Return the newest decision of all classifiers, 0 before the first."""
    decision: int = execute(connection, "deadlines.newest_decision").scalar_one()
    return decision


def now_passed(connection: Connection, deadline: LabelDeadline, of_calibrator: Mapping[str, Any]) -> LabelDeadline:
    """Return a label deadline with the decisions of which it has passed by now.

    of_calibrator: the parameters calibrator_id and knn_parameters_id.
    """
    passed: int = execute(
        connection, "deadlines.passed", passed_decision=deadline.passed, label_deadline=deadline.time
    ).scalar_one()
    further: int = execute(
        connection, "deadlines.decided", after=deadline.passed, until=passed, **of_calibrator
    ).scalar_one()
    return replace(deadline, passed=passed, decided=deadline.decided + further, is_due=False)
