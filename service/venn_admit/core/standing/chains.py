"""The thresholds of a standing certificate, fixed by the proposing points before the first label that counts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn_admit.core.calibrators.certification import ClassKind, Kind, OneClass
from venn_admit.core.calibrators.certified.chains import nested_paths, share_grid
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
    """The steps of one class, in the order in which they are certified.

    Attributes:
        shares: (P,) float64, the thresholds on g, the share right that is foretold, from strict to liberal, inf for
            never; none for a true class, whose points have those of their predicted classes.
        scores: (P,) float64, those on the score that follow.
        largest: (P,) int64 >= 1, M, the most points of the class that each step admits of a proposing document; none
            for a class that is not tested.
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
        classes: (C,) those of each predicted class or, of a path, (2 C,) of the predicted and then of the true classes.
        at_start: The number of documents whose labels are there when it begins, on which one gambler bets once; 0 if
            there is no such gambler.
        is_path: Whether true classes are tested, which couple the thresholds: then each step is a policy, all classes
            have as many of them, and one is certified once it is for every class that is tested.
    """

    alpha: float
    level: float
    classes: tuple[ClassChain, ...]
    at_start: int = 0
    is_path: bool = False

    @property
    def predicted(self) -> tuple[ClassChain, ...]:
        """(C,) those of the predicted classes, which have the thresholds."""
        return self.classes[: len(self.classes) // 2] if self.is_path else self.classes

    @property
    def tested(self) -> list[int]:
        """The places of the classes that are tested."""
        return [place for place, of in enumerate(self.classes) if len(of.largest)]

    @property
    def parts(self) -> int:
        """Into how many parts the level is divided: what must hold for all classes together is tested at all of it."""
        return 1 if self.is_path else len(self.tested)

    def named(self, place: int) -> OneClass:
        """Return the class that has a place."""
        kind, number = divmod(place, len(self.predicted))
        return list(ClassKind)[kind], number

    def rows(self, place: int, points: CertificatePoints) -> BoolArray:
        """Return which points are of the class that has a place, (n,) bool."""
        kind, number = self.named(place)
        found: BoolArray = points.classes(kind) == number
        return found

    def place(self, kind: ClassKind, number: int) -> int:
        """Return the place of a class.

        Args:
            kind: Its kind.
            number: Its number.
        """
        return number + len(self.predicted) * list(ClassKind).index(kind)

    def entered(self, points: CertificatePoints) -> IntArray:
        """Return the first step that admits each point, (n,) int64; the number of steps of its class if none does."""
        found = np.empty(len(points.score), dtype=np.int64)
        for number in np.unique(points.predicted).tolist():
            rows = np.flatnonzero(points.predicted == number)
            found[rows] = np.searchsorted(-self.classes[number].scores, -points.score[rows], side="left")
        return found


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


def standing_chain(
    proposing: CertificatePoints,
    *,
    class_count: int,
    alpha: float,
    level: float,
    kinds: Sequence[Kind] = (ClassKind.PREDICTED,),
) -> StandingChain:
    """Fix the steps of each class, beginning with the one foretold to take the fewest documents.

    Unlike the chain of a certificate that is made once, it does not depend on a number of labels.

    Args:
        proposing: Labelled points that are no evidence; scores and curves may have been fitted on them.
        class_count: C >= 2.
        alpha: In (0, 1).
        level: In (0, 1), that of this chain.
        kinds: Predicted classes, each with thresholds of its own; or true ones, or both, along one path of policies.

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
    is_path = ClassKind.TRUE in kinds
    orders = _quickest_path(forecast, alpha, kinds, level) if is_path else list(_of_each_class(forecast, alpha, level))
    classes = [ClassChain(np.empty(0), np.empty(0), _NO_STEPS, 0)] * (class_count * (2 if is_path else 1))
    for order in orders:
        scores = curves.least_scores(order.shares)
        for number in range(class_count) if is_path else (number for _, number in order.columns):
            classes[number] = ClassChain(order.shares[:, number].copy(), scores[:, number].copy(), _NO_STEPS, 0)
    chain = StandingChain(alpha, level, tuple(classes), is_path=is_path)
    for order in orders:
        for column, documents in zip(order.columns, order.documents, strict=True):
            place = chain.place(*column)
            classes[place] = replace(
                classes[place],
                largest=_largest(chain, place, len(order.shares), points),
                documents=documents,
                stakes=forecast.stakes(order.shares, column),
            )
    return replace(chain, classes=tuple(classes))


_NO_STEPS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """Steps that are tested for some classes, and about how many documents the first takes for each.

    shares: (P, C) float64, the thresholds on g.
    """

    shares: FloatArray
    columns: Sequence[OneClass]
    documents: Sequence[int]


def _of_each_class(forecast: Forecast, alpha: float, level: float) -> Iterator[_Order]:
    """Thresholds of each predicted class by itself."""
    shares = np.repeat(share_grid(alpha)[:, np.newaxis], forecast.class_count, axis=1)
    for number in forecast.present(ClassKind.PREDICTED):
        column = (ClassKind.PREDICTED, number)
        start, (needed,) = forecast.fewest(shares, [column], level / forecast.class_count)
        if start is not None and needed is not None:
            yield _Order(shares[start:], [column], [needed])


def _quickest_path(forecast: Forecast, alpha: float, kinds: Sequence[Kind], level: float) -> list[_Order]:
    """The path of nested policies that begins with the fewest documents; none if no number would do."""
    found: list[_Order] = []
    for shares in nested_paths(forecast, alpha, kinds, level):
        columns = [
            (kind, number)
            for kind in ClassKind
            for number in range(forecast.class_count)
            if kind in kinds and (kind is ClassKind.TRUE or math.isfinite(shares[-1, number]))
        ]
        start, needed = forecast.fewest(shares, columns, level)
        known = [one for one in needed if one is not None]
        if start is not None and len(known) == len(columns):
            found.append(_Order(shares[start:], columns, known))
    return sorted(found, key=lambda order: max(order.documents))[:1]


def _largest(chain: StandingChain, place: int, steps: int, points: CertificatePoints) -> IntArray:
    """The most points of a class that each step admits of a document, at least 1."""
    found = np.ones(steps, dtype=np.int64)
    for part in in_blocks(points.take(chain.rows(place, points)), steps):
        found = np.maximum(found, document_counts(part, chain.entered(part), steps)[0].max(axis=0))
    return found


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


def document_counts(points: CertificatePoints, entered: IntArray, steps: int) -> tuple[IntArray, IntArray]:
    """Count what each step admits of each document, and how much of it is right.

    Args:
        points: Points of one class, sorted by the numbers of their documents.
        entered: (n,) int64 in [0, P], the first step that admits each.
        steps: P.

    Returns:
        (documents, P) int64 each, by the numbers of the documents.
    """
    admitted, right = _sums(points, entered, steps, None)
    return admitted, right


def document_weights(points: CertificatePoints, entered: IntArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Add up the weights of the same points, (documents, P) float64 each, in the order of the points."""
    admitted, right = _sums(points, entered, steps, points.weights)
    return admitted, right


def _sums(
    points: CertificatePoints, entered: IntArray, steps: int, weights: FloatArray | None
) -> Iterator[NDArray[Any]]:
    document = _is_new(points.document).cumsum() - 1
    shape = (int(document.max(initial=-1)) + 1, steps + 1)
    cell = document * shape[1] + entered
    for rows in (np.ones(len(cell), dtype=np.bool_), points.predicted == points.label):
        own = None if weights is None else weights[rows]
        yield np.bincount(cell[rows], own, minlength=shape[0] * shape[1]).reshape(shape)[:, :-1].cumsum(axis=1)
