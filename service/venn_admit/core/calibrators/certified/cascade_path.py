"""The policies of a cascade that are tested, and what the proposing points foretell of them.

A policy of a cascade has a threshold for each stage and predicted class, so it is a function of the point, whatever the
number of stages. Source: docs/explanation/certificate.md, Cascades.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, Kind
from venn_admit.core.calibrators.certified.cascade_points import CascadePoints
from venn_admit.core.calibrators.certified.chains import LEAST_CHANCE, Order, nearly_best, share_grid
from venn_admit.core.calibrators.certified.curves import ShareCurves, fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.core.calibrators.certified.forecast import (
    Column,
    chance_of_points,
    chance_of_standard_errors,
    confusion,
)
from venn_admit.core.calibrators.certified.hypothesis_tests import document_excess
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.testing import tallies
from venn_admit.core.calibrators.logistic import LEAST_POINTS
from venn_admit.core.types import BoolArray, FloatArray, IntArray

NAME = "cascade"
"""The name of the chain of a cascade."""
MOST_GAIN = 2.0
"""A predicted class is left out if the chance of the others rises by more than this factor."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadeOrder(Order):
    """The policies of a cascade, whose thresholds are those of C classes at the first stage, then at the next.

    Its points are stacked: n rows for each stage. A later policy may serve a point earlier, and as another class.
    """

    class_count: int = 0

    def steps(self, points: CertificatePoints) -> tuple[IntArray, IntArray]:
        """Return the policies by which each stage serves each point, as `Order.steps` does."""
        policies, stages = len(self.scores), len(self.predicted) // self.class_count
        enters = np.full((stages, len(points.score) // stages), policies)
        score, predicted = points.score.reshape(enters.shape), points.predicted.reshape(enters.shape)
        for place in range(stages):
            for number in range(self.class_count):
                rows = np.flatnonzero(predicted[place] == number)
                thresholds = self.scores[:, place * self.class_count + number]
                enters[place, rows] = np.searchsorted(-thresholds, -score[place, rows], side="left")
        # From the policy on by which an earlier stage admits it, a point no longer reaches a stage.
        earlier = np.minimum.accumulate(enters, axis=0)[:-1]
        leaves = np.concatenate([np.full((1, enters.shape[1]), policies), earlier])
        never = enters >= leaves
        enters[never] = leaves[never] = policies
        return enters.ravel(), leaves.ravel()

    def served_by(self, step: int, points: CertificatePoints) -> BoolArray:
        """Return which points, stacked as in `steps`, a stage serves by the policy at a place, (n,) bool."""
        enters, leaves = self.steps(points)
        return (enters <= step) & (step < leaves)


@dataclass(frozen=True, slots=True, eq=False)
class ForetoldPath:
    """What the proposing points foretell of P policies and h classes, (P, h) each.

    chances: of each class to pass. errors: the standard errors by which it would. gain, deviation, bound: as in
    `documents_needed`.
    """

    chances: FloatArray
    errors: FloatArray
    gain: FloatArray
    deviation: FloatArray
    bound: FloatArray

    def fewest(self, shown: Evidence, level: float) -> list[int | None]:
        """Return the documents that each class takes under the policy that takes the fewest for all of them.

        If there is none, those that each takes by itself at least; None if no number would do.
        """
        allows = shown.bounded or shown.single_points
        needed = [
            [
                documents_needed(gain, deviation, deviation, bound, level=level, bounded=allows)
                for gain, deviation, bound in zip(*row, strict=True)
            ]
            for row in zip(self.gain.tolist(), self.deviation.tolist(), self.bound.tolist(), strict=True)
        ]
        together = [row for row in needed if None not in row]
        if together:
            return min(together, key=lambda row: max(number for number in row if number is not None))
        return [min((number for number in of if number is not None), default=None) for of in zip(*needed, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class CascadePlan:
    """What is to be tested.

    foretold: of the policies of the whole path, those before the first of the order included.
    """

    order: CascadeOrder
    foretold: ForetoldPath


def plan_path(
    proposing: CascadePoints, shown: Evidence, *, alpha: float, kinds: Sequence[Kind], level: float, class_count: int
) -> CascadePlan:
    """Return the policies to test, from the first whose chance to pass is foretold to be nearly the best.

    Each has one threshold on g for all stages and classes, g being the share right that is foretold at a score: by the
    proposing points that reach a stage, if there are enough of them.

    Args:
        proposing: Labelled points in canonical order.
        kinds: Those of the classes that are promised something, predicted ones first.
        level: That of all tests together.
    """
    curves, doubt = _curves(proposing, alpha, class_count)
    points = proposing.stacked()
    # Predicted classes come first.
    columns = tuple((kind, number) for kind in kinds for number in range(class_count))
    grid = np.tile(share_grid(alpha)[:, np.newaxis], class_count)  # (P, C)
    order = _path(curves, columns, grid)
    foretold = _foretell(order, points, doubt, shown, alpha=alpha, level=level)
    # True classes take every predicted class, since what is not served of one is as little served right.
    never = np.zeros(class_count, dtype=np.bool_) if ClassKind.TRUE in kinds else _hopeless(foretold.chances)
    if never.any():
        columns = tuple((kind, number) for kind, number in columns if not never[number])
        order = _path(curves, columns, np.where(never, np.inf, grid))
        foretold = _foretell(order, points, doubt, shown, alpha=alpha, level=level)
    chance = foretold.chances.min(axis=1)
    # If no policy has a chance: the one that comes nearest, since forecasts may be wrong.
    start = nearly_best(chance) if chance.max() >= LEAST_CHANCE else int(np.argmax(foretold.errors.min(axis=1)))
    return CascadePlan(replace(order, chances=chance).from_step(start), foretold)


def _hopeless(chances: FloatArray) -> BoolArray:
    """The predicted classes that are better never served, (C,) bool; chances: (P, C).

    All are tested at once, so that one of little chance would stop the others: the least likely is left out while that
    more than doubles the chance of the best policy.
    """
    left = np.arange(chances.shape[1])
    while len(left) > 1:
        least = chances[:, left].min(axis=1)
        worst = int(np.argmin(chances[int(np.argmax(least)), left]))
        if least.max() < LEAST_CHANCE:  # the best policy may be any
            worst = int(np.argmin(chances[:, left].max(axis=0)))
        without = np.delete(left, worst)
        if chances[:, without].min(axis=1).max() <= MOST_GAIN * least.max():
            break
        left = without
    return ~np.isin(np.arange(chances.shape[1]), left)


def _curves(points: CascadePoints, alpha: float, class_count: int) -> tuple[list[ShareCurves], FloatArray]:
    """The curves of g of each stage, and 1 - g of the stacked points."""
    left = np.ones(len(points.label), dtype=np.bool_)
    curves, doubt = [], []
    for place in range(len(points.score)):
        of_stage = points.stage(place)
        reaching = of_stage.take(left) if np.count_nonzero(left) >= LEAST_POINTS else of_stage
        curves.append(fit_curves(reaching, class_count))
        share = curves[-1].shares(of_stage.score, of_stage.predicted)
        doubt.append(1 - share)
        left &= share < 1 - alpha
    return curves, np.concatenate(doubt)


def _path(curves: Sequence[ShareCurves], columns: tuple[Column, ...], shares: FloatArray) -> CascadeOrder:
    """The policies of thresholds on g, (P, C), which all stages share."""
    return CascadeOrder(
        NAME,
        columns,
        np.arange(len(curves) * shares.shape[1]),
        np.tile(shares, len(curves)),
        np.concatenate([of.least_scores(shares) for of in curves], axis=1),
        np.zeros(len(shares)),
        class_count=shares.shape[1],
    )


def _foretell(
    order: CascadeOrder, points: CertificatePoints, doubt: FloatArray, shown: Evidence, *, alpha: float, level: float
) -> ForetoldPath:
    """Foretell the tests of a path.

    points: proposing ones, stacked; doubt: 1 - g of them. Errors are those that g foretells, and one more.
    """
    missed = confusion(points, order.class_count)
    enters, leaves = order.steps(points)
    is_moving = np.isin(np.arange(len(order.scores)), np.concatenate([enters, leaves]))
    total = len(points.score) * order.class_count // len(order.predicted)
    chances, errors, gains, deviations, bounds = np.zeros((5, len(order.scores), len(order.columns)))
    for step, tally in enumerate(tallies(points, order, losses_of(None, order.class_count))):
        if step and not is_moving[step]:  # it serves what the one before serves
            for of in (chances, errors, gains, deviations, bounds):
                of[step] = of[step - 1]
            continue
        active = np.flatnonzero((enters <= step) & (step < leaves))
        count, wrong = (
            np.bincount(points.predicted[active], weights=of, minlength=order.class_count)
            for of in (np.ones(len(active)), doubt[active])
        )
        of_kind = {
            ClassKind.PREDICTED: (count, wrong),
            ClassKind.TRUE: (count - wrong + wrong @ missed, wrong @ missed),
        }
        admitted, loss = (
            np.array([of_kind[ClassKind(kind)][which][number] for kind, number in order.columns]) for which in (0, 1)
        )
        mean, documents = (1 + loss) / (1 + admitted), len(tally.admitted)
        most = np.maximum(tally.admitted.max(axis=0), 1)
        variance = np.var(document_excess(tally.admitted, tally.loss, most, alpha), axis=0)
        deviation = np.sqrt(np.maximum(variance, alpha * (1 - alpha) * admitted / documents))
        gain = (alpha - mean) * admitted / documents
        gains[step], deviations[step], bounds[step] = gain, deviation, (1 - alpha) * most
        errors[step] = shown.expected(gain, deviation, bounds[step])
        for place, (number, share) in enumerate(zip(admitted.tolist(), mean.tolist(), strict=True)):
            if shown.single_points:
                of_evidence = round(number / total * shown.points)
                chances[step, place] = chance_of_points(of_evidence, share, 1.0, alpha, level)
            elif gain[place] > 0:
                chances[step, place] = chance_of_standard_errors(float(errors[step, place]), level)
    return ForetoldPath(chances, errors, gains, deviations, bounds)
