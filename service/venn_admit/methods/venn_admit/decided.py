"""What is kept of decisions of Venn-ADMIT."""

from venn_admit.core.calibrators.venn_admit.decide import Decisions
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.types import Approximation
from venn_admit.store.decisions.decisions import Decided


def decided_by_admit(view: Approximation, found: Decisions) -> Decided:
    """Return decisions on the KNN's predictions with all that is kept of them."""
    sets, probabilities = found.sets, found.probabilities
    return Decided(
        VENN_ADMIT,
        {
            "predicted": view.predicted,
            "match_count": view.match_count,
            "distance": view.distance,
            "logits": view.logits,
            "admit_set": sets.included,
            "band_size": sets.band_size,
            "threshold": sets.threshold,
            "category_size": probabilities.category_size,
            "upweight": probabilities.upweight,
            "lower": probabilities.lower,
            "upper": probabilities.upper,
            "decision": found.selection.decision,
            "reason": found.selection.reason,
        },
    )
