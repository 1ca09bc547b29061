"""What Venn-ADMIT makes of labelled points: its weighted decisions as they are stored, and plain ones beside them."""

from venn_admit.core.approximation.localizer import localizer_logits
from venn_admit.core.calibrators.venn_admit.decide import decide
from venn_admit.core.types import AdmitOutcome
from venn_admit.methods.judging import Judged, PointsToJudge
from venn_admit.methods.venn_admit.snapshot import AdmitSnapshot
from venn_admit.report.evaluation.evaluated import settings_of_bands


def judge(snapshot: AdmitSnapshot, points: PointsToJudge, *, memory_budget: int) -> Judged:
    """Return what the snapshot makes of the points; see the protocol `Method`."""
    settings, rows = snapshot.calibration.settings, points.rows
    assert rows.approximation is not None, "the method decides by the KNN"
    plain = decide(
        snapshot.admit,
        snapshot.venn,
        rows.approximation,
        settings,
        neighbour_count=snapshot.neighbour_count,
        require_full_match=False,
        localizer=None,
        memory_budget=memory_budget,
    )
    # The localizer's vectors are in the order of the Venn index.
    vp_logits = points.held_out.vp.seen.knn.logits[snapshot.venn.order]
    localized = localizer_logits(
        points.own_vectors,
        snapshot.localizer_vectors,
        vp_logits,
        snapshot.parameters.eta_loc,
        memory_budget=memory_budget,
    )
    return Judged(
        own=None,
        settings=settings_of_bands(settings, snapshot.neighbour_count),
        admit=AdmitOutcome(
            included=plain.sets.included,
            lower_plain=plain.probabilities.lower,
            upper_plain=plain.probabilities.upper,
            lower_weighted=rows.lower,
            upper_weighted=rows.upper,
            admitted_plain=plain.selection.decision >= 0,
            admitted_weighted=rows.admitted,
        ),
        localizer_predicted=localized.argmax(axis=1),
    )
