"""The decision on one point as its row in the database holds it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from venn_admit.core.types import Approximation, Reason
from venn_admit.store.decisions.decisions import Verdicts


def decision_fields(
    approximation: Approximation | None, verdicts: Verdicts, evidence: Mapping[str, Any], row: int
) -> dict[str, Any]:
    """Return what is stored of the decision on one point, by the names of the columns.

    approximation: the KNN's view of all points; None without vectors. verdicts: of all points. evidence: what the
    method keeps of the one point besides. row: its number among all.
    """
    decision, reason = int(verdicts.selection.decision[row]), int(verdicts.selection.reason[row])
    return {
        "predicted": int(verdicts.predicted[row]),
        "match_count": None if approximation is None else int(approximation.match_count[row]),
        "distance": None if approximation is None else float(approximation.distance[row]),
        "logits": None if approximation is None else approximation.logits[row].tolist(),
        **evidence,
        "upweight": _null_if_nan(verdicts.upweight[row]),
        "lower": _null_if_nan(verdicts.lower[row]),
        "upper": _null_if_nan(verdicts.upper[row]),
        "decision": None if decision < 0 else decision,
        "reason": None if reason < 0 else str(tuple(Reason)[reason]),
    }


def _null_if_nan(value: np.float64) -> float | None:
    return None if math.isnan(value) else float(value)
