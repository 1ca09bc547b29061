"""Which classes points of the queue may be of, by the method of the calibration in use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.comparison.label_conditional import class_thresholds, classes_within
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.split_names import Split
from venn_admit.core.types import FloatArray
from venn_admit.errors import NotReadyError
from venn_admit.methods.recent import Recent
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.reviews import reviews

_thresholds: Recent[object, FloatArray] = Recent()


def possible_classes(
    connection: Connection, classifier: Classifier, rows: Sequence[Row[Any]]
) -> list[tuple[str, ...] | None]:
    """Return the classes that points may be of at the alpha of the calibration in use.

    By Venn-ADMIT they are the ADMIT set of the decision; otherwise those that split conformal prediction leaves, with a
    threshold for each class by the labelled points of mc and vp. Sets of fewer than two classes are None: the only one
    would be the prediction.

    Args:
        rows: Points with their `exemplar_id` and `decision_id`.
    """
    if not rows:
        return []
    try:
        calibration = calibrations.latest(connection, classifier)
    except NotReadyError:  # points of before are in the queue still
        return [None] * len(rows)
    if calibration.method == VENN_ADMIT:
        sets = reviews.admit_sets(connection, [row.decision_id for row in rows])
        bits = [sets.get(row.decision_id, "") for row in rows]
    else:
        thresholds = _thresholds.get(calibration.revision, lambda: _thresholds_of(connection, classifier, calibration))
        logits = exemplars.network_logits(connection, classifier, np.array([row.exemplar_id for row in rows]))
        within = classes_within(logits.astype(np.float64), thresholds)
        bits = ["".join("1" if one else "0" for one in row) for row in within.tolist()]
    named = (tuple(name for name, bit in zip(classifier.class_names, one, strict=False) if bit == "1") for one in bits)
    return [one if len(one) > 1 else None for one in named]


def _thresholds_of(connection: Connection, classifier: Classifier, calibration: Calibration) -> FloatArray:
    parts = [exemplars.split_logits(connection, classifier, split) for split in (Split.MC, Split.VP)]
    logits = np.concatenate([part.logits for part in parts]).astype(np.float64)
    return class_thresholds(logits, np.concatenate([part.labels for part in parts]), calibration.method_settings.alpha)
