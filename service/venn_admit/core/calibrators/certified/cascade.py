"""Certificates of cascades: several classifiers are asked one after the other, and one promise covers what they serve.

A point is served by the first stage that admits it, as the class which that stage predicts. A policy of a cascade has
a threshold for each stage and predicted class, so it is a function of the point, whatever the number of stages. The
policies of a path are fixed by the proposing points alone and tested from strict to liberal, each for all classes at
once, at the whole level: nothing is shared among stages or classes. Source: docs/explanation/certificate.md, Cascades.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import (
    DEFAULT_CONFIDENCE,
    ClassKind,
    DocumentTest,
    Kind,
    make_certification,
)
from venn_admit.core.calibrators.certified.certificate import Certificate, ClassResult
from venn_admit.core.calibrators.certified.chains import (
    LEAST_CHANCE,
    Order,
    nearly_best,
    share_grid,
)
from venn_admit.core.calibrators.certified.curves import ShareCurves, fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import (
    Column,
    chance_of_points,
    chance_of_standard_errors,
    confusion,
)
from venn_admit.core.calibrators.certified.hypothesis_tests import document_excess
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, check_points, content_order
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.certified.testing import ChainSetting, run_chains, tallies
from venn_admit.core.calibrators.logistic import LEAST_POINTS
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

NAME = "cascade"
"""The name of the chain of a cascade."""
MOST_GAIN = 2.0
"""A predicted class is left out if the chance of the others rises by more than this factor."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadePoints:
    """Labelled points as each of m stages sees them.

    Attributes:
        score: (m, n) float64 in [0, 1], which must not depend on the labels of these points if they are evidence.
        predicted: (m, n) int64 in [0, C), the class that each stage predicts.
        label: (n,) int64 in [0, C), the true class.
        document: (n,) int64, the same number for the points of one document, and for no others.
    """

    score: FloatArray
    predicted: IntArray
    label: IntArray
    document: IntArray

    def stage(self, place: int) -> CertificatePoints:
        """Return the points as one stage sees them.

        Args:
            place: In [0, m).
        """
        return CertificatePoints(self.score[place], self.predicted[place], self.label, self.document)

    def stacked(self) -> CertificatePoints:
        """Return a row for each stage and point, (m n,), by stage."""
        stages = len(self.score)
        label, document = np.tile(self.label, stages), np.tile(self.document, stages)
        return CertificatePoints(self.score.ravel(), self.predicted.ravel(), label, document)

    def take(self, rows: BoolArray | IntArray) -> "CascadePoints":
        """Return some of the points."""
        return CascadePoints(self.score[:, rows], self.predicted[:, rows], self.label[rows], self.document[rows])


@dataclass(frozen=True, slots=True, eq=False)
class StageCounts:
    """What became of some labelled points at one stage.

    Attributes:
        reached: How many reached it.
        served: (C,) int64, how many it served, by predicted class.
        right: (C,) int64, how many of these are right.
    """

    reached: int
    served: IntArray
    right: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class CascadeOrder(Order):
    """The policies of a cascade, whose thresholds are those of C classes at the first stage, then at the next.

    Its points are stacked: n rows for each stage. A later policy may serve a point earlier, and as another class.

    Attributes:
        class_count: C.
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


def certify_cascade(
    proposing: CascadePoints,
    evidence: CascadePoints,
    *,
    class_count: int,
    alpha: Decimal,
    kinds: Collection[str] = (ClassKind.PREDICTED,),
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
) -> Certificate:
    """Certify a cascade: with the given confidence, at least 1 - alpha of what it serves of each class are right.

    With true classes among the kinds: of what it serves of the points of each true class as well. A predicted class
    that has no chance to pass, as foretold by the proposing points, is never served. Neither the order of the points
    nor the numbers of their documents matter.

    Args:
        evidence: Labelled points, exchangeable with those to be served, on which no score was fitted.
        class_count: C >= 2, the same classes at all stages.
        alpha: In (0, 1).
        kinds: `predicted`, `true`, or both.
        test: How documents of several points are tested, as in `certify`.

    Returns:
        The certificate. The thresholds of its policy are those of the C classes at the first stage, then at the next;
        `stage_policies` takes them apart.

    Raises:
        InvalidInputError: An argument or an array is out of range, there are fewer than two documents, or a promise is
            asked for groups.
    """
    if not (alpha.is_finite() and 0 < alpha < 1):
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha}")
    asked = make_certification(kinds, confidence, test)
    if not all(isinstance(kind, ClassKind) for kind in asked.kinds):
        raise InvalidInputError(
            f"a cascade promises {' and '.join(ClassKind)} classes, got {', '.join(asked.kinds)}; leave groups out"
        )
    for name, points in (("the proposing points", proposing), ("the evidence", evidence)):
        if points.score.shape != points.predicted.shape or points.score.shape[1:] != points.label.shape:
            raise InvalidInputError(
                f"{name}: expected a score and a predicted class for each stage and point, got {points.score.shape}, "
                f"{points.predicted.shape} and {points.label.shape} labels"
            )
        for place in range(len(points.score)):
            check_points(f"{name} at stage {place + 1}", points.stage(place), class_count)
    proposing, _ = _canonical(proposing)
    evidence, generator = _canonical(evidence)
    stacked = evidence.stacked()
    shown = Evidence(stacked.document_count, len(evidence.label), asked.test is DocumentTest.FINITE_SAMPLE)
    losses, level = losses_of(None, class_count), float(1 - confidence)
    order = plan_path(proposing, shown, alpha=float(alpha), kinds=asked.kinds, level=level, class_count=class_count)
    seed = int(generator.integers(2**63))
    setting = ChainSetting(proposing.stacked(), stacked, losses, float(alpha), asked.test, shown, seed)
    (chain,) = run_chains([order], setting, level)
    passed = chain.last_passed
    tested = {number for kind, number in order.columns if kind is ClassKind.PREDICTED}
    untested = set(range(class_count)).difference(tested) if ClassKind.PREDICTED in asked.kinds else set()
    never = tuple(ClassResult(ClassKind.PREDICTED, number, None, 0, 0, None, None) for number in sorted(untested))
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=asked.kinds,
        test=asked.test,
        documents=shown.documents,
        points=shown.points,
        proposing=len(proposing.label),
        capped=0 if passed is None or shown.single_points else _capped(order, chain.steps.index(passed), setting),
        policy=None if passed is None else Policy(passed.thresholds),
        admitted=0 if passed is None else passed.admitted,
        classes=() if passed is None else passed.classes,
        lacking=never if passed is not None else (*chain.closest.classes, *never),
        chains=(chain,),
    )


def stage_policies(policy: Policy, class_count: int) -> tuple[Policy, ...]:
    """Return the policy of each stage.

    Args:
        policy: That of a certificate of a cascade.
        class_count: C.

    Examples:
        >>> [of.thresholds for of in stage_policies(Policy((0.9, 0.8, 0.7, None)), 2)]
        [(0.9, 0.8), (0.7, None)]
    """
    starts = range(0, len(policy.thresholds), class_count)
    return tuple(Policy(policy.thresholds[start : start + class_count], policy.bounded) for start in starts)


def serve(points: CascadePoints, policies: Sequence[Policy]) -> list[StageCounts]:
    """Return what becomes of labelled points at each stage.

    Args:
        points: As m stages see them.
        policies: Those of the stages, of C classes each.
    """
    left = np.ones(len(points.label), dtype=np.bool_)
    found = []
    for place, policy in enumerate(policies):
        of_stage, class_count = points.stage(place), len(policy.thresholds)
        served = left & admit(of_stage.score, of_stage.predicted, policy)
        right = served & (of_stage.predicted == of_stage.label)
        counts = (np.bincount(of_stage.predicted[rows], minlength=class_count) for rows in (served, right))
        found.append(StageCounts(int(np.count_nonzero(left)), *counts))
        left &= ~served
    return found


def plan_path(
    proposing: CascadePoints,
    shown: Evidence,
    *,
    alpha: float,
    kinds: Sequence[Kind],
    level: float,
    class_count: int,
) -> CascadeOrder:
    """Return the policies to test, from the first whose chance to pass is foretold to be nearly the best.

    Each has one threshold on g for all stages and classes, g being the share right that is foretold at a score: by the
    proposing points that reach a stage, if there are enough of them.

    Args:
        proposing: Labelled points in canonical order.
        alpha: In (0, 1).
        kinds: Those of the classes that are promised something, predicted ones first.
        level: That of all tests together.
        class_count: C.
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
    return replace(order, chances=chance).from_step(start)


@dataclass(frozen=True, slots=True, eq=False)
class _Foretold:
    """The chance of each class to pass under each policy, and by how many standard errors it would, (P, h) each."""

    chances: FloatArray
    errors: FloatArray


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
    order: CascadeOrder,
    points: CertificatePoints,
    doubt: FloatArray,
    shown: Evidence,
    *,
    alpha: float,
    level: float,
) -> _Foretold:
    """Foretell the tests of a path.

    points: proposing ones, stacked; doubt: 1 - g of them. Errors are those that g foretells, and one more.
    """
    missed = confusion(points, order.class_count)
    enters, leaves = order.steps(points)
    total = len(points.score) * order.class_count // len(order.predicted)
    chances, errors = np.zeros((2, len(order.scores), len(order.columns)))
    for step, tally in enumerate(tallies(points, order, losses_of(None, order.class_count))):
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
        errors[step] = shown.expected(gain, deviation, (1 - alpha) * most)
        for place, (number, share) in enumerate(zip(admitted.tolist(), mean.tolist(), strict=True)):
            if shown.single_points:
                of_evidence = round(number / total * shown.points)
                chances[step, place] = chance_of_points(of_evidence, share, 1.0, alpha, level)
            elif gain[place] > 0:
                chances[step, place] = chance_of_standard_errors(float(errors[step, place]), level)
    return _Foretold(chances, errors)


def _capped(order: CascadeOrder, step: int, setting: ChainSetting) -> int:
    """The number of documents of evidence of which more points of a class are served than of any proposing one."""
    both = (tallies(points, order.from_step(step), setting.losses) for points in (setting.evidence, setting.proposing))
    of_evidence, of_known = (next(of).admitted for of in both)
    return int(np.count_nonzero((of_evidence > np.maximum(of_known.max(axis=0), 1)).any(axis=1)))


def _canonical(points: CascadePoints) -> tuple[CascadePoints, np.random.Generator]:
    """The points in an order that depends on their content only, and a generator seeded by that content."""
    # Adding 0 makes the negative zero positive, which compares equal to it.
    score = points.score + 0.0
    taken, document, generator = content_order(points.stage(0), [*points.predicted[1:], *score[1:].view(np.int64)])
    return replace(replace(points, score=score).take(taken), document=document), generator
