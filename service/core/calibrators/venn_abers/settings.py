"""The settings of a Venn-Abers calibrator: defaults and checks (docs/PROCEDURE.md, sections 6 and 9)."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from venn_admit.service.core.calibrators.settings import check_alpha, check_bin_edges, check_thresholds
from venn_admit.service.errors import InvalidInputError


class ScoreKind(StrEnum):
    """What ranks the predictions of a cell by how likely they are right."""

    NETWORK = "network"
    RELIABILITY = "reliability"


AUTO = "auto"
"""Leaves the kind of score to `crossfit.choose_score`."""


@dataclass(frozen=True, slots=True)
class VennAbersSettings:
    """The settings of a Venn-Abers calibrator.

    Attributes:
        alpha: Error level, an exact decimal in (0, 1).
        bin_edges: Ascending lower edges of the bins of q, the first of them 0; by default there is one bin.
        thresholds: (C,) least p0 for each predicted class, each >= 1 - alpha.
        score: The kind of score; None for `auto`.
    """

    alpha: Decimal
    bin_edges: tuple[int, ...]
    thresholds: tuple[Decimal, ...]
    score: ScoreKind | None


def make_venn_abers_settings(
    class_count: int,
    neighbour_count: int,
    *,
    alpha: Decimal = Decimal("0.1"),
    bin_edges: tuple[int, ...] = (0,),
    thresholds: tuple[Decimal, ...] | None = None,
    score: str = AUTO,
) -> VennAbersSettings:
    """Return checked settings.

    Args:
        class_count: C >= 2.
        neighbour_count: K >= 1.
        alpha: As in `VennAbersSettings`.
        bin_edges: As in `VennAbersSettings`.
        thresholds: As in `VennAbersSettings`; None makes every threshold 1 - alpha.
        score: `network`, `reliability` or `auto`.

    Raises:
        InvalidInputError: The settings do not fit the classifier.

    Examples:
        >>> make_venn_abers_settings(2, 25).thresholds
        (Decimal('0.9'), Decimal('0.9'))
    """
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")
    check_alpha(alpha)
    check_bin_edges(bin_edges, neighbour_count)
    if thresholds is None:
        thresholds = (1 - alpha,) * class_count
    check_thresholds(thresholds, alpha, class_count)
    if score not in {AUTO, *ScoreKind}:
        raise InvalidInputError(f"the score must be {AUTO}, {' or '.join(ScoreKind)}; got {score}")
    return VennAbersSettings(
        alpha=alpha,
        bin_edges=bin_edges,
        thresholds=thresholds,
        score=None if score == AUTO else ScoreKind(score),
    )
