"""The decision on one point as its row in the database holds it."""

import math
from typing import Any

import numpy as np

from venn_admit.service.core.calibrators.venn_admit.decide import Decisions
from venn_admit.service.core.types import Approximation, Reason


def decision_fields(approximation: Approximation, decided: Decisions) -> dict[str, Any]:
    """The evidence and the decision of the one point that both are of, by the names of the columns."""
    sets, probabilities, selection = decided.sets, decided.probabilities, decided.selection
    decision, reason = int(selection.decision[0]), int(selection.reason[0])
    return {
        "predicted": int(approximation.predicted[0]),
        "match_count": int(approximation.match_count[0]),
        "distance": float(approximation.distance[0]),
        "logits": approximation.logits[0].tolist(),
        "admit_set": "".join("1" if included else "0" for included in sets.included[0].tolist()),
        "band_size": sets.band_size[0].tolist(),
        "threshold": sets.threshold[0].tolist(),
        "category_size": int(probabilities.category_size[0]),
        "upweight": _null_if_nan(probabilities.upweight[0]),
        "lower": _null_if_nan(probabilities.lower[0]),
        "upper": _null_if_nan(probabilities.upper[0]),
        "decision": None if decision < 0 else decision,
        "reason": None if reason < 0 else str(tuple(Reason)[reason]),
    }


def _null_if_nan(value: np.float64) -> float | None:
    return None if math.isnan(value) else float(value)
