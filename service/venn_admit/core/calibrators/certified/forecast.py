"""What the proposing points foretell of policies: what they admit, what it costs, and how likely they pass.

Args:
    shares: (P, C) float64, the thresholds on g.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind
from venn_admit.core.calibrators.certified.curves import ShareCurves, fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail, largest_passing
from venn_admit.core.calibrators.certified.losses import Losses, LossRanges, entries
from venn_admit.core.calibrators.certified.points import CertificatePoints, Coverage, covers
from venn_admit.core.calibrators.certified.search import Options
from venn_admit.core.calibrators.certified.shares.mixes import confusion_counts
from venn_admit.core.types import BoolArray, FloatArray, IntArray

Column = tuple[Kind, int]
"""A class that is asked for: its kind and its number."""


class Forecast:
    """What the proposing points foretell of policies: what they admit, and with which chance they pass.

    Errors are foretold by g, whose noise is far below that of the few labels, and what one costs by the errors seen.
    """

    def __init__(
        self,
        points: CertificatePoints,
        curves: ShareCurves,
        losses: Losses,
        alpha: float,
        evidence: Evidence,
        coverage: Coverage | None = None,
    ) -> None:
        self._alpha, self._evidence, self._of, self.curves = alpha, evidence, points, curves
        self._documents = points.document_count
        self._losses, self.class_count = losses, len(losses.matrix)
        self._share = curves.shares(points.score, points.predicted)
        self._covered = np.ones(len(points.score), dtype=np.bool_) if coverage is None else covers(coverage, points)
        self._ranked = self._rank(self._covered)
        self._missed = confusion(points.take(self._covered), self.class_count)
        self._cost_of_true = self._missed * losses.matrix.T
        columns = [(ClassKind.PREDICTED, number) for number in range(self.class_count)]
        self._per_error = np.array([self._error(column)[0] for column in columns])
        self._of_group: dict[Column, tuple[_Ranked, float]] = {}
        self._clusterings: dict[Kind, _Clustering] = {}

    def error_shares(self, alpha: float) -> FloatArray:
        """Return the share wrong of each class at which its mean loss is alpha, (C,), at most 0.5 or alpha."""
        with np.errstate(divide="ignore"):
            return np.minimum(alpha / self._per_error, max(alpha, 0.5))

    def counts(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the admitted points of each predicted class and the wrong ones among them, (P, C) each."""
        return self._ranked.counts(shares)

    def within(self, coverage: Coverage) -> "Forecast":
        """Return what is foretold if other groups are never admitted, by curves of what is left.

        Args:
            coverage: The groups that are admitted.
        """
        curves = fit_curves(self._of.take(covers(coverage, self._of)), self.class_count)
        return Forecast(self._of, curves, self._losses, self._alpha, self._evidence, coverage)

    def group_count(self, kind: GroupKind) -> int:
        """Return the number of groups of an attribute."""
        return len(self._of.group(kind.attribute).values)

    def present(self, kind: Kind) -> list[int]:
        """Return the numbers of the classes of a kind that have points to propose with."""
        classes = self._of.classes(kind)[self._covered]
        numbers: list[int] = np.unique(classes[classes >= 0]).tolist()
        return numbers

    def of_columns(self, shares: FloatArray, columns: Sequence[Column]) -> tuple[FloatArray, FloatArray]:
        """Return the admitted points of the classes asked for and what they cost, (P, h) each."""
        admitted, wrong = self.counts(shares)
        kinds = {
            ClassKind.PREDICTED: (admitted, wrong * self._per_error),
            ClassKind.TRUE: (admitted - wrong + wrong @ self._missed, wrong @ self._cost_of_true),
        }
        found = [
            self._group_counts((kind, number), shares)
            if isinstance(kind, GroupKind)
            else (kinds[kind][0][:, number], kinds[kind][1][:, number])
            for kind, number in columns
        ]
        return np.stack([one for one, _ in found], axis=1), np.stack([other for _, other in found], axis=1)

    def chances(self, shares: FloatArray, columns: Sequence[Column], level: float) -> FloatArray:
        """Return the chance of each class asked for to pass at a level, (P, h), foretold with one more error."""
        admitted, loss = self.of_columns(shares, columns)
        mean = (np.array([self._error(column)[0] for column in columns]) + loss) / (1 + admitted)
        ranges = self._losses.ranges(columns, self._of)
        by_points = self._evidence.single_points and ranges.are_single
        found = np.empty_like(mean)
        for place, column in enumerate(columns):
            for step, (a, e) in enumerate(zip(admitted[:, place].tolist(), mean[:, place].tolist(), strict=True)):
                if by_points:
                    found[step, place] = self._binomial(a, e, float(ranges.most[place]), level)
                else:
                    found[step, place] = self._normal(column, a, e, level)
        return found

    def fewest(
        self, shares: FloatArray, columns: Sequence[Column], level: float
    ) -> tuple[int | None, list[int | None]]:
        """Return the policy that takes the fewest documents for all classes to be likely to pass, and those of each.

        If there is none, both are None.
        """
        found = self.needed(shares, columns, level)
        most = {place: max(known) for place, row in enumerate(found) if (known := _all_known(row))}
        best = min(most, key=lambda place: most[place], default=None)
        return best, [None] * len(columns) if best is None else found[best]

    def needed(self, shares: FloatArray, columns: Sequence[Column], level: float) -> list[list[int | None]]:
        """Return, for each policy, the documents with which each class is likely to pass; None if no number does."""
        admitted, loss = self.of_columns(shares, columns)
        found = []
        for at_step in zip(admitted, loss / np.maximum(admitted, 1.0), strict=True):
            of_columns = zip(columns, *(values.tolist() for values in at_step), strict=True)
            found.append([self._needed(column, a, e, level) for column, a, e in of_columns])
        return found

    def stakes(self, shares: FloatArray, column: Column) -> FloatArray:
        """Return the part of what a document can cost at most that is best staked against too many errors, (P,).

        Wealth grows fastest with it if right and wrong points are as foretold (Kelly 1956). It is 0 or less if that
        many errors are foretold.

        Args:
            column: The class.
        """
        admitted, loss = (of[:, 0] for of in self.of_columns(shares, [column]))
        excess = loss / (self._alpha * np.maximum(admitted, 1.0))
        stakes: FloatArray = (1 - excess) * self._most(column, admitted) / self._clustering(column[0]).factor[column[1]]
        return stakes

    def options(self, shares: FloatArray) -> Options:
        """Return what there is to choose from for each predicted class: never, or one of its thresholds on g."""
        admitted, wrong = self.counts(shares)
        first = np.zeros((self.class_count, 1))
        return Options(
            threshold=np.concatenate([np.full_like(first, np.inf), shares.T], axis=1),
            admitted=np.concatenate([first, admitted.T], axis=1),
            wrong=np.concatenate([first, wrong.T], axis=1)[:, :, np.newaxis] * self._missed[:, np.newaxis, :],
            loss=self._losses.matrix_of(ClassKind.PREDICTED).T,
            loss_of_true=self._losses.matrix.T,
        )

    def reserve(self, standard_errors: float, kind: ClassKind, admitted: FloatArray) -> FloatArray:
        """Return by how much the loss must fall short of alpha, so that a class passes by standard errors.

        Args:
            standard_errors: >= 0.
            admitted: (C, ...) float64, the admitted points of each class.
        """
        of_kind = self._clustering(kind)
        shape = (-1, *[1] * (admitted.ndim - 1))
        variance = of_kind.variance.reshape(shape) * admitted / self._documents
        deviation = np.sqrt(variance * of_kind.factor.reshape(shape))
        bound = np.broadcast_to((of_kind.excess * of_kind.most).reshape(shape), admitted.shape)
        return self._evidence.reserve(standard_errors, deviation, bound) * self._documents

    def _group_counts(self, column: Column, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The admitted points of a group and what they cost, (P,) each; it is as much more as it has more than g says.

        Its own errors are few, and the curves know nothing of groups: one error is added to both.
        """
        if column not in self._of_group:
            kind, number = column
            rows = self._of.classes(kind) == number
            predicted, one = self._of.predicted[rows], self._error(column)[0]
            seen = math.fsum(self._losses.of(self._of.label[rows], predicted, kind).tolist())
            foretold = math.fsum(((1 - self._share[rows]) * self._per_error[predicted]).tolist())
            factor = (one + seen) / (one + foretold) if one else 1.0
            self._of_group[column] = self._rank(rows & self._covered), factor
        ranked, factor = self._of_group[column]
        admitted, wrong_by_class = ranked.counts(shares)
        of_group = admitted.sum(axis=1)
        most = entries(self._losses.matrix_of(column[0]), column, self._of).max()
        return of_group, np.minimum(most * of_group, factor * (wrong_by_class * self._per_error).sum(axis=1))

    def _rank(self, taken: BoolArray) -> "_Ranked":
        """Some of the points, as a policy comes to them."""
        negated, wrong, most = [], [], []
        for number in range(self.class_count):
            rows = np.flatnonzero(taken & (self._of.predicted == number))
            rows = rows[np.argsort(-self._share[rows], kind="stable")]
            negated.append(-self._share[rows])
            wrong.append(np.r_[0.0, np.cumsum(1 - self._share[rows])])
            most.append(_largest(self._of.document[rows]))
        return _Ranked(negated, wrong, most)

    def _clustering(self, kind: Kind) -> "_Clustering":
        if kind not in self._clusterings:
            classes = self._of.classes(kind)
            columns = [(kind, number) for number in range(max(self.class_count, 1 + int(classes.max())))]
            largest = np.array([self._error(column)[1] for column in columns])
            # Errors that cost no more than alpha could not make the mean that much.
            variance = self._alpha * (np.where(largest > self._alpha, largest, 2 * self._alpha) - self._alpha)
            ranges = self._losses.ranges(columns, self._of)
            loss = self._losses.of(self._of.label, self._of.predicted, kind)
            self._clusterings[kind] = _clustering(self._of, classes, loss, variance, ranges, self._alpha)
        return self._clusterings[kind]

    def _error(self, column: Column) -> tuple[float, float]:
        """What an error of a class costs on average, and on average over what errors cost, as foretold."""
        of_one = self._losses.matrix_of(column[0])
        missed, cost, square = (
            entries(self._missed.T * of, column, self._of).sum() for of in (np.ones(1), of_one, np.square(of_one))
        )
        return float(cost / missed), float(square / cost) if cost else 0.0

    def _binomial(self, admitted: float, mean: float, value: float, level: float) -> float:
        """The chance of points that cost nothing or one value, on average `mean`."""
        count = round(admitted / len(self._share) * self._evidence.points)
        return chance_of_points(count, mean, value, self._alpha, level)

    def _normal(self, column: Column, admitted: float, mean: float, level: float) -> float:
        gain = (self._alpha - mean) * admitted / self._documents
        if gain <= 0:
            return 0.0
        deviation, bound = self._spread(column, admitted)
        errors = self._evidence.expected(np.array([gain]), np.array([deviation]), np.array([bound]))[0]
        return chance_of_standard_errors(float(errors), level)

    def _needed(self, column: Column, admitted: float, mean: float, level: float) -> int | None:
        deviation, bound = self._spread(column, admitted)
        gain = (self._alpha - mean) * admitted / self._documents
        bounded = self._evidence.bounded or self._evidence.single_points
        return documents_needed(gain, deviation, deviation, bound, level=level, bounded=bounded)

    def _spread(self, column: Column, admitted: float) -> tuple[float, float]:
        """The standard deviation of e - alpha a over documents, and the largest value that it has."""
        kind, number = column
        of_kind = self._clustering(kind)
        most = float(self._most(column, np.array([admitted]))[0])
        variance = of_kind.variance[number] * admitted / self._documents * of_kind.factor[number]
        return math.sqrt(variance), float(of_kind.excess[number]) * most

    def _most(self, column: Column, admitted: FloatArray) -> IntArray:
        """The most points of a document among the admitted ones of a class, (P,); admitted: how many there are."""
        kind, number = column
        if kind is ClassKind.PREDICTED:
            return self._ranked.most[number][np.rint(admitted).astype(np.int64)]
        return np.full(len(admitted), self._clustering(kind).most[number])


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """Points of each predicted class, from the largest g on.

    negated: -g of each. wrong: how many of the first 0, 1, ... are foretold to be wrong. most: `_largest` of them.
    """

    negated: list[FloatArray]
    wrong: list[FloatArray]
    most: list[IntArray]

    def counts(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The admitted points of each predicted class and the wrong ones among them, (P, C) each."""
        places = [np.searchsorted(of, -shares[:, c], side="right") for c, of in enumerate(self.negated)]
        wrong = [of[place] for of, place in zip(self.wrong, places, strict=True)]
        return np.stack(places, axis=1).astype(np.float64), np.stack(wrong, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Clustering:
    """How documents of the classes of a kind depart from independent points.

    variance: (C,) that of the loss of a point, at the mean alpha. factor: (C,) how much more it varies over documents.
    excess: (C,) the most by which a point exceeds alpha. most: (C,) the points of the largest document.
    """

    variance: FloatArray
    factor: FloatArray
    excess: FloatArray
    most: IntArray


def chance_of_points(count: int, mean: float, value: float, alpha: float, level: float) -> float:
    """Return the chance that the binomial test passes, if each of `count` admitted points costs nothing or `value`."""
    if value <= alpha:
        return 1.0 if count else 0.0
    allowed = largest_passing(count, alpha / value, level)
    return 0.0 if allowed < 0 or mean >= value else binomial_tail(allowed, count, mean / value)


def chance_of_standard_errors(errors: float, level: float) -> float:
    """Return the chance that a test passes that is expected to by some standard errors, by the normal approximation."""
    return NormalDist().cdf(errors - NormalDist().inv_cdf(1 - level))


def _all_known(numbers: list[int | None]) -> list[int]:
    """The numbers, or none of them if one is not known."""
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else []


def _largest(document: IntArray) -> IntArray:
    """The points of the largest document among the first 0, 1, ... points, (n + 1,) int64, at least 1."""
    order = np.argsort(document, kind="stable")
    alike = document[order]
    most = np.ones(len(document) + 1, dtype=np.int64)
    most[1 + order] += np.arange(len(alike)) - np.searchsorted(alike, alike)
    return np.maximum.accumulate(most)


def _clustering(
    points: CertificatePoints,
    classes: IntArray,
    loss: FloatArray,
    variance: FloatArray,
    ranges: LossRanges,
    alpha: float,
) -> _Clustering:
    """classes: (n,) int64, -1 for a point that is in none; loss: (n,) float64; variance: (C,), as in `_Clustering`."""
    rows, count = classes >= 0, len(variance)
    cell = points.document[rows] * count + classes[rows]
    cells = points.document_count * count
    size = np.bincount(cell, minlength=cells).reshape(-1, count)
    total = np.bincount(cell, weights=loss[rows], minlength=cells).reshape(-1, count)
    independent = variance * np.maximum(size.mean(axis=0), 1 / points.document_count)
    factor = np.var(total - alpha * size, axis=0, ddof=1) / independent
    most = np.maximum(size.max(axis=0), 1)
    return _Clustering(variance, np.maximum(factor, 1.0), ranges.largest_excess(alpha), most)


def confusion(points: CertificatePoints, class_count: int) -> FloatArray:
    """Return how errors of a predicted class are shared out to the true classes, (C, C) float64, each row 1 in all."""
    wrong = points.predicted != points.label
    seen = confusion_counts(points.predicted[wrong], points.label[wrong], class_count)
    usual = np.bincount(points.label, minlength=class_count) + 1.0
    prior = np.repeat((usual / usual.sum())[np.newaxis], class_count, axis=0)
    np.fill_diagonal(prior, 0.0)
    shared = seen + prior / prior.sum(axis=1, keepdims=True)
    parts: FloatArray = shared / shared.sum(axis=1, keepdims=True)
    return parts
