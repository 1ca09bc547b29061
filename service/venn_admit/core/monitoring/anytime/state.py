"""The state of a monitor: games against hypotheses, each played by several gamblers, whose mean wealth is an e-process.

Each gambler stakes a fixed part of what a document can cost it, so that nothing is tuned to the data. Wealth is a
product of simple fractions: no logarithm is taken, and a product that is continued has the same bits as one that was
never interrupted.

Sources: Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by betting*; Vovk, Gammerman &
Shafer (2022), *Algorithmic Learning in a Random World*, 2nd edition, chapter 8.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from venn_admit.core.monitoring.anytime.documents import LabelledPoints, drawn, tally
from venn_admit.core.monitoring.anytime.groups import GroupPlan, unknown_counts
from venn_admit.core.monitoring.anytime.plan import Lamp, MonitorPlan
from venn_admit.core.types import BoolArray, FloatArray, IntArray

STAKES: FloatArray = np.array([0.8 / 2**halvings for halvings in range(9)])
"""(S,) float64 in (0, 1): the parts that gamblers stake. A stake that is wrong by a factor of the square root of two
grows at least five sixths as fast as the best one; the mean over nine costs log 9, about as much as one more error.
"""
BLOCK_VALUES = 1 << 20
"""About how many factors are computed at a time."""
PairCounts = dict[tuple[int, int], int]
"""How many documents have (admitted points, wrong ones among them)."""


def excess_factors(
    hits: IntArray | FloatArray,
    points: IntArray | FloatArray,
    largest: IntArray,
    share: float | FloatArray,
    stakes: FloatArray = STAKES,
) -> FloatArray:
    """What a document multiplies wealth by in the game that hits are more than a share of the points.

    With x hits among a points, a at most M, and a stake c, the factor is 1 + c (x / share - a) / M, which is at least
    1 - c. If E(x) <= share E(a), its mean is at most 1.

    Args:
        hits: (n, g), x.
        points: (n, g), a, in [x, M].
        largest: (g,) int64 >= 1, M, fixed before the documents are seen.
        share: In (0, 1], or an array that broadcasts with the others.
        stakes: (S,) float64 in (0, 1).

    Returns:
        (n, g, S) float64.
    """
    gain = (hits / share - points) / largest  # (n, g)
    return 1.0 + gain[:, :, None] * stakes


def rank_factors(hit: BoolArray, uniform: FloatArray, hits_before: IntArray, before: IntArray) -> FloatArray:
    """What a document multiplies wealth by in the game that hits become more frequent than they were, (n, S) float64.

    The conformal p-value of a document among those before it and itself, U smoothing the ties, is uniform on [0, 1]
    and independent of the earlier ones if the documents are exchangeable. The bet is on p <= h, with h the share of
    hits before: the factor is 1 + c (1[p <= h] / h - 1).

    Args:
        hit: (n,) bool, whether the document is a hit.
        uniform: (n,) float64 in [0, 1), U.
        hits_before: (n,) int64, how many documents before it were hits.
        before: (n,) int64, how many there were.
    """
    p_value = np.where(hit, uniform * (hits_before + 1), hits_before + uniform * (before - hits_before + 1))
    p_value = p_value / (before + 1)
    aim = (hits_before + 1) / (before + 2)
    gain = (p_value <= aim) / aim - 1.0
    factors: FloatArray = 1.0 + gain[:, None] * STAKES
    return factors


def play(wealth: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Continue games, and return the mean wealth after each document.

    Args:
        wealth: (g, S) float64, before the first document.
        factors: (n, g, S) float64, >= 0, n >= 1.

    Returns:
        The e-values (n, g) float64, and the wealth after the last document (g, S); both may overflow to inf.
    """
    with np.errstate(over="ignore", under="ignore"):
        path = np.multiply.accumulate(np.concatenate([wealth[None], factors]), axis=0)[1:]  # (n, g, S)
        return _mean(path), path[-1]


def _mean(wealth: FloatArray) -> FloatArray:
    """The mean over gamblers, the last axis, added one after the other so that its bits do not depend on other axes."""
    total = wealth[..., 0].copy()
    for stake in range(1, wealth.shape[-1]):
        total += wealth[..., stake]
    mean: FloatArray = total / wealth.shape[-1]
    return mean


@dataclass(slots=True, eq=False)
class Games:
    """The games of one lamp.

    Attributes:
        wealth: (g, S) float64, of each gambler.
        most: (g,) float64, the largest e-value so far.
        crossed: (g,) int64, the number of documents at which `most` reached the level of the game; 0 if it has not.
    """

    wealth: FloatArray
    most: FloatArray
    crossed: IntArray

    @classmethod
    def of(cls, count: int) -> "Games":
        """Return games that have not begun."""
        return cls(np.ones((count, len(STAKES))), np.ones(count), np.zeros(count, dtype=np.int64))

    @property
    def e_value(self) -> FloatArray:
        """(g,) float64, the mean wealth now."""
        return _mean(self.wealth)

    def go_on(self, factors: FloatArray, before: int, least: float) -> None:
        """Play on.

        Args:
            factors: (n, g, S) float64, n >= 1.
            before: The number of documents so far.
            least: The e-value that a game must reach.
        """
        e_values, self.wealth = play(self.wealth, factors)
        reached = e_values >= least
        new = reached.any(axis=0) & (self.crossed == 0)
        self.crossed = np.where(new, before + 1 + reached.argmax(axis=0), self.crossed)
        self.most = np.maximum(self.most, e_values.max(axis=0))


@dataclass(slots=True, eq=False)
class MonitorState:
    """What is known after some documents.

    Attributes:
        points: How many labelled points they have.
        games: The games of each lamp. Those of the mix are 2 a partition: more frequent, then less frequent.
        predicted: (C,) pair counts of each predicted class.
        true: (C,) pair counts of each true class.
        partition: (P,) pair counts of each partition.
        groups: (G,) pair counts of each group that is watched.
        drawn: (P,) int64, documents whose drawn point is in each partition, those of the calibration data included.
        drawn_wrong: (P,) int64, those whose drawn point is predicted wrong.
        unknown: (A,) int64, labelled points that are in no known group, by attribute.
    """

    documents: int
    points: int
    games: dict[Lamp, Games]
    predicted: list[PairCounts]
    true: list[PairCounts]
    partition: list[PairCounts]
    groups: list[PairCounts]
    drawn: IntArray
    drawn_wrong: IntArray
    unknown: IntArray


def initial_state(plan: MonitorPlan) -> MonitorState:
    """Return the state before the first document."""
    classes, partitions = plan.class_count, plan.partition_count
    groups, attributes = (0, 0) if plan.groups is None else (len(plan.groups.classes), len(plan.groups.values))
    return MonitorState(
        documents=0,
        points=0,
        games={
            Lamp.PROMISE: Games.of(classes),
            Lamp.TRUE_CLASSES: Games.of(classes),
            Lamp.GROUPS: Games.of(groups),
            Lamp.PARTITIONS: Games.of(partitions),
            Lamp.MIX: Games.of(2 * partitions),
        },
        predicted=[{} for _ in range(classes)],
        true=[{} for _ in range(classes)],
        partition=[{} for _ in range(partitions)],
        groups=[{} for _ in range(groups)],
        drawn=plan.documents.copy(),
        drawn_wrong=plan.wrong.copy(),
        unknown=np.zeros(attributes, dtype=np.int64),
    )


def advance(plan: MonitorPlan, state: MonitorState, points: LabelledPoints, level: float) -> None:
    """Take further documents into a state, which changes.

    Args:
        points: The further documents, numbered from 0.
    """
    step = max(BLOCK_VALUES // (max(2 * plan.partition_count, len(state.groups)) * len(STAKES)), 1)
    for first in range(0, points.document_count, step):
        block = points.take(first, min(first + step, points.document_count))
        least = {lamp: plan.games(lamp) / level for lamp in Lamp}
        _compare_with_calibration(plan, state, block, least)
        _count_shares(plan, state, block, least)
        state.documents += block.document_count
        state.points += len(block.document)
        state.unknown = state.unknown + unknown_counts(block.groups)


def _count_shares(plan: MonitorPlan, state: MonitorState, block: LabelledPoints, least: Mapping[Lamp, float]) -> None:
    alpha = float(plan.alpha)
    for lamp, group, largest, pairs in (
        (Lamp.PROMISE, block.predicted, plan.largest_predicted, state.predicted),
        (Lamp.TRUE_CLASSES, block.label, plan.largest_true, state.true),
    ):
        points, wrong = tally(block, group, largest)
        state.games[lamp].go_on(excess_factors(wrong, points, largest, alpha), state.documents, least[lamp])
        _add_pairs(pairs, points, wrong)
    _add_pairs(state.partition, *tally(block, block.partition, plan.largest_partition))
    if plan.groups is not None:
        _count_groups(plan.groups, state, block, alpha, least[Lamp.GROUPS])


def _count_groups(plan: GroupPlan, state: MonitorState, block: LabelledPoints, alpha: float, least: float) -> None:
    points = np.zeros((block.document_count, len(plan.classes)), dtype=np.int64)
    wrong = points.copy()
    for place in plan.places(block):  # the classes of different kinds have different places
        of_kind, wrong_of_kind = tally(block, place, plan.largest)
        points += of_kind
        wrong += wrong_of_kind
    factors = excess_factors(wrong, points, plan.largest, alpha)
    factors[:, ~plan.tested] = 1.0
    state.games[Lamp.GROUPS].go_on(factors, state.documents, least)
    _add_pairs(state.groups, points, wrong)


def _add_pairs(pairs: list[PairCounts], points: IntArray, wrong: IntArray) -> None:
    """Add the counts of documents, (documents, g) each."""
    document, group = np.nonzero(points)
    found = Counter(zip(group.tolist(), points[document, group].tolist(), wrong[document, group].tolist(), strict=True))
    for (number, *counts), times in sorted(found.items()):
        pair = counts[0], counts[1]
        pairs[number][pair] = pairs[number].get(pair, 0) + times


def _compare_with_calibration(
    plan: MonitorPlan, state: MonitorState, block: LabelledPoints, least: Mapping[Lamp, float]
) -> None:
    """Rank the drawn point of each document among those of the documents before it."""
    rows, partitions = drawn(block), plan.partition_count
    partition, wrong, uniform = block.partition[rows], block.wrong[rows], block.uniform[rows]
    of_partitions = np.ones((len(rows), partitions, len(STAKES)))
    of_mix = np.ones((len(rows), 2 * partitions, len(STAKES)))
    all_before = state.drawn.sum() + np.arange(len(rows))
    for number in np.flatnonzero(plan.tested).tolist():
        inside = partition == number
        among = np.flatnonzero(inside)
        before = state.drawn[number] + np.cumsum(inside) - inside
        wrong_before = state.drawn_wrong[number] + np.cumsum(inside & wrong) - (inside & wrong)
        factors = rank_factors(wrong[among], uniform[among], wrong_before[among], before[among])
        played = _since_admitted(state, block, number)[among]
        of_partitions[among[played], number] = factors[played]
        of_mix[:, number] = rank_factors(inside, uniform, before, all_before)
        of_mix[:, partitions + number] = rank_factors(~inside, uniform, all_before - before, all_before)
    state.games[Lamp.PARTITIONS].go_on(of_partitions, state.documents, least[Lamp.PARTITIONS])
    state.games[Lamp.MIX].go_on(of_mix, state.documents, least[Lamp.MIX])
    state.drawn = state.drawn + np.bincount(partition, minlength=partitions)
    state.drawn_wrong = state.drawn_wrong + np.bincount(partition[wrong], minlength=partitions)


def _since_admitted(state: MonitorState, block: LabelledPoints, number: int) -> BoolArray:
    """Whether anything of a partition was admitted in the documents before each, so that its errors can do harm."""
    if state.partition[number]:
        return np.ones(block.document_count, dtype=np.bool_)
    admitted = block.document[block.admitted & (block.partition == number)]
    first = admitted[0] if len(admitted) else block.document_count
    after: BoolArray = np.arange(block.document_count) > first
    return after
