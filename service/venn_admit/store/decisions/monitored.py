"""The labelled points that monitors see, those of the calibration data first, by which a monitor is planned."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.points import groups_of
from venn_admit.core.monitoring.anytime.documents import MATCH_GROUPS, LabelledPoints, labelled_points
from venn_admit.core.monitoring.anytime.plan import MonitorPlan, plan_of
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.classifiers import Classifier


def plan_by(
    connection: Connection, classifier: Classifier, calibration: Calibration, snapshot: int, number: int
) -> MonitorPlan:
    """Return the plan by the points of a snapshot of a calibrator, which has this number."""
    rows = execute(
        connection, "monitors.calibration_documents", calibrator_id=calibration.calibrator_id, number=number
    ).all()
    order = {key: place for place, key in enumerate(dict.fromkeys(row.document_key for row in rows))}
    attributes = calibration.group_attributes
    of_points = groups(connection, rows, attributes)
    known = {name: sorted({value for value in values if value is not None}) for name, values in of_points.items()}
    return plan_of(
        labelled(classifier, rows, [order[row.document_key] for row in rows], [False] * len(rows), of_points, known),
        class_count=classifier.class_count,
        alpha=calibration.method_settings.alpha,
        match_groups=1 if classifier.knn is None else MATCH_GROUPS,
        kinds=calibration.promised_kinds,
        policy=venn_abers.policy_of(connection, snapshot) if attributes else None,
    )


def groups(connection: Connection, rows: Sequence[Any], attributes: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the group of each row by attributes; None for one in none."""
    ids = np.array([row.exemplar_id for row in rows], dtype=np.int64)
    return exemplars.groups(connection, ids, attributes)


def labelled(
    classifier: Classifier,
    rows: Sequence[Any],
    document: Sequence[int],
    admitted: Sequence[bool],
    of_points: Mapping[str, Sequence[str | None]],
    known: Mapping[str, Sequence[str]],
    beside: Mapping[int, tuple[int, int]] | None = None,
) -> LabelledPoints:
    """Return labelled points of a classifier.

    of_points: the group of each point by attribute; known: the groups that count. beside: the predicted class of the
    point with which an exemplar is compared, and whether its own score is above that.
    """
    compared = np.array([(beside or {}).get(row.exemplar_id, (-1, 0)) for row in rows], dtype=np.int64).reshape(-1, 2)

    def column(name: str) -> IntArray:
        return np.array([getattr(row, name) for row in rows], dtype=np.int64)

    weights: FloatArray = np.array([_weights(row) for row in rows], dtype=np.float64).reshape(-1, 3)
    return labelled_points(
        [row.external_id for row in rows],
        np.array(document, dtype=np.int64),
        predicted=column("predicted"),
        label=column("label"),
        match_count=None if classifier.knn is None else column("match_count"),
        admitted=np.array(admitted, dtype=np.bool_),
        class_count=classifier.class_count,
        neighbour_count=classifier.neighbours,
        seed=classifier.seed,
        groups=[groups_of(name, of_points[name], values) for name, values in known.items()],
        weight=weights[:, 0],
        weight_of_admitted=weights[:, 1],
        chance_in_ranks=weights[:, 2],
        beside=compared[:, 0],
        surer=compared[:, 1],
        stands_alone=np.array(
            [getattr(row, "weight_of_all", None) is None or row.document_id is None for row in rows], dtype=np.bool_
        ),
    )


def _weights(row: Any) -> tuple[float, float, float]:
    """What a labelled point weighs in shares of predicted classes, in those of all admitted points, and in ranks."""
    of_all = getattr(row, "weight_of_all", None)  # calibration data have none
    if of_all is None:
        return 1.0, 1.0, 1.0
    if not row.is_drawn_here:
        return of_all, of_all, of_all  # its class may be another one than that by which it was drawn
    # All that one decision admits of a class was drawn with one probability; what it rejects is in no share.
    return 1.0, 1.0 if row.weight_of_admitted is None else row.weight_of_admitted, of_all
