"""Certification: chains of policies, fixed by the proposing points, are tested on all other calibration points.

Sources: docs/PROCEDURE.md, section 9; Bretz, Maurer, Brannath & Posch (2009), *A graphical approach to sequentially
rejective multiple test procedures*; docs/explanation/certificate.md.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice, pairwise

import numpy as np

from venn_admit.core.calibrators.certification import (
    DEFAULT_CONFIDENCE,
    DocumentTest,
    Kind,
    attributes_of,
    make_certification,
    part_kind,
)
from venn_admit.core.calibrators.certified.certificate import Certificate, Chain, ClassResult, TriedPolicy
from venn_admit.core.calibrators.certified.chains import Order, finite_thresholds, joined_policy, plan_chains
from venn_admit.core.calibrators.certified.coverage import covers
from venn_admit.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.core.calibrators.certified.hypothesis_tests import (
    VARIANCE_FACTOR,
    binomial_tail,
    boundary_deviation,
    class_p_values,
    document_excess,
)
from venn_admit.core.calibrators.certified.losses import Losses, LossRanges, losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, check_points, named_class
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.loss import LossMatrix, check_loss
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

TOGETHER_BYTES = 8 << 20
"""Policies of documents are tested together whose counts take about as much."""
MOST_TOGETHER = 16


def certify(
    proposing: CertificatePoints,
    evidence: CertificatePoints,
    *,
    class_count: int,
    alpha: Decimal,
    kinds: Collection[str],
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
    loss: LossMatrix | None = None,
) -> Certificate:
    """Certify a policy: with the given confidence, at least 1 - alpha of the admitted points of each class are right.

    With a loss: the mean loss of the admitted points of each class is at most alpha.

    If what is asked for falls apart into disjoint classes (predicted classes, the groups of one attribute, or predicted
    classes within them), each has a chain of its own, and an equal part of 1 - confidence; a class that fails stops no
    other, and a chain that passed to its end leaves its part to the rest. Otherwise, as with true classes or several
    attributes, each policy of a path is tested for everything at once. Groups that are foretold to stop it are never
    admitted, nor such predicted classes, unless true classes are asked for. A document counts for at most as many
    points of a class as the largest proposing one holds.

    The result depends on the content of the points only, neither on the order of rows nor on how documents are
    numbered. A predicted class or a group that has no chance to pass is never admitted, nor is a point without an
    attribute that is asked for.

    Args:
        proposing: Labelled points that serve no other end here; the scores may have been fitted on them.
        evidence: Labelled points, exchangeable with those to be decided on, on which neither the scores nor anything
            else before was fitted.
        class_count: C >= 2.
        alpha: In (0, 1).
        kinds: The classes for which it shall hold, as in `make_certification`; the points have the groups of each
            attribute.
        confidence: 1 - eps, in (0, 1).
        test: How documents of several points are tested. `finite-sample` is valid at any number of documents;
            `asymptotic` has more power, and is valid for very many only. With a loss, points are tested so too, unless
            what they cost has one value for each class.
        loss: As in `check_loss`; None for the 0/1 loss.

    Raises:
        InvalidInputError: An argument or an array is out of range, or there are fewer than two documents.
    """
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")
    if not (alpha.is_finite() and 0 < alpha < 1):
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha}")
    asked = make_certification(kinds, confidence, test)
    if loss is not None:
        check_loss(loss, alpha, class_count)
    check_points("the proposing points", proposing, class_count)
    check_points("the evidence", evidence, class_count)
    for points in (proposing, evidence):
        if tuple(of.attribute for of in points.groups) != attributes_of(asked.kinds):
            raise InvalidInputError(
                f"expected points with the groups of {', '.join(attributes_of(asked.kinds)) or 'no attribute'}, got "
                f"those of {', '.join(of.attribute for of in points.groups) or 'none'}"
            )
    proposing, _ = canonical(proposing)
    evidence, generator = canonical(evidence)
    level = float(1 - confidence)
    shown = Evidence(evidence.document_count, len(evidence.score), asked.test is DocumentTest.FINITE_SAMPLE)
    losses = losses_of(loss, class_count)
    plan = plan_chains(proposing, shown, losses, alpha=float(alpha), kinds=asked.kinds, level=level)
    seed = int(generator.integers(2**63))
    setting = _Setting(proposing, evidence, losses, float(alpha), asked.test, shown, seed)
    chains = _tested(plan.orders, setting, level)
    untested = [
        ClassResult(of.kind, of.number, of.value, 0, 0, None, needed)
        for column, needed in plan.untested
        for of in [named_class(*column, evidence.groups)]
    ]
    tested = list(zip(plan.orders, chains, strict=True))
    return _certificate(tested, untested, setting, class_count, alpha, confidence, asked.kinds)


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What all policies of a certificate are tested under.

    Attributes:
        seed: Drawn from the content of the evidence: every policy is tested with the same order of its documents and
            the same uniform number.
    """

    proposing: CertificatePoints
    evidence: CertificatePoints
    losses: Losses
    alpha: float
    test: DocumentTest
    shown: Evidence
    seed: int

    def ranges(self, order: Order) -> LossRanges:
        """What a point of each class can cost that an order is tested for."""
        return self.losses.ranges(order.columns, self.evidence)


class _Running:
    """A chain that is being tested: its policies are tested as far as they are needed, and each once."""

    def __init__(self, order: Order, setting: _Setting, level: float) -> None:
        self._order, self._level = order, level
        self._results = _results(order, setting, level)
        self._tested: list[tuple[int, tuple[ClassResult, ...]]] = []
        self._passed = 0

    @property
    def has_ended(self) -> bool:
        """Whether every policy passed."""
        return self._passed == len(self._order.shares)

    def run(self, level: float) -> None:
        """Go on while policies pass at a level that is at least the one before."""
        self._level = level
        while not self.has_ended:
            if len(self._tested) == self._passed:
                self._tested.append(next(self._results))
            p_values = [one.p_value for one in self._tested[-1][1] if one.p_value is not None]
            if max(p_values) > level:
                return
            self._passed += 1

    @property
    def chain(self) -> Chain:
        steps = tuple(
            TriedPolicy(
                shares=finite_thresholds(self._order.shares[place]),
                thresholds=finite_thresholds(self._order.scores[place]),
                admitted=admitted,
                classes=results,
                passed=place < self._passed,
            )
            for place, (admitted, results) in enumerate(self._tested)
        )
        return Chain(self._order.name, tuple(self._order.predicted.tolist()), self._level, steps)


def _tested(orders: list[Order], setting: _Setting, level: float) -> list[Chain]:
    """Test the chains; one that has ended leaves its part of the level to the others."""
    running = [_Running(order, setting, level / len(orders)) for order in orders]
    waiting = running
    while waiting:
        part = level / len(waiting)
        for one in waiting:
            one.run(part)
        left = [one for one in waiting if not one.has_ended]
        if len(left) == len(waiting):
            break
        waiting = left
    return [one.chain for one in running]


def _results(order: Order, setting: _Setting, level: float) -> Iterator[tuple[int, tuple[ClassResult, ...]]]:
    """Yield the points that each policy admits, and the results of the classes that it is tested for."""
    if setting.shown.single_points and setting.ranges(order).are_single:
        for tally in _tallies(setting.evidence, order, setting.losses, by_document=False):
            yield tally.total, _of_points(order, tally, setting, level)
        return
    both = (_tallies(points, order, setting.losses) for points in (setting.evidence, setting.proposing))
    tallies = zip(*both, strict=True)
    together = max(1, min(MOST_TOGETHER, TOGETHER_BYTES // (8 * setting.shown.documents * len(order.columns))))
    while batch := list(islice(tallies, together)):
        for (tally, _), results in zip(batch, _of_documents(order, batch, setting, level), strict=True):
            yield tally.total, results


@dataclass(frozen=True, slots=True, eq=False)
class _Tally:
    """What a policy admits.

    total: all points. admitted: (documents, h) int64, those of each class asked for; one row if documents are not told
    apart. loss: (documents, h) float64, the sum of their losses. wrong, costly: (h,) int64, how many are wrong, and how
    many cost something.
    """

    total: int
    admitted: IntArray
    loss: FloatArray
    wrong: IntArray
    costly: IntArray


def _tallies(points: CertificatePoints, order: Order, losses: Losses, *, by_document: bool = True) -> Iterator[_Tally]:
    """Count what each policy admits; every policy adds the points that enter with it to those of the one before."""
    policies = len(order.scores)
    enters = np.full(len(points.score), policies)
    covered = covers(order.coverage, points)
    for place, number in enumerate(order.predicted.tolist()):
        rows = np.flatnonzero(covered & (points.predicted == number))
        enters[rows] = np.searchsorted(-order.scores[:, place], -points.score[rows], side="left")
    by_entry = np.argsort(enters, kind="stable")
    bounds = np.searchsorted(enters[by_entry], np.arange(policies + 1)).tolist()
    missed = points.predicted != points.label
    loss_of = losses.of(points.label, points.predicted)
    document = points.document if by_document else np.zeros(len(points.score), dtype=np.int64)
    columns = []
    for kind in dict.fromkeys(kind for kind, _ in order.columns):
        classes = points.classes(kind)
        # The last entry, which is also that of -1, is for points that are in no class of the kind.
        place_of = np.full(2 + max(int(classes.max()), *(number for _, number in order.columns)), -1)
        for place, (of_kind, number) in enumerate(order.columns):
            if of_kind == kind:
                place_of[number] = place
        columns.append(place_of[classes])
    admitted = np.zeros((1 + int(document.max()), len(order.columns)), dtype=np.int64)
    loss, (wrong, costly) = np.zeros(admitted.shape), np.zeros((2, len(order.columns)), dtype=np.int64)
    for start, end in pairwise(bounds):
        admitted, loss, wrong, costly = admitted.copy(), loss.copy(), wrong.copy(), costly.copy()
        entering = by_entry[start:end]
        for column in columns:
            rows = entering[column[entering] >= 0]
            np.add.at(admitted, (document[rows], column[rows]), 1)
            rows = rows[missed[rows]]
            np.add.at(loss, (document[rows], column[rows]), loss_of[rows])
            np.add.at(wrong, column[rows], 1)
            np.add.at(costly, column[rows], loss_of[rows] > 0)
        yield _Tally(end, admitted, loss, wrong, costly)


def _of_points(order: Order, tally: _Tally, setting: _Setting, level: float) -> tuple[ClassResult, ...]:
    """The results of a policy if every document is one point that costs nothing or one value, by binomial tests."""
    alpha, n, ranges = setting.alpha, setting.shown.documents, setting.ranges(order)
    admitted, loss, costly = tally.admitted[0], tally.loss[0], tally.costly
    mean = (loss - alpha * admitted) / n
    square = (costly * (ranges.most - alpha) ** 2 + (admitted - costly) * alpha**2) / n
    variance = (square - np.square(mean)) * n / (n - 1)
    counts = zip(costly.tolist(), admitted.tolist(), ranges.most.tolist(), strict=True)
    return _class_results(
        order,
        tally,
        np.array([_single_p_value(e, a, value, alpha) for e, a, value in counts]),
        gain=-mean,
        deviation=np.sqrt(variance),
        boundary=np.sqrt(np.maximum(VARIANCE_FACTOR * variance, ranges.least_variance(alpha) * admitted / n)),
        bound=ranges.largest_excess(alpha),
        setting=setting,
        level=level,
    )


def _single_p_value(costly: int, admitted: int, value: float, alpha: float) -> float:
    """The p-value of points that cost nothing or one value; 0 for some that cannot cost more than alpha."""
    if value <= alpha:
        return 0.0 if admitted else 1.0
    return binomial_tail(costly, admitted, alpha / value)


def _of_documents(
    order: Order, batch: list[tuple[_Tally, _Tally]], setting: _Setting, level: float
) -> Iterator[tuple[ClassResult, ...]]:
    """The results of some policies; those of many classes side by side take little longer than of one."""
    alpha, width = setting.alpha, len(order.columns)
    admitted, loss = (
        np.concatenate([getattr(of_evidence, name) for of_evidence, _ in batch], axis=1)
        for name in ("admitted", "loss")
    )
    known_admitted, known_loss = (
        np.concatenate([getattr(of_known, name) for _, of_known in batch], axis=1) for name in ("admitted", "loss")
    )
    ranges = setting.ranges(replace(order, columns=order.columns * len(batch)))
    most = np.maximum(known_admitted.max(axis=0), 1)
    excess, bound = document_excess(admitted, loss, most, alpha), ranges.largest_excess(alpha) * most
    p_values = class_p_values(
        excess,
        admitted,
        known=document_excess(known_admitted, known_loss, most, alpha),
        bound=bound,
        ranges=ranges,
        alpha=alpha,
        level=level,
        test=setting.test,
        generator=np.random.default_rng(setting.seed),
    )
    deviation = np.std(excess, axis=0, ddof=1)
    boundary = boundary_deviation(excess, admitted, ranges, alpha)
    for start, (tally, _) in zip(range(0, width * len(batch), width), batch, strict=True):
        of_policy = slice(start, start + width)
        yield _class_results(
            order,
            tally,
            p_values[of_policy],
            gain=-excess[:, of_policy].mean(axis=0),
            deviation=deviation[of_policy],
            boundary=boundary[of_policy],
            bound=bound[of_policy],
            setting=setting,
            level=level,
        )


def _class_results(
    order: Order,
    tally: _Tally,
    p_values: FloatArray,
    *,
    gain: FloatArray,
    deviation: FloatArray,
    boundary: FloatArray,
    bound: FloatArray,
    setting: _Setting,
    level: float,
) -> tuple[ClassResult, ...]:
    admitted, loss = tally.admitted.sum(axis=0), tally.loss.sum(axis=0)
    mean_loss = np.divide(loss, admitted, out=np.zeros(len(loss)), where=admitted > 0)
    return tuple(
        ClassResult(
            kind=of.kind,
            number=of.number,
            value=of.value,
            mean_loss=None if setting.losses.given is None else float(mean_loss[place]),
            admitted=int(admitted[place]),
            right=int(admitted[place] - tally.wrong[place]),
            p_value=float(p_values[place]),
            documents_needed=documents_needed(
                float(gain[place]),
                float(deviation[place]),
                float(boundary[place]),
                float(bound[place]),
                level=level,
                bounded=setting.shown.bounded or setting.shown.single_points,
            ),
        )
        for place, column in enumerate(order.columns)
        for of in [named_class(*column, setting.evidence.groups)]
    )


def _certificate(
    tested: list[tuple[Order, Chain]],
    untested: list[ClassResult],
    setting: _Setting,
    class_count: int,
    alpha: Decimal,
    confidence: Decimal,
    kinds: tuple[Kind, ...],
) -> Certificate:
    """What is certified: the union of the chains of single classes, or the better of the paths."""
    passed = [(order, chain, chain.last_passed) for order, chain in tested]
    if part_kind(kinds) is None:
        passed = sorted(passed, key=lambda one: -1 if one[2] is None else -one[2].admitted)[:1]
    certified: list[ClassResult] = []
    lacking = list(untested)
    steps = []
    for order, chain, step in passed:
        if step is None:
            lacking += chain.closest.classes
        else:
            certified += step.classes
            steps.append((order, step.thresholds))
    evidence = setting.evidence
    policy = joined_policy(steps, evidence, class_count) if certified else None
    admitted = np.zeros(len(evidence.score), dtype=np.bool_)
    if policy is not None:
        admitted = admit(evidence.score, evidence.predicted, policy, evidence.attributes)
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=kinds,
        test=setting.test,
        documents=setting.shown.documents,
        points=setting.shown.points,
        proposing=len(setting.proposing.score),
        capped=_capped(setting, policy, kinds),
        loss=setting.losses.given,
        policy=policy,
        admitted=int(np.count_nonzero(admitted)),
        classes=tuple(certified),
        lacking=tuple(lacking),
        chains=tuple(chain for _, chain in tested),
    )


def _capped(setting: _Setting, policy: Policy | None, kinds: tuple[Kind, ...]) -> int:
    """The number of documents of evidence of which more points of a class are admitted than of any proposing one."""
    if policy is None or setting.shown.single_points:
        return 0
    capped = np.zeros(setting.shown.documents, dtype=np.bool_)

    def counts(points: CertificatePoints, kind: Kind, total: int) -> IntArray:
        classes = points.classes(kind)
        rows = admit(points.score, points.predicted, policy, points.attributes) & (classes >= 0)
        found = np.zeros((points.document_count, total), dtype=np.int64)
        np.add.at(found, (points.document[rows], classes[rows]), 1)
        return found

    both = setting.proposing, setting.evidence
    for kind in kinds:
        total = 1 + max(int(points.classes(kind).max()) for points in both)
        of_known, of_evidence = (counts(points, kind, total) for points in both)
        capped |= (of_evidence > np.maximum(of_known.max(axis=0, initial=0), 1)).any(axis=1)
    return int(np.count_nonzero(capped))
