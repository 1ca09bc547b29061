"""What a decision of Venn-Abers rests on besides what is stored of it: features, its cell, and the steps around it."""

from collections.abc import Mapping
from math import inf

from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.venn_abers.cells import CellEvidence
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.calibrators.venn_abers.scores import FEATURES, reliability_features
from venn_admit.core.types import FloatArray
from venn_admit.methods.method import CellBasis, PointsToDecide, StepBounds


def cell_basis(
    evidence: CellEvidence, *, kind: ScoreKind, features: Mapping[str, float], class_count: int, threshold: float | None
) -> CellBasis:
    """Return the basis of one point. features: as `score_features` gives them. threshold: what admits; None: never."""
    q_bin = int(evidence.cell[0]) // class_count
    step_from, step_below = float(evidence.step_score[0]), float(evidence.next_score[0])

    def bounds(lower: FloatArray, upper: FloatArray) -> StepBounds:
        return StepBounds(float(lower[0]), float(upper[0]))

    return CellBasis(
        score_kind=str(kind),
        features=features,
        q_bin=q_bin,
        cell_size=int(evidence.cell_size[0]),
        cell_right=int(evidence.cell_right[0]),
        step_from=step_from,
        step_below=step_below,
        # The first step of a cell has none before it, the last none after it.
        before=bounds(evidence.lower_before, evidence.upper_before) if step_from > -inf else None,
        own=bounds(evidence.bounds.lower, evidence.bounds.upper),
        after=bounds(evidence.lower_after, evidence.upper_after) if step_below < inf else None,
        threshold=threshold,
    )


def score_features(
    kind: ScoreKind, model: ReliabilityModel | None, points: PointsToDecide, neighbour_count: int | None
) -> dict[str, float]:
    """Return what the score of one point is made of; nothing if it is the network's."""
    if kind is ScoreKind.NETWORK or model is None or points.approximation is None or neighbour_count is None:
        return {}
    found = reliability_features(
        points.require_logits(),
        points.approximation,
        neighbour_count=neighbour_count,
        median_distance=model.median_distance,
    )
    return dict(zip(FEATURES, found[:, 0].tolist(), strict=True))
