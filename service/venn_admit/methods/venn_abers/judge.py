"""What Venn-Abers makes of labelled points: its decisions as they are stored, and Venn-ADMIT, a rival by the KNN."""

from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.comparison.band_rival import admit_rival
from venn_admit.core.comparison.selective import VENN_ABERS, by_bins, certified_for
from venn_admit.core.evaluation.points import NETWORK, OwnMethod
from venn_admit.core.types import AdmitOutcome, SelectiveMethod
from venn_admit.methods.judging import Judged, PointsToJudge
from venn_admit.methods.venn_abers.snapshot import AbersSnapshot
from venn_admit.report.evaluation.evaluated import settings_of_cells


def judge(snapshot: AbersSnapshot, points: PointsToJudge, *, memory_budget: int) -> Judged:
    """Return what the snapshot makes of the points; see the protocol `Method`."""
    settings, rows, kind = snapshot.calibration.abers_settings, points.rows, snapshot.context.kind
    knn = points.classifier.knn
    name = VENN_ABERS[kind] if len(settings.q_bins) == 1 else by_bins(VENN_ABERS[kind])
    if settings.certification is not None:
        name = certified_for(settings.certification.kinds)
    outcome, words = (None, ()) if knn is None else _rival(snapshot, points, knn.neighbour_count, memory_budget)
    return Judged(
        own=OwnMethod(
            name=name,
            baseline=NETWORK,
            predicted=rows.predicted,
            confidence=rows.lower,
            bounds={"plain": (rows.lower, rows.upper)},
            has_bands=False,
        ),
        settings=settings_of_cells(settings, kind, None if knn is None else knn.neighbour_count),
        admit=outcome,
        selective=(SelectiveMethod(name, rows.predicted, rows.admitted, rows.lower),),
        parameters=words,
    )


def _rival(
    snapshot: AbersSnapshot, points: PointsToJudge, neighbour_count: int, memory_budget: int
) -> tuple[AdmitOutcome | None, tuple[tuple[str, str], ...]]:
    """What Venn-ADMIT makes of the points, None if it is left out, and its name and words."""
    settings, view = snapshot.calibration.abers_settings, points.rows.approximation
    assert view is not None, "there are neighbours"
    outcome, words = admit_rival(
        points.held_out,
        points.vp_vectors,
        view,
        points.own_vectors,
        make_settings(
            points.classifier.class_count, neighbour_count, alpha=settings.alpha, thresholds=settings.thresholds
        ),
        neighbour_count=neighbour_count,
        eta_loc=snapshot.parameters.eta_loc,
        memory_budget=memory_budget,
    )
    return outcome, (("Venn-ADMIT", words),)
