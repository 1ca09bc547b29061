"""The data that an evaluation reads: labelled exemplars, and the decisions on them."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.types import Approximation, BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.binary_copy import BOOL, FLOAT8, INT4, Array, FixedColumn, read_columns
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.approximations import view_columns, view_of_decisions
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class LabelledExemplars:
    """Labelled exemplars: ids (n,) int64 of those that can be evaluated, each once, and the number of others.

    seen_count: the number of those that the snapshot was made with, as training or calibration data, which therefore
    say nothing about it. chosen_count: the number of the first whose label was selected, or given in a review.
    """

    ids: IntArray
    seen_count: int
    chosen_count: int


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedRows:
    """n labelled exemplars and the decisions on them.

    label, network_predicted: (n,) int64. network_logits: (n, C) float32. approximation: the KNN's view; None if the
    classifier has logits only. predicted: (n,) int64, what was decided on. lower, upper: (n,) float64, NaN if it was
    rejected before. admitted: (n,) bool, whatever q is.
    """

    label: IntArray
    network_predicted: IntArray
    network_logits: Float32Array
    approximation: Approximation | None
    predicted: IntArray
    lower: FloatArray
    upper: FloatArray
    admitted: BoolArray


def labelled(connection: Connection, calibration: Calibration, exemplar_ids: IntArray) -> LabelledExemplars:
    """Return the labelled ones of the given exemplars, in the given order."""
    parameters = {
        "exemplar_ids": list(dict.fromkeys(exemplar_ids.tolist())),
        "calibration_id": calibration.id,
        "calibrator_id": calibration.calibrator_id,
        "number": calibration.number,
        "vp_count": calibration.vp_count,
    }
    rows = execute(connection, "evaluations.labelled", **parameters).all()
    unseen = [row for row in rows if not row.is_seen]
    ids = np.array([row.exemplar_id for row in unseen], dtype=np.int64)
    return LabelledExemplars(ids, len(rows) - len(unseen), sum(row.is_chosen for row in unseen))


def decided(connection: Connection, calibration: Calibration) -> IntArray:
    """Return the labelled exemplars that a calibration has decided on, in order of ingestion, (n,) int64."""
    return execute_ids(connection, "evaluations.decided", calibration_id=calibration.id)


def evaluated_rows(
    connection: Connection, classifier: Classifier, calibration_id: int, exemplar_ids: IntArray, *, weighted: bool
) -> EvaluatedRows:
    """Return the labels of some exemplars and the decisions on them, which must exist, in the given order."""
    columns: dict[str, FixedColumn] = {
        "label": INT4,
        "network_predicted": INT4,
        "network_logits": Array(">f4", classifier.class_count),
        **view_columns(classifier),
        "lower": FLOAT8,
        "upper": FLOAT8,
        "is_admitted": BOOL,
    }
    parameters = {"calibration_id": calibration_id, "exemplar_ids": exemplar_ids, "weighted": weighted}
    rows = read_columns(connection, "evaluations.decisions", columns, **parameters)
    assert len(rows["label"]) == len(exemplar_ids), "an exemplar without a label or a decision"
    return EvaluatedRows(
        label=rows["label"],
        network_predicted=rows["network_predicted"],
        network_logits=rows["network_logits"],
        approximation=None if classifier.knn is None else view_of_decisions(rows),
        predicted=rows["predicted"],
        lower=rows["lower"],
        upper=rows["upper"],
        admitted=rows["is_admitted"],
    )
