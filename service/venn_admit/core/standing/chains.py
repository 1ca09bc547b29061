"""The thresholds of a standing certificate, fixed by the proposing points before the first label that counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.chains import share_grid
from venn_admit.core.calibrators.certified.curves import fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import Forecast
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, check_points
from venn_admit.core.monitoring.anytime.games import BLOCK_VALUES
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class ClassChain:
    """The thresholds of one predicted class, in the order in which they are certified.

    Attributes:
        shares: (P,) float64, the thresholds on g, the share right that is foretold, from strict to liberal; P is 0 for
            a class that is not tested.
        scores: (P,) float64, those on the score that follow.
        largest: (P,) int64 >= 1, M, the most points that each admits of a proposing document.
        documents: About how many the first takes, as the proposing points foretell; 0 if there is none.
        stakes: (P,) float64, those with which wealth grows fastest, as the proposing points foretell; None in chains
            from before they were foretold, whose gamblers start alike.
    """

    shares: FloatArray
    scores: FloatArray
    largest: IntArray
    documents: int
    stakes: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StandingChain:
    """What a standing certificate tests.

    Attributes:
        alpha: In (0, 1).
        level: The chance, in (0, 1), that any threshold which falls short is ever certified.
        classes: (C,) those of each predicted class.
        at_start: The number of documents whose labels are there when it begins, on which one gambler bets once; 0 if
            there is no such gambler.
    """

    alpha: float
    level: float
    classes: tuple[ClassChain, ...]
    at_start: int = 0

    @property
    def tested(self) -> list[int]:
        """The numbers of the predicted classes that have thresholds."""
        return [number for number, of in enumerate(self.classes) if len(of.scores)]


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
    never = ClassChain(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 0)
    chains = [never] * class_count
    for number in forecast.present(ClassKind.PREDICTED):
        start, needed = forecast.fewest(shares, [(ClassKind.PREDICTED, number)], level / class_count)
        if start is not None and needed[0] is not None:
            of_class = scores[start:, number].copy()
            own = points.take(points.predicted == number)
            largest = np.ones(len(of_class), dtype=np.int64)
            for part in in_blocks(own, len(of_class)):
                largest = np.maximum(largest, document_counts(part, of_class)[0].max(axis=0))
            stakes = forecast.stakes(shares[start:], number)
            chains[number] = ClassChain(shares[start:, number].copy(), of_class, largest, needed[0], stakes)
    return StandingChain(alpha, level, tuple(chains))


def in_blocks(points: CertificatePoints, values: int) -> Iterator[CertificatePoints]:
    """Yield points by whole documents, in the order of their numbers, in parts whose arrays stay small.

    values: how many numbers are computed of each document.
    """
    # Weights are added up in an order of their own, so that the order of rows does not show in a sum.
    keys = (points.document,) if points.weight is None else (points.weight, points.score, points.document)
    ordered = points.take(np.lexsort(keys))
    starts = np.flatnonzero(_is_new(ordered.document))[:: max(BLOCK_VALUES // values, 1)]
    for start, end in pairwise([*starts.tolist(), len(ordered.score)]):
        yield ordered.take(slice(start, end))


def _is_new(document: IntArray) -> BoolArray:
    """Whether each point is the first of its document, if they are sorted by document."""
    is_new: BoolArray = np.diff(document, prepend=document[:1] - 1) != 0
    return is_new


def document_counts(points: CertificatePoints, scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Count what each threshold admits of each document, and how much of it is right.

    Args:
        points: Points of one predicted class, sorted by the numbers of their documents.
        scores: (P,) float64, thresholds from strict to liberal.

    Returns:
        (documents, P) int64 each, by the numbers of the documents.
    """
    admitted, right = _sums(points, scores, None)
    return admitted, right


def document_weights(points: CertificatePoints, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Add up the weights of the same points, (documents, P) float64 each, in the order of the points."""
    admitted, right = _sums(points, scores, points.weights)
    return admitted, right


def _sums(points: CertificatePoints, scores: FloatArray, weights: FloatArray | None) -> Iterator[NDArray[Any]]:
    document = _is_new(points.document).cumsum() - 1
    enters = np.searchsorted(-scores, -points.score, side="left")
    shape = (int(document.max(initial=-1)) + 1, len(scores) + 1)
    cell = document * shape[1] + enters
    for rows in (np.ones(len(cell), dtype=np.bool_), points.predicted == points.label):
        own = None if weights is None else weights[rows]
        yield np.bincount(cell[rows], own, minlength=shape[0] * shape[1]).reshape(shape)[:, :-1].cumsum(axis=1)
