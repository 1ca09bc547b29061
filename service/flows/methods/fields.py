"""The decision on one point as its row in the database holds it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from venn_admit.service.core.types import Approximation, Reason
from venn_admit.service.store.decisions.decisions import Verdicts


def decision_fields(
    approximation: Approximation | None, verdicts: Verdicts, evidence: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what is stored of the decision on one point, by the names of the columns.

    approximation: the KNN's view of the point; None without vectors. verdicts: of the point. evidence: what its method
    keeps besides.
    """
    decision, reason = int(verdicts.selection.decision[0]), int(verdicts.selection.reason[0])
    return {
        "predicted": int(verdicts.predicted[0]),
        "match_count": None if approximation is None else int(approximation.match_count[0]),
        "distance": None if approximation is None else float(approximation.distance[0]),
        "logits": None if approximation is None else approximation.logits[0].tolist(),
        **evidence,
        "upweight": _null_if_nan(verdicts.upweight[0]),
        "lower": _null_if_nan(verdicts.lower[0]),
        "upper": _null_if_nan(verdicts.upper[0]),
        "decision": None if decision < 0 else decision,
        "reason": None if reason < 0 else str(tuple(Reason)[reason]),
    }


def _null_if_nan(value: np.float64) -> float | None:
    return None if math.isnan(value) else float(value)
