"""What the strongest promise and certificates would admit, foretold from the points that propose.

Their labels are no evidence, so that looking at what is foretold takes nothing from a certificate, and no choice by it
has to be counted (docs/PROCEDURE.md, section 10).
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.calibrators.arguments import read_settings
from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, select_on_average
from venn_admit.core.calibrators.certification import ClassKind, Kind
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells, foretell_cells, proposing_rows
from venn_admit.core.calibrators.venn_abers.crossfit import cross_fit
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel, scored_points
from venn_admit.core.comparison.confidence import fit_temperature
from venn_admit.core.comparison.held_out import HeldOutPoints, ViewedPoints
from venn_admit.core.comparison.selective import admitted_by_softmax
from venn_admit.core.method_names import VENN_ABERS
from venn_admit.core.types import BoolArray, join_approximations

PROMISES: tuple[dict[str, list[str]], ...] = (
    {},
    {"certify": list(ClassKind)},
    {"certify": [ClassKind.PREDICTED]},
)
"""What is asked for: the strongest promise, and certificates of both kinds of classes and of predicted ones."""


@dataclass(frozen=True, slots=True, eq=False)
class ForetoldCandidate:
    """A setting, and what it is expected to admit of the m points that propose.

    Attributes:
        certified: The kinds of classes that are expected to be certified; None for none.
        admitted: (m,) bool.
    """

    settings: VennAbersSettings
    certified: tuple[Kind, ...] | None
    admitted: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Proposing:
    """The points that propose, and the numbers of the others that there are so far, which are evidence."""

    points: HeldOutPoints
    evidence_documents: int
    evidence_points: int


def proposing_points(knn: HeldOutPoints | None, mc: HeldOutPoints, *, seed: int) -> Proposing:
    """Return the points of `knn` or, without enough of them, those of `mc` that would propose beside them.

    Args:
        knn: None if there are none.
    """
    parts = [mc] if knn is None else [knn, mc]
    keys = [key for part in parts for key in part.keys]
    of_knn = np.repeat([part is knn for part in parts], [len(part.keys) for part in parts])
    proposes = proposing_rows(keys, of_knn, seed=seed)
    rows, others = np.flatnonzero(proposes), np.flatnonzero(~proposes)
    views = [part.seen.view for part in parts if part.seen.view is not None]
    points = HeldOutPoints(
        [keys[row] for row in rows.tolist()],
        np.concatenate([part.label for part in parts])[rows],
        ViewedPoints(
            np.concatenate([part.seen.network_logits for part in parts])[rows],
            join_approximations(views).take(rows) if views else None,
        ),
    )
    return Proposing(points, len({keys[row] for row in others.tolist()}), len(others))


def foretold_candidates(
    proposing: Proposing,
    *,
    class_count: int,
    neighbour_count: int | None,
    alpha: Decimal,
    seed: int,
    reliability: ReliabilityModel | None,
    grows: Fraction,
) -> list[ForetoldCandidate]:
    """Foretell each of the promises; none can be if there are fewer than two documents to propose or to test with.

    Args:
        proposing: The points that propose, and how much evidence there is beside them.
        reliability: The model of that score; None if there is none, which leaves the network's.
        grows: How many times as much evidence there will be.
    """
    points = proposing.points
    documents = round(grows * proposing.evidence_documents)
    if min(len(set(points.keys)), documents) < 2:
        return []
    score = {} if reliability is not None or neighbour_count is None else {"score": str(ScoreKind.NETWORK)}
    temperature = fit_temperature(points.seen.network_logits, points.label)
    by_softmax = admitted_by_softmax(points.seen.network_logits, temperature, alpha)
    found = []
    for asked in PROMISES:
        settings = read_settings(
            VENN_ABERS,
            {"alpha": alpha, **score, **asked},
            class_count=class_count,
            neighbour_count=neighbour_count,
        )
        assert isinstance(settings, VennAbersSettings), "they are of that method"
        cells = _cells(points, settings, reliability, neighbour_count, seed)
        foretold = foretell_cells(
            cells,
            settings,
            documents=documents,
            points=round(grows * proposing.evidence_points),
            by_softmax=by_softmax,
        )
        certified, admitted = None, foretold.admitted
        if foretold.policy is not None:
            certified = foretold.kinds
        elif settings.promise is AskedPromise.STRONGEST:
            policy = select_on_average(cells, NO_TRAFFIC, class_count=class_count, alpha=alpha).policy
            admitted = admit(cells.points.score, cells.points.predicted, policy)
        found.append(ForetoldCandidate(settings, certified, admitted))
    return found


def _cells(
    points: HeldOutPoints,
    settings: VennAbersSettings,
    reliability: ReliabilityModel | None,
    neighbour_count: int | None,
    seed: int,
) -> LabelledCells:
    """The points under the score of the settings, or the one that `auto` takes."""
    seen = points.seen

    def scored(kind: ScoreKind) -> LabelledCells:
        of_kind = scored_points(kind, reliability, seen.network_logits, seen.view, neighbour_count=neighbour_count)
        return LabelledCells(of_kind, points.label, points.keys)

    if settings.score is not None:
        return scored(settings.score)
    by_kind = {kind: scored(kind) for kind in ScoreKind}
    network, other = by_kind[ScoreKind.NETWORK].points, by_kind[ScoreKind.RELIABILITY].points
    found = cross_fit(network, other, points.right, points.keys, seed=seed, settings=settings)
    return by_kind[found.choice.kind]
