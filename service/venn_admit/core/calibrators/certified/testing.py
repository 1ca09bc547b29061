"""The tests of chains: what each policy admits of the evidence, what that costs, and how far the chain passes.

Source: Bretz, Maurer, Brannath & Posch (2009), *A graphical approach to sequentially rejective multiple test
procedures*; docs/explanation/certificate.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np

from venn_admit.core.calibrators.certification import DocumentTest, Kind
from venn_admit.core.calibrators.certified.certificate import Chain, ClassResult, TriedPolicy
from venn_admit.core.calibrators.certified.chains import Order, finite_thresholds
from venn_admit.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.core.calibrators.certified.hypothesis_tests import (
    VARIANCE_FACTOR,
    binomial_tail,
    boundary_deviation,
    bounded_p_value,
    class_p_values,
    document_excess,
)
from venn_admit.core.calibrators.certified.losses import Losses, LossRanges
from venn_admit.core.calibrators.certified.points import CertificatePoints, named_class
from venn_admit.core.types import BoolArray, FloatArray, IntArray

TOGETHER_BYTES = 8 << 20
"""Policies of documents are tested together whose counts take about as much."""
MOST_TOGETHER = 16


@dataclass(frozen=True, slots=True, eq=False)
class ChainSetting:
    """What all policies of a certificate are tested under.

    Attributes:
        foretold: What errors cost as the proposing points foretell it, which does not rest on the evidence.
        seed: Drawn from the content of the evidence: every policy is tested with the same order of its documents and
            the same uniform number.
    """

    proposing: CertificatePoints
    evidence: CertificatePoints
    losses: Losses
    foretold: Losses
    alpha: float
    test: DocumentTest
    shown: Evidence
    seed: int

    @property
    def is_declared(self) -> bool:
        """Whether class shares of traffic were declared or estimated."""
        return self.losses.declared is not None

    def ranges(self, order: Order) -> LossRanges:
        """What a point of each class can cost that an order is tested for."""
        return self.losses.ranges(order.columns, self.evidence)


class _Running:
    """A chain that is being tested: its policies are tested as far as they are needed, and each once."""

    def __init__(self, order: Order, setting: ChainSetting, level: float) -> None:
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


def run_chains(orders: list[Order], setting: ChainSetting, level: float) -> list[Chain]:
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


def _results(order: Order, setting: ChainSetting, level: float) -> Iterator[tuple[int, tuple[ClassResult, ...]]]:
    """Yield the points that each policy admits, and the results of the classes that it is tested for."""
    # Declared costs rest on the labels of the evidence, which no bet of a game may know beforehand.
    if setting.shown.single_points and (setting.is_declared or setting.ranges(order).are_single):
        for tally in tallies(setting.evidence, order, setting.losses, by_document=False):
            yield tally.total, _of_points(order, tally, setting, level)
        return
    of_all = [(setting.evidence, setting.losses), (setting.proposing, setting.foretold)]
    if setting.is_declared:
        of_all.append((setting.evidence, setting.foretold))
    steps = zip(*(tallies(points, order, losses) for points, losses in of_all), strict=True)
    together = max(1, min(MOST_TOGETHER, TOGETHER_BYTES // (8 * setting.shown.documents * len(order.columns))))
    while batch := list(islice(steps, together)):
        for (tally, *_), results in zip(batch, _of_documents(order, batch, setting, level), strict=True):
            yield tally.total, results


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTally:
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


def tallies(
    points: CertificatePoints, order: Order, losses: Losses, *, by_document: bool = True
) -> Iterator[PolicyTally]:
    """Yield what each policy admits, from what the one before admits and the points that enter or leave with it.

    Args:
        points: In canonical order.
        by_document: Whether documents are told apart.
    """
    policies = len(order.scores)
    moves = [(_by_step(steps, policies), sign) for steps, sign in zip(order.steps(points), (1, -1), strict=True)]
    missed = points.predicted != points.label
    document = points.document if by_document else np.zeros(len(points.score), dtype=np.int64)
    columns = []
    for kind in dict.fromkeys(kind for kind, _ in order.columns):
        classes = points.classes(kind)
        # The last entry, which is also that of -1, is for points that are in no class of the kind.
        place_of = np.full(2 + max(int(classes.max()), *(number for _, number in order.columns)), -1)
        for place, (of_kind, number) in enumerate(order.columns):
            if of_kind == kind:
                place_of[number] = place
        columns.append((place_of[classes], losses.of(points.label, points.predicted, kind)))
    total = 0
    admitted = np.zeros((1 + int(document.max()), len(order.columns)), dtype=np.int64)
    loss, (wrong, costly) = np.zeros(admitted.shape), np.zeros((2, len(order.columns)), dtype=np.int64)
    for step in range(policies):
        admitted, loss, wrong, costly = admitted.copy(), loss.copy(), wrong.copy(), costly.copy()
        for by_step, sign in moves:
            moving = by_step[step]
            if not len(moving):
                continue
            total += sign * len(moving)
            for column, loss_of in columns:
                rows = moving[column[moving] >= 0]
                np.add.at(admitted, (document[rows], column[rows]), sign)
                rows = rows[missed[rows]]
                np.add.at(loss, (document[rows], column[rows]), sign * loss_of[rows])
                np.add.at(wrong, column[rows], sign)
                np.add.at(costly, column[rows], sign * (loss_of[rows] > 0))
        yield PolicyTally(total, admitted, loss, wrong, costly)


def capped_documents(
    setting: ChainSetting, kinds: Sequence[Kind], admitted: Callable[[CertificatePoints], BoolArray]
) -> int:
    """Return how many documents of evidence have more admitted points of a class than any proposing document has."""
    if setting.shown.single_points:
        return 0
    capped = np.zeros(setting.shown.documents, dtype=np.bool_)
    both = [(points, admitted(points)) for points in (setting.proposing, setting.evidence)]
    for kind in kinds:
        total = 1 + max(int(points.classes(kind).max()) for points, _ in both)
        counts = []
        for points, is_admitted in both:
            classes = points.classes(kind)
            rows = is_admitted & (classes >= 0)
            found = np.zeros((points.document_count, total), dtype=np.int64)
            np.add.at(found, (points.document[rows], classes[rows]), 1)
            counts.append(found)
        of_known, of_evidence = counts
        capped |= (of_evidence > np.maximum(of_known.max(axis=0, initial=0), 1)).any(axis=1)
    return int(np.count_nonzero(capped))


def _by_step(steps: IntArray, policies: int) -> list[IntArray]:
    """The rows of each step before the last; steps: (n,) int64 in [0, policies]."""
    order = np.argsort(steps, kind="stable")
    bounds = np.searchsorted(steps[order], np.arange(policies + 1)).tolist()
    return [order[start:end] for start, end in pairwise(bounds)]


def _of_points(order: Order, tally: PolicyTally, setting: ChainSetting, level: float) -> tuple[ClassResult, ...]:
    """The results of a policy if every document is one point, by tests that need no order of the points."""
    alpha, n, ranges = setting.alpha, setting.shown.documents, setting.ranges(order)
    admitted, loss, costly = tally.admitted[0], tally.loss[0], tally.costly
    mean = (loss - alpha * admitted) / n
    square = (costly * (ranges.most - alpha) ** 2 + (admitted - costly) * alpha**2) / n
    variance = (square - np.square(mean)) * n / (n - 1)
    columns = (costly, loss, admitted, ranges.least, ranges.most)
    p_values = [
        bounded_p_value(total, a, most, alpha) if least < most else _single_p_value(e, a, most, alpha)
        for e, total, a, least, most in zip(*(of.tolist() for of in columns), strict=True)
    ]
    return _class_results(
        order,
        tally,
        np.array(p_values),
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
    order: Order, batch: list[tuple[PolicyTally, ...]], setting: ChainSetting, level: float
) -> Iterator[tuple[ClassResult, ...]]:
    """The results of some policies; those of many classes side by side take little longer than of one.

    batch: For each policy its tally of the evidence, that of the proposing points and, if class shares of traffic were
        declared or estimated, that of the evidence at foretold costs.
    """
    alpha, width = setting.alpha, len(order.columns)
    admitted, loss, known_admitted, known_loss, *at_foretold_costs = (
        np.concatenate([getattr(tally, name) for tally in of_policies], axis=1)
        for of_policies in zip(*batch, strict=True)
        for name in ("admitted", "loss")
    )
    columns = order.columns * len(batch)
    ranges = setting.ranges(replace(order, columns=columns))
    most = np.maximum(known_admitted.max(axis=0), 1)
    excess, bound = document_excess(admitted, loss, most, alpha), ranges.largest_excess(alpha) * most
    known, foretold = document_excess(known_admitted, known_loss, most, alpha), None
    if at_foretold_costs:
        _, foretold_loss = at_foretold_costs
        known_bound = setting.foretold.ranges(columns, setting.evidence).largest_excess(alpha) * most
        known /= known_bound
        foretold = document_excess(admitted, foretold_loss, most, alpha) / known_bound
    p_values = class_p_values(
        excess,
        admitted,
        known=known,
        bound=bound,
        ranges=ranges,
        alpha=alpha,
        level=level,
        test=setting.test,
        generator=np.random.default_rng(setting.seed),
        foretold=foretold,
    )
    deviation = np.std(excess, axis=0, ddof=1)
    boundary = boundary_deviation(excess, admitted, ranges, alpha)
    for start, (tally, *_) in zip(range(0, width * len(batch), width), batch, strict=True):
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
    tally: PolicyTally,
    p_values: FloatArray,
    *,
    gain: FloatArray,
    deviation: FloatArray,
    boundary: FloatArray,
    bound: FloatArray,
    setting: ChainSetting,
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
