"""Settings of each method of calibration to choose from, and what each admits of `mc` by cross-fitting.

Nothing here sees `vp`, so that whatever is chosen by it is fixed before `vp` is looked at (docs/PROCEDURE.md, section
10).
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.usable_bands import coarse_bins, kappas_to_choose_from
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.calibrators.venn_abers.settings import ScoreKind, make_venn_abers_settings
from venn_admit.core.calibrators.venn_admit.crossfit import PointsLocalizer
from venn_admit.core.comparison.held_out import HeldOutPoints
from venn_admit.core.comparison.varied import Candidate, cross_fitted_settings
from venn_admit.core.types import IntArray
from venn_admit.errors import NotReadyError

WITHOUT_VECTORS = "the classifier has logits only, and this needs vectors"
NEEDING_VECTORS = ("Venn-ADMIT", "Venn-Abers, score reliability", "bins of q")
"""What is left out of a comparison without vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """The settings to choose from.

    Attributes:
        found: Settings by method, those of a method from fine to coarse bins and from large to small kappas.
        left_out: What could not be computed, each with the reason in words.
    """

    found: tuple[Candidate, ...]
    left_out: tuple[tuple[str, str], ...]


def cross_fitted_candidates(
    mc: HeldOutPoints,
    *,
    class_count: int,
    neighbour_count: int | None,
    alpha: Decimal,
    seed: int,
    reliability: ReliabilityModel | None,
    localizer: PointsLocalizer | None,
    judged: IntArray | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> CrossFitted:
    """Cross-fit each setting on whole documents of `mc`.

    Args:
        mc: n points of `mc`, in any order.
        class_count: C.
        neighbour_count: K; None if the classifier has logits only, for which there is one setting.
        alpha: The error level, exact decimal in (0, 1).
        seed: The classifier's seed, for the folds.
        reliability: The model of that score; None if there is none, which leaves the score out.
        localizer: As in `cross_fitted_settings`.
        judged: As in `cross_fitted_settings`.
        memory_budget: In bytes.

    Raises:
        InvalidInputError: The points do not fit each other, or alpha is out of range.
    """
    cross_fit = partial(
        cross_fitted_settings,
        mc,
        class_count=class_count,
        neighbour_count=neighbour_count,
        seed=seed,
        reliability=reliability,
        localizer=localizer,
        judged=judged,
        memory_budget=memory_budget,
    )
    if neighbour_count is None:
        alone = make_venn_abers_settings(class_count, None, alpha=alpha)
        return CrossFitted(tuple(cross_fit([alone])), tuple((what, WITHOUT_VECTORS) for what in NEEDING_VECTORS))
    every, coarse, one = tuple(range(neighbour_count + 1)), coarse_bins(neighbour_count), (0,)
    base = make_settings(class_count, neighbour_count, alpha=alpha)
    bands = [
        replace(base, q_bins=edges, kappa=kappa)
        for edges in dict.fromkeys((every, coarse, one))
        for kappa in kappas_to_choose_from(alpha)
    ]
    kinds = [kind for kind in ScoreKind if kind is not ScoreKind.RELIABILITY or reliability is not None]
    cells = [
        make_venn_abers_settings(class_count, neighbour_count, alpha=alpha, q_bins=edges, score=str(kind))
        for kind in kinds
        for edges in dict.fromkeys((coarse, one))
    ]
    found: list[Candidate] = []
    left_out = []
    try:
        found += cross_fit(bands)
    except NotReadyError as error:
        left_out.append(("Venn-ADMIT", str(error)))
    left_out += [
        (f"Venn-Abers, score {kind}", "the parameters have no model of it; fit again to get one")
        for kind in ScoreKind
        if kind not in kinds
    ]
    return CrossFitted((*found, *cross_fit(cells)), tuple(left_out))
