"""What the strongest promise and certificates would admit, foretold from the points that propose.

Their labels are no evidence, so that looking at what is foretold takes nothing from a certificate, and no choice by it
has to be counted (docs/PROCEDURE.md, section 10).
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.calibrators.arguments import read_settings
from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, select_on_average
from venn_admit.core.calibrators.certification import ClassKind, Kind
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.certified.strongest import gives_way
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import foretell_cells
from venn_admit.core.comparison.held_out import ScoredSplits
from venn_admit.core.method_names import VENN_ABERS
from venn_admit.core.types import BoolArray

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


def foretold_candidates(
    splits: ScoredSplits,
    *,
    class_count: int,
    neighbour_count: int | None,
    alpha: Decimal,
    with_reliability: bool,
    grows: Fraction,
) -> list[ForetoldCandidate]:
    """Foretell each of the promises; none can be if there are fewer than two documents to propose or to test with.

    Args:
        splits: Those of `knn` and `mc`.
        with_reliability: Whether there is a model of that score; if not, the network's is taken.
        grows: How many times as much evidence there will be.
    """
    proposing, keys = splits.proposing, np.array(splits.keys)
    documents = round(grows * len(set(keys[~proposing])))
    if min(len(set(keys[proposing])), documents) < 2:
        return []
    by_softmax = splits.by_softmax(alpha)[proposing]
    score = {} if with_reliability or neighbour_count is None else {"score": str(ScoreKind.NETWORK)}
    found = []
    for asked in PROMISES:
        settings = read_settings(
            VENN_ABERS,
            {"alpha": alpha, **score, **asked},
            class_count=class_count,
            neighbour_count=neighbour_count,
        )
        assert isinstance(settings, VennAbersSettings), "they are of that method"
        kind = splits.choice(settings).kind if settings.score is None else settings.score
        cells = splits.cells(kind).take(proposing)
        foretold = foretell_cells(
            cells,
            settings,
            documents=documents,
            points=round(grows * int(np.count_nonzero(~proposing))),
            by_softmax=by_softmax,
        )
        certified, admitted = None if foretold.policy is None else foretold.kinds, foretold.admitted
        if settings.promise is AskedPromise.STRONGEST:
            # There will be many more documents than propose, so that each point stands for one of them.
            labels = replace(cells, keys=[str(row) for row in range(len(cells.keys))])
            policy = select_on_average(labels, NO_TRAFFIC, class_count=class_count, alpha=alpha).policy
            on_average = admit(cells.points.score, cells.points.predicted, policy)
            counts = [int(np.count_nonzero(of)) for of in (admitted, on_average, by_softmax)]
            if certified is None or gives_way(*counts):
                certified, admitted = None, on_average
        found.append(ForetoldCandidate(settings, certified, admitted))
    return found
