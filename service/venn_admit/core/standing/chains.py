"""The thresholds of a standing certificate, fixed by the proposing points before the first label that counts."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.chains import share_grid
from venn_admit.core.calibrators.certified.curves import fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import Forecast
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, check_points
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class ClassChain:
    """The thresholds of one predicted class, in the order in which they are certified.

    Attributes:
        scores: (P,) float64, from strict to liberal; P is 0 for a class that is not tested.
        largest: (P,) int64 >= 1, M, the most points that each admits of a proposing document.
    """

    scores: FloatArray
    largest: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class StandingChain:
    """What a standing certificate tests.

    Attributes:
        alpha: In (0, 1).
        level: The chance, in (0, 1), that any threshold which falls short is ever certified.
        classes: (C,) those of each predicted class.
    """

    alpha: float
    level: float
    classes: tuple[ClassChain, ...]


def level_of_chain(level: float, number: int) -> float:
    """Return the part of a level that the k-th chain of a classifier has; those of all chains add up to the level.

    Args:
        level: In (0, 1), 1 - confidence.
        number: k >= 1.

    Examples:
        >>> level_of_chain(0.06, 2)
        0.01
    """
    return level / (number * (number + 1))


def standing_chain(proposing: CertificatePoints, *, class_count: int, alpha: float, level: float) -> StandingChain:
    """Fix the thresholds of each predicted class, beginning with the one foretold to take the fewest documents.

    Unlike the chain of a certificate that is made once, it does not depend on a number of labels.

    Args:
        proposing: Labelled points that are no evidence; scores and curves may have been fitted on them.
        class_count: C >= 2.
        alpha: In (0, 1).
        level: In (0, 1), that of this chain.

    Raises:
        InvalidInputError: An argument or an array is out of range, or there are fewer than two documents.
    """
    for name, value in (("alpha", alpha), ("the level", level)):
        if not 0 < value < 1:
            raise InvalidInputError(f"{name} must lie strictly between 0 and 1; got {value}")
    check_points("the proposing points", proposing, class_count)
    points, _ = canonical(proposing)
    curves = fit_curves(points, class_count)
    shown = Evidence(points.document_count, len(points.score), bounded=True)
    forecast = Forecast(points, curves, losses_of(None, class_count), alpha, shown)
    shares = np.repeat(share_grid(alpha)[:, np.newaxis], class_count, axis=1)
    scores = curves.least_scores(shares)
    never = ClassChain(np.empty(0), np.empty(0, dtype=np.int64))
    chains = [never] * class_count
    for number in forecast.present(ClassKind.PREDICTED):
        start, _ = forecast.fewest(shares, [(ClassKind.PREDICTED, number)], level / class_count)
        if start is not None:
            of_class = scores[start:, number].copy()
            admitted, _ = document_counts(points, points.predicted == number, of_class)
            chains[number] = ClassChain(of_class, np.maximum(admitted.max(axis=0), 1))
    return StandingChain(alpha, level, tuple(chains))


def document_counts(points: CertificatePoints, rows: BoolArray, scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Count what each threshold admits of the documents that have one of some points, and how much of it is right.

    Args:
        points: Points with the numbers of their documents.
        rows: (n,) bool, those of one predicted class.
        scores: (P,) float64, thresholds from strict to liberal.

    Returns:
        (documents, P) int64 each, by the numbers of the documents.
    """
    _, document = np.unique(points.document[rows], return_inverse=True)
    enters = np.searchsorted(-scores, -points.score[rows], side="left")
    right = points.predicted[rows] == points.label[rows]
    shape = (int(document.max(initial=-1)) + 1, len(scores) + 1)
    cell = document * shape[1] + enters
    admitted, of_right = (
        np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)[:, :-1].cumsum(axis=1)
        for cells in (cell, cell[right])
    )
    return admitted, of_right
