"""Chains: policies in the order in which they are tested, fixed by the proposing points alone.

A chain for one predicted class, one group, or one predicted class within a group tests its thresholds from strict to
liberal. If true classes are asked for, or groups that overlap, thresholds are coupled, and a chain is a nested path of
whole policies: one threshold on g for all classes, or those that admit most while every class is foretold to pass by
ever fewer standard errors. Each chain begins at the strictest policy whose chance to pass is foretold to be nearly the
best. Sources: Bauer (1991), *Multiple testing in clinical trials*;
Angelopoulos, Bates, Candès, Jordan & Lei (2022), *Learn then test*; docs/explanation/certificate.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind, part_kind
from venn_admit.core.calibrators.certified.curves import fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import Column, Forecast
from venn_admit.core.calibrators.certified.losses import Losses
from venn_admit.core.calibrators.certified.points import CertificatePoints, Coverage, covers, group_thresholds
from venn_admit.core.calibrators.certified.policies import Policy, without_threshold
from venn_admit.core.calibrators.certified.search import TOLERANCE, Limits, best_choice
from venn_admit.core.types import BoolArray, FloatArray, IntArray

GRID_SIZE = 80
STRICTEST, MOST_LIBERAL = 5.0, -3.0
"""The ends of the grid of g, in logits from that of 1 - alpha; admitting everything comes after its end."""
NEARLY_BEST = 0.95
"""The part of the best foretold chance to pass that is enough to begin with."""
LEAST_CHANCE = 1e-6
"""Below it, a chance to pass is none."""
MOST_PATHS = 2
LARGEST_PRICED = 100
"""With more classes than these, only the path with one threshold for all of them is tried."""
LEFT_OUT_ROUNDS = 2
"""How often it is chosen which groups and classes are left out, since a weak one of either makes the others weak."""
RESERVE_ROUNDS = 2
"""How often the reserve of true classes is renewed, which depends on the policy that it yields."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The policies of a chain, from strict to liberal, each of which admits all that the one before admits.

    Attributes:
        name: `class`, `group`, `class in group`, `one threshold` or `by class`.
        columns: The classes that every policy is tested for: the kind, and the number of the class.
        predicted: (k,) int64, the predicted classes that it sets thresholds for; others are not looked at.
        shares: (P, k) float64, the thresholds on g, inf for never.
        scores: (P, k) float64, those on the score.
        chances: (P,) float64 in [0, 1], how likely each passes, as foretold.
        coverage: The groups that it looks at; none without attributes.
    """

    name: str
    columns: tuple[Column, ...]
    predicted: IntArray
    shares: FloatArray
    scores: FloatArray
    chances: FloatArray
    coverage: Coverage = ()

    def from_step(self, start: int) -> Self:
        """Return the chain without the policies before one of them."""
        return replace(self, shares=self.shares[start:], scores=self.scores[start:], chances=self.chances[start:])

    def steps(self, points: CertificatePoints) -> tuple[IntArray, IntArray]:
        """Return the first policy that admits each point, and the first after it that does not, (n,) int64 in [0, P].

        Args:
            points: The points; P is none.
        """
        policies = len(self.scores)
        enters, leaves = np.full((2, len(points.score)), policies)
        covered = covers(self.coverage, points)
        for place, number in enumerate(self.predicted.tolist()):
            rows = np.flatnonzero(covered & (points.predicted == number))
            enters[rows] = np.searchsorted(-self.scores[:, place], -points.score[rows], side="left")
        return enters, leaves


def share_grid(alpha: float) -> FloatArray:
    """Return the thresholds on g, from strict to liberal: equally spaced in logits, and 0."""
    middle = math.log((1 - alpha) / alpha)
    grid = 1 / (1 + np.exp(-np.linspace(middle + STRICTEST, middle + MOST_LIBERAL, GRID_SIZE)))
    return np.append(grid, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be tested.

    orders: the chains that have a chance to pass. untested: the classes of no chain, with the documents of evidence
    that would give them one; None if no number would.
    """

    orders: list[Order]
    untested: list[tuple[Column, int | None]]


def plan_chains(
    proposing: CertificatePoints, shown: Evidence, losses: Losses, *, alpha: float, kinds: Sequence[Kind], level: float
) -> Plan:
    """Return what is to be tested for kinds of classes.

    Args:
        proposing: Labelled points in canonical order.
        level: That of all tests together.
    """
    forecast = Forecast(proposing, fit_curves(proposing, len(losses.matrix)), losses, alpha, shown)
    finest = part_kind(kinds)
    if finest is not None:
        return part_chains(forecast, finest, alpha, level)
    return path_chains(forecast, alpha, kinds, level)


def part_chains(forecast: Forecast, kind: Kind, alpha: float, level: float) -> Plan:
    """Return a chain for each class of a kind whose classes are disjoint; level: that of all of them together."""
    shares = _grids(forecast, alpha)
    scores = forecast.curves.least_scores(shares)
    columns = [(kind, number) for number in forecast.present(kind)]
    each = level / max(1, len(columns))
    found: list[Order] = []
    untested: list[tuple[Column, int | None]] = []
    for column in columns:
        chance = forecast.chances(shares, [column], each)[:, 0]
        if chance.max() >= LEAST_CHANCE:
            name, predicted, coverage = _part(column, forecast)
            order = Order(name, (column,), predicted, shares[:, predicted], scores[:, predicted], chance, coverage)
            found.append(order.from_step(nearly_best(chance)))
        else:
            _, (needed,) = forecast.fewest(shares, [column], each)
            untested.append((column, needed))
    return Plan(found, untested)


def _part(column: Column, forecast: Forecast) -> tuple[str, IntArray, Coverage]:
    """The name of a chain for one class, the predicted classes that have thresholds, and the groups that it admits."""
    kind, number = column
    if not isinstance(kind, GroupKind):
        return "class", np.array([number]), ()
    everything = np.arange(forecast.class_count)
    mask = np.zeros((forecast.class_count, forecast.group_count(kind)), dtype=np.bool_)
    predicted, code = divmod(number, forecast.group_count(kind))
    rows = np.array([predicted]) if kind.by_predicted else everything
    mask[rows, code] = True
    return "class in group" if kind.by_predicted else "group", rows, (mask,)


def path_chains(forecast: Forecast, alpha: float, kinds: Sequence[Kind], level: float) -> Plan:
    """Return paths of policies for all classes; level: that of all of them together."""
    whole, grid, class_count = forecast, _grids(forecast, alpha), forecast.class_count
    never = np.zeros(class_count, dtype=np.bool_)
    coverage: Coverage = ()
    untested: list[tuple[Column, int | None]] = []
    for _ in range(LEFT_OUT_ROUNDS):
        coverage, groups = _coverage(whole, np.where(never, np.inf, grid), kinds, level / MOST_PATHS)
        forecast = whole.within(coverage) if coverage else whole
        never, classes = _never(forecast, grid, kinds, level)
        untested = [*classes, *groups]
        if not never.any():
            break
    columns = tuple((kind, number) for kind in kinds for number in _asked(forecast, kind, never))
    asked = {kind for kind, _ in columns}.issuperset(kinds)
    paths = _paths(forecast, grid, never, alpha, kinds) if asked else {}
    found = []
    for name, shares in paths.items():
        chances = forecast.chances(shares, columns, level / len(paths))
        # Nothing is asked of a predicted class that is never admitted.
        vacuous = [
            [kind is ClassKind.PREDICTED and math.isinf(of_step[number]) for kind, number in columns]
            for of_step in shares.tolist()
        ]
        chance = np.where(vacuous, 1.0, chances).min(axis=1)
        if chance.max() >= LEAST_CHANCE:
            scores = forecast.curves.least_scores(shares)
            order = Order(name, columns, np.arange(class_count), shares, scores, chance, coverage)
            found.append(order.from_step(nearly_best(chance)))
    return Plan(found, untested) if found else _likeliest(forecast, alpha, kinds, level, coverage, untested)


def _likeliest(
    forecast: Forecast,
    alpha: float,
    kinds: Sequence[Kind],
    level: float,
    coverage: Coverage,
    untested: list[tuple[Column, int | None]],
) -> Plan:
    """If no path has a chance: one from the policy that takes the fewest documents, since forecasts may be wrong."""
    grid, class_count = _grids(forecast, alpha), forecast.class_count
    columns = tuple(
        (kind, number)
        for kind in kinds
        for number in (forecast.present(kind) if isinstance(kind, GroupKind) else range(class_count))
    )
    best: tuple[int, Order] | None = None
    paths = _paths(forecast, grid, np.zeros(class_count, dtype=np.bool_), alpha, kinds)
    for name, shares in paths.items():
        start, needed = forecast.fewest(shares, columns, level)
        most = max((number for number in needed if number is not None), default=0)
        if start is not None and (best is None or most < best[0]):
            scores, chances = forecast.curves.least_scores(shares), np.zeros(len(shares))  # below `LEAST_CHANCE`
            order = Order(name, columns, np.arange(class_count), shares, scores, chances, coverage)
            best = most, order.from_step(start)
    if best is not None:
        return Plan([best[1]], untested)
    return Plan([], [*untested, *((column, None) for column in columns)])


def nested_paths(forecast: Forecast, alpha: float, kinds: Sequence[Kind], level: float) -> list[FloatArray]:
    """Return the thresholds on g of each path, (P, C); predicted classes that no number of documents passes have inf.

    Args:
        forecast: What is foretold; there are no groups.
        kinds: Predicted and true classes, or true ones.
        level: That of each test.
    """
    grid, count = _grids(forecast, alpha), forecast.class_count
    never = np.zeros(count, dtype=np.bool_)
    if ClassKind.PREDICTED in kinds:
        never[:] = [forecast.fewest(grid, [(ClassKind.PREDICTED, of)], level)[0] is None for of in range(count)]
    return list(_paths(forecast, grid, never, alpha, kinds).values())


def _paths(
    forecast: Forecast, grid: FloatArray, never: BoolArray, alpha: float, kinds: Sequence[Kind]
) -> dict[str, FloatArray]:
    """The thresholds on g of each path, (P, C); never: the predicted classes that are not admitted."""
    paths = {"one threshold": np.where(never, np.inf, grid)}
    if forecast.class_count <= LARGEST_PRICED:
        priced = _by_class(forecast, grid, never, alpha, kinds)
        if ClassKind.TRUE not in kinds:
            # A class that is tested must be admitted.
            priced = priced[np.isfinite(priced[:, ~never]).all(axis=1)]
        if len(priced):
            paths["by class"] = priced
    return paths


def _asked(forecast: Forecast, kind: Kind, never: BoolArray) -> list[int]:
    """The classes of a kind that the policies of a path are tested for; never: the predicted classes that are not."""
    if kind is ClassKind.TRUE:
        return list(range(len(never)))
    if not isinstance(kind, GroupKind):
        return [number for number in range(len(never)) if not never[number]]
    present = forecast.present(kind)
    if not kind.by_predicted:
        return present
    return [number for number in present if not never[number // forecast.group_count(kind)]]


def _never(
    forecast: Forecast, shares: FloatArray, kinds: Sequence[Kind], level: float
) -> tuple[BoolArray, list[tuple[Column, int | None]]]:
    """The predicted classes that the policies of a path never admit, with the documents that they would take.

    With true classes, these are the ones without a chance: points of a class that is never predicted are all wrong.
    """
    never = np.zeros(forecast.class_count, dtype=np.bool_)
    if ClassKind.PREDICTED not in kinds:
        return never, []
    columns: list[Column] = [(ClassKind.PREDICTED, number) for number in range(forecast.class_count)]
    if ClassKind.TRUE in kinds:
        return forecast.chances(shares, columns, level).max(axis=0) < LEAST_CHANCE, []
    never[:] = True
    never[_worth_taking(forecast, shares, columns, level / MOST_PATHS)] = False
    return never, _with_needed(
        forecast, shares, [columns[number] for number in np.flatnonzero(never)], level / MOST_PATHS
    )


def _coverage(
    forecast: Forecast, shares: FloatArray, kinds: Sequence[Kind], level: float
) -> tuple[Coverage, list[tuple[Column, int | None]]]:
    """The groups that the policies of a path admit, and the others with the documents that they would take."""
    masks: dict[str, BoolArray] = {}
    untested: list[tuple[Column, int | None]] = []
    for kind in kinds:
        if not isinstance(kind, GroupKind):
            continue
        mask = masks.setdefault(
            kind.attribute, np.ones((forecast.class_count, forecast.group_count(kind)), dtype=np.bool_)
        )
        columns: list[Column] = [(kind, number) for number in forecast.present(kind)]
        taken = _worth_taking(forecast, shares, columns, level)
        numbers = np.array([number for _, number in columns], dtype=np.int64)[taken]
        of_kind = np.zeros(mask.size if kind.by_predicted else mask.shape[1], dtype=np.bool_)
        of_kind[numbers] = True
        mask &= of_kind.reshape(mask.shape) if kind.by_predicted else of_kind
        left = sorted(set(range(len(columns))).difference(taken.tolist()))
        untested += _with_needed(forecast, shares, [columns[place] for place in left], level)
    return tuple(masks[attribute] for attribute in sorted(masks)), untested


def _worth_taking(forecast: Forecast, shares: FloatArray, columns: Sequence[Column], level: float) -> IntArray:
    """The places of the classes that a path admits, (h,) int64.

    All are tested at once, so that one of little chance would stop the others. Those of the best chances are taken, as
    many as make the chance that all pass, times the points they hold, the largest.
    """
    best = forecast.chances(shares, columns, level).max(axis=0)
    order = np.argsort(-best, kind="stable")
    worth = np.cumprod(best[order]) * np.cumsum(forecast.of_columns(shares[-1:], columns)[0][0][order])
    return order[: np.argmax(worth) + 1] if worth.max(initial=0.0) > 0 else order[:0]


def _with_needed(
    forecast: Forecast, shares: FloatArray, columns: Sequence[Column], level: float
) -> list[tuple[Column, int | None]]:
    """Classes that are not tested, each with the documents that it alone would take."""
    return [(column, forecast.fewest(shares, [column], level)[1][0]) for column in columns]


def _by_class(
    forecast: Forecast, grid: FloatArray, never: BoolArray, alpha: float, kinds: Sequence[Kind]
) -> FloatArray:
    """The nested policies that admit most while every class passes by ever fewer standard errors, (P, C)."""
    options = forecast.options(grid)
    admitted = np.maximum(options.admitted, 0.0)
    excess = options.total_loss - alpha * admitted
    columns = [(ClassKind.TRUE, number) for number in range(len(never))]
    found: list[FloatArray] = []
    for standard_errors in np.linspace(8.0, 0.0, 33).tolist():
        allowed = np.ones(admitted.shape, dtype=np.bool_)
        allowed[never, 1:] = False
        if ClassKind.PREDICTED in kinds:
            allowed &= excess <= TOLERANCE - forecast.reserve(standard_errors, ClassKind.PREDICTED, admitted)
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


def _grids(forecast: Forecast, alpha: float) -> FloatArray:
    """The thresholds on g of each predicted class, (P, C), from strict to liberal.

    They lie around the share right at which the mean loss is alpha, if the errors of the class cost what is foretold.
    """
    return np.stack([share_grid(one) for one in forecast.error_shares(alpha).tolist()], axis=1)


def nearly_best(chance: FloatArray) -> int:
    """Return the place of the strictest policy whose chance to pass, (P,) float64 in [0, 1], is nearly the best."""
    return int(np.argmax(chance >= NEARLY_BEST * chance.max()))


def joined_policy(
    steps: Sequence[tuple[Order, tuple[float | None, ...]]], points: CertificatePoints, class_count: int
) -> Policy:
    """Return the policy that admits what some policies admit, given by their thresholds, each with its chain."""
    thresholds: list[float | None] = [None] * class_count
    for order, of_step in steps:
        for number, threshold in zip(order.predicted.tolist(), of_step, strict=True):
            known = [one for one in (thresholds[number], threshold) if one is not None]
            thresholds[number] = min(known, default=None)
    parts = [(order.coverage, order.predicted, of_step) for order, of_step in steps]
    groups = group_thresholds(parts, points.groups, class_count)
    return Policy(tuple(thresholds), groups=groups, uncertified=without_threshold(thresholds))


def finite_thresholds(thresholds: FloatArray) -> tuple[float | None, ...]:
    """Return thresholds of which inf is never, which None says."""
    return tuple(None if math.isinf(value) else value for value in thresholds.tolist())
