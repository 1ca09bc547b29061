"""Chains: policies in the order in which they are tested, fixed by the proposing points alone.

A chain for one predicted class tests its thresholds from strict to liberal. If true classes are asked for, which couple
the thresholds, a chain is a nested path of whole policies: one threshold on g for all classes, or those that admit most
while every class is foretold to pass by ever fewer standard errors. Each chain begins at the strictest policy whose
chance to pass is foretold to be nearly the best. Sources: Bauer (1991), *Multiple testing in clinical trials*;
Angelopoulos, Bates, Candès, Jordan & Lei (2022), *Learn then test*; docs/explanation/certificate.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.curves import ShareCurves
from venn_admit.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail, largest_passing
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.search import TOLERANCE, Limits, Options, best_choice
from venn_admit.core.types import BoolArray, FloatArray, IntArray

GRID_SIZE = 80
STRICTEST, MOST_LIBERAL = 5.0, -3.0
"""The ends of the grid of g, in logits from that of 1 - alpha; admitting everything comes after its end."""
NEARLY_BEST = 0.95
"""The part of the best foretold chance to pass that is enough to begin with."""
LEAST_CHANCE = 1e-6
"""Below it, a chance to pass is none."""
LARGEST_PRICED = 100
"""With more classes than these, only the path with one threshold for all of them is tried."""
RESERVE_ROUNDS = 2
"""How often the reserve of true classes is renewed, which depends on the policy that it yields."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The policies of a chain, from strict to liberal, each of which admits all that the one before admits.

    Attributes:
        name: `class`, `one threshold` or `by class`.
        columns: The classes that every policy is tested for: the kind, and the number of the class.
        predicted: (k,) int64, the predicted classes that it sets thresholds for; others are not looked at.
        shares: (P, k) float64, the thresholds on g, inf for never.
        scores: (P, k) float64, those on the score.
    """

    name: str
    columns: tuple["Column", ...]
    predicted: IntArray
    shares: FloatArray
    scores: FloatArray

    def from_step(self, start: int) -> "Order":
        """Return the chain without the policies before one of them."""
        return Order(self.name, self.columns, self.predicted, self.shares[start:], self.scores[start:])


Column = tuple[ClassKind, int]
"""A class that is asked for: its kind and its number."""


def share_grid(alpha: float) -> FloatArray:
    """Return the thresholds on g, from strict to liberal: equally spaced in logits, and 0.

    Args:
        alpha: In (0, 1).
    """
    middle = math.log((1 - alpha) / alpha)
    grid = 1 / (1 + np.exp(-np.linspace(middle + STRICTEST, middle + MOST_LIBERAL, GRID_SIZE)))
    return np.append(grid, 0.0)


class Forecast:
    """What the proposing points foretell of policies: what they admit, and with which chance they pass.

    Errors are foretold by g, whose noise is far below that of the few labels.
    """

    def __init__(
        self, points: CertificatePoints, curves: ShareCurves, class_count: int, alpha: float, evidence: Evidence
    ) -> None:
        self._alpha, self._evidence, self._points = alpha, evidence, len(points.score)
        self._documents = points.document_count
        self._class_count = class_count
        share = curves.shares(points.score, points.predicted)
        # For each predicted class, from the largest g on.
        self._negated, self._wrong, self._most = [], [], []
        for number in range(class_count):
            rows = np.flatnonzero(points.predicted == number)
            rows = rows[np.argsort(-share[rows], kind="stable")]
            self._negated.append(-share[rows])
            self._wrong.append(np.r_[0.0, np.cumsum(1 - share[rows])])
            self._most.append(_largest(points.document[rows]))
        self._missed = _confusion(points, class_count)
        self._clustering = {
            kind: _clustering(points, classes, class_count, alpha)
            for kind, classes in ((ClassKind.PREDICTED, points.predicted), (ClassKind.TRUE, points.label))
        }

    def counts(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the admitted points of each predicted class and the wrong ones among them, (P, C) each.

        Args:
            shares: (P, C) float64, the thresholds on g.
        """
        places = [np.searchsorted(of, -shares[:, c], side="right") for c, of in enumerate(self._negated)]
        wrong = [of[place] for of, place in zip(self._wrong, places, strict=True)]
        return np.stack(places, axis=1).astype(np.float64), np.stack(wrong, axis=1)

    def of_columns(self, shares: FloatArray, columns: Sequence[Column]) -> tuple[FloatArray, FloatArray]:
        """Return the admitted and the wrong points of the classes asked for, (P, h) each."""
        admitted, wrong = self.counts(shares)
        missed = wrong @ self._missed
        kinds = {ClassKind.PREDICTED: (admitted, wrong), ClassKind.TRUE: (admitted - wrong + missed, missed)}
        found = [[of[:, number] for of in kinds[kind]] for kind, number in columns]
        return np.stack([one for one, _ in found], axis=1), np.stack([other for _, other in found], axis=1)

    def chances(self, shares: FloatArray, columns: Sequence[Column], level: float) -> FloatArray:
        """Return the chance of each class asked for to pass at a level, (P, h), foretold with one more error."""
        admitted, wrong = self.of_columns(shares, columns)
        share = (1 + wrong) / (1 + admitted)
        found = np.empty_like(share)
        for place, column in enumerate(columns):
            for step, (a, e) in enumerate(zip(admitted[:, place].tolist(), share[:, place].tolist(), strict=True)):
                by_points = self._evidence.single_points
                found[step, place] = self._binomial(a, e, level) if by_points else self._normal(column, a, e, level)
        return found

    def needed(self, shares: FloatArray, columns: Sequence[Column], level: float) -> list[int | None]:
        """Return the documents with which each class is likely to pass, at the policy that takes the fewest for all.

        None for a class that no number would do for, or for all of them if there is no such policy.
        """
        admitted, wrong = self.of_columns(shares, columns)
        found = []
        for at_step in zip(admitted, wrong / np.maximum(admitted, 1.0), strict=True):
            of_columns = zip(columns, *(values.tolist() for values in at_step), strict=True)
            found.append([self._needed(column, a, e, level) for column, a, e in of_columns])
        passable = [(max(known), row) for row in found if len(known := [one for one in row if one]) == len(row)]
        return min(passable, key=lambda one: one[0])[1] if passable else [None] * len(columns)

    def options(self, grid: FloatArray) -> Options:
        """Return what there is to choose from for each predicted class: never, or a threshold of the grid."""
        shares = np.repeat(grid[:, np.newaxis], self._class_count, axis=1)
        admitted, wrong = self.counts(shares)
        first = np.zeros((self._class_count, 1))
        return Options(
            threshold=np.concatenate([np.full_like(first, np.inf), shares.T], axis=1),
            admitted=np.concatenate([first, admitted.T], axis=1),
            wrong=np.concatenate([first, wrong.T], axis=1)[:, :, np.newaxis] * self._missed[:, np.newaxis, :],
        )

    def reserve(self, standard_errors: float, kind: ClassKind, admitted: FloatArray) -> FloatArray:
        """Return by how many points the errors must fall short of alpha, so that a class passes by standard errors.

        Args:
            standard_errors: >= 0.
            kind: The kind of the classes.
            admitted: (C, ...) float64, the admitted points of each class.
        """
        of_kind = self._clustering[kind]
        shape = (-1, *[1] * (admitted.ndim - 1))
        deviation = np.sqrt(self._variance(admitted) * of_kind.factor.reshape(shape))
        bound = np.broadcast_to((1 - self._alpha) * of_kind.most.reshape(shape), admitted.shape)
        reserve: FloatArray = self._evidence.reserve(standard_errors, deviation, bound) * self._documents
        return reserve

    def _variance(self, admitted: FloatArray) -> FloatArray:
        """The variance of e - alpha a over documents, if points were independent."""
        return self._alpha * (1 - self._alpha) * admitted / self._documents

    def _binomial(self, admitted: float, share: float, level: float) -> float:
        count = round(admitted / self._points * self._evidence.points)
        allowed = largest_passing(count, self._alpha, level)
        return 0.0 if allowed < 0 or share >= 1 else binomial_tail(allowed, count, share)

    def _normal(self, column: Column, admitted: float, share: float, level: float) -> float:
        gain = (self._alpha - share) * admitted / self._documents
        if gain <= 0:
            return 0.0
        deviation, bound = self._spread(column, admitted)
        errors = self._evidence.expected(np.array([gain]), np.array([deviation]), np.array([bound]))[0]
        return NormalDist().cdf(errors - NormalDist().inv_cdf(1 - level))

    def _needed(self, column: Column, admitted: float, share: float, level: float) -> int | None:
        deviation, bound = self._spread(column, admitted)
        gain = (self._alpha - share) * admitted / self._documents
        bounded = self._evidence.bounded or self._evidence.single_points
        return documents_needed(gain, deviation, deviation, bound, level=level, bounded=bounded)

    def _spread(self, column: Column, admitted: float) -> tuple[float, float]:
        """The standard deviation of e - alpha a over documents, and the largest value that it has."""
        kind, number = column
        of_kind = self._clustering[kind]
        most = of_kind.most[number] if kind is ClassKind.TRUE else self._most[number][round(admitted)]
        variance = self._variance(np.array([admitted]))[0] * of_kind.factor[number]
        return math.sqrt(variance), (1 - self._alpha) * float(most)


@dataclass(frozen=True, slots=True, eq=False)
class _Clustering:
    """How documents of the classes of a kind depart from independent points.

    factor: (C,) how much more errors vary over them. most: (C,) the points of the largest.
    """

    factor: FloatArray
    most: IntArray


def _largest(document: IntArray) -> IntArray:
    """The points of the largest document among the first 0, 1, ... points, (n + 1,) int64, at least 1."""
    seen: dict[int, int] = {}
    most = [1]
    for number in document.tolist():
        seen[number] = seen.get(number, 0) + 1
        most.append(max(most[-1], seen[number]))
    return np.array(most)


def _clustering(points: CertificatePoints, classes: IntArray, class_count: int, alpha: float) -> _Clustering:
    cell = points.document * class_count + classes
    cells = points.document_count * class_count
    size = np.bincount(cell, minlength=cells).reshape(-1, class_count)
    wrong = np.bincount(cell, weights=points.predicted != points.label, minlength=cells).reshape(-1, class_count)
    independent = alpha * (1 - alpha) * np.maximum(size.mean(axis=0), 1 / points.document_count)
    factor = np.var(wrong - alpha * size, axis=0, ddof=1) / independent
    return _Clustering(np.maximum(factor, 1.0), np.maximum(size.max(axis=0), 1))


def _confusion(points: CertificatePoints, class_count: int) -> FloatArray:
    """(C, C) float64, how the errors of a predicted class are shared out to the true classes; each row sums to 1."""
    wrong = points.predicted != points.label
    seen = np.zeros((class_count, class_count))
    np.add.at(seen, (points.predicted[wrong], points.label[wrong]), 1.0)
    usual = np.bincount(points.label, minlength=class_count) + 1.0
    prior = np.repeat((usual / usual.sum())[np.newaxis], class_count, axis=0)
    np.fill_diagonal(prior, 0.0)
    shared = seen + prior / prior.sum(axis=1, keepdims=True)
    parts: FloatArray = shared / shared.sum(axis=1, keepdims=True)
    return parts


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be tested.

    orders: the chains that have a chance to pass. untested: the classes of no chain, with the documents of evidence
    that would give them one; None if no number would.
    """

    orders: list[Order]
    untested: list[tuple[Column, int | None]]


def class_chains(forecast: Forecast, curves: ShareCurves, class_count: int, alpha: float, level: float) -> Plan:
    """Return a chain for each predicted class; level: that of all of them together."""
    grid = share_grid(alpha)
    shares = np.repeat(grid[:, np.newaxis], class_count, axis=1)
    scores = curves.least_scores(shares)
    tried = np.flatnonzero(forecast.counts(shares)[0][-1] > 0).tolist()
    columns = [(ClassKind.PREDICTED, number) for number in tried]
    each = level / max(1, len(tried))
    chances = forecast.chances(shares, columns, each)
    found: list[Order] = []
    untested: list[tuple[Column, int | None]] = []
    for place, number in enumerate(tried):
        chance = chances[:, place]
        if chance.max() >= LEAST_CHANCE:
            order = Order("class", (columns[place],), np.array([number]), shares[:, [number]], scores[:, [number]])
            found.append(order.from_step(_start(chance)))
        else:
            (needed,) = forecast.needed(shares, columns[place : place + 1], each)
            untested.append((columns[place], needed))
    return Plan(found, untested)


def path_chains(
    forecast: Forecast,
    curves: ShareCurves,
    class_count: int,
    alpha: float,
    kinds: Sequence[ClassKind],
    level: float,
) -> Plan:
    """Return paths of policies for all classes; level: that of all of them together."""
    grid = share_grid(alpha)
    never = np.zeros(class_count, dtype=np.bool_)
    if ClassKind.PREDICTED in kinds:
        alone = [(ClassKind.PREDICTED, number) for number in range(class_count)]
        never = (
            forecast.chances(np.repeat(grid[:, np.newaxis], class_count, axis=1), alone, level).max(axis=0)
            < LEAST_CHANCE
        )
    paths = {"one threshold": np.where(never, np.inf, grid[:, np.newaxis])}
    if class_count <= LARGEST_PRICED:
        priced = _by_class(forecast, grid, never, alpha, kinds)
        if len(priced):
            paths["by class"] = priced
    found = []
    for name, shares in paths.items():
        asked = [number for number in range(class_count) if not never[number]]
        columns = tuple(
            (kind, number)
            for kind in kinds
            for number in (asked if kind is ClassKind.PREDICTED else range(class_count))
        )
        chances = forecast.chances(shares, columns, level / len(paths))
        # Nothing is asked of a predicted class that is never admitted.
        vacuous = np.isinf([[shares[step, number] for _, number in columns] for step in range(len(shares))]) & [
            kind is ClassKind.PREDICTED for kind, _ in columns
        ]
        chance = np.where(vacuous, 1.0, chances).min(axis=1)
        if chance.max() >= LEAST_CHANCE:
            order = Order(name, columns, np.arange(class_count), shares, curves.least_scores(shares))
            found.append(order.from_step(_start(chance)))
    if found:
        return Plan(found, [])
    every = tuple((kind, number) for kind in kinds for number in range(class_count))
    return Plan([], list(zip(every, forecast.needed(paths["one threshold"], every, level), strict=True)))


def _by_class(
    forecast: Forecast, grid: FloatArray, never: BoolArray, alpha: float, kinds: Sequence[ClassKind]
) -> FloatArray:
    """The nested policies that admit most while every class passes by ever fewer standard errors, (P, C)."""
    options = forecast.options(grid)
    admitted = np.maximum(options.admitted, 0.0)
    errors = options.wrong.sum(axis=2)
    columns = [(ClassKind.TRUE, number) for number in range(len(never))]
    found: list[FloatArray] = []
    for standard_errors in np.linspace(8.0, 0.0, 33).tolist():
        allowed = np.ones(admitted.shape, dtype=np.bool_)
        allowed[never, 1:] = False
        if ClassKind.PREDICTED in kinds:
            allowed &= errors - alpha * admitted <= TOLERANCE - forecast.reserve(
                standard_errors, ClassKind.PREDICTED, admitted
            )
        allowed[:, 0] = True
        reserve = np.zeros(len(never)) if ClassKind.TRUE in kinds else None
        shares = None
        for _ in range(RESERVE_ROUNDS + 1):
            choice = best_choice(options, Limits(alpha, allowed, reserve))
            shares = None if choice is None else options.threshold[np.arange(len(never)), choice]
            if shares is None or reserve is None:
                break
            of_class, _wrong = forecast.of_columns(shares[np.newaxis], columns)
            reserve = forecast.reserve(standard_errors, ClassKind.TRUE, of_class[0])
        if shares is not None:
            found.append(np.minimum(found[-1], shares) if found else shares)
    if not found:
        return np.empty((0, len(never)))
    paths = np.stack(found)
    changed = np.r_[True, (paths[1:] != paths[:-1]).any(axis=1)]
    return paths[changed]


def _start(chance: FloatArray) -> int:
    """The strictest policy whose chance is nearly the best."""
    return int(np.argmax(chance >= NEARLY_BEST * chance.max()))
