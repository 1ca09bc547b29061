"""The state of a monitor after some documents, and how it goes on; equal bit for bit however documents are batched."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from venn_admit.core.monitoring.anytime.documents import (
    DocumentCounts,
    LabelledPoints,
    drawn,
    tally,
)
from venn_admit.core.monitoring.anytime.plan import Lamp, MonitorPlan
from venn_admit.core.monitoring.anytime.wealth import STAKES, excess_factors, play, rank_factors, started
from venn_admit.core.types import BoolArray, FloatArray, IntArray

BLOCK_VALUES = 1 << 20
"""About how many factors are computed at a time."""

PairCounts = dict[tuple[int, int], int]
"""How many documents have (admitted points, wrong ones among them)."""


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
        """Return games that have not begun.

        Args:
            count: g.
        """
        return cls(started(count), np.ones(count), np.zeros(count, dtype=np.int64))

    @property
    def e_value(self) -> FloatArray:
        """(g,) float64, the mean wealth now."""
        total = self.wealth[:, 0].copy()
        for stake in range(1, self.wealth.shape[1]):
            total += self.wealth[:, stake]
        mean: FloatArray = total / self.wealth.shape[1]
        return mean

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
        documents: How many.
        points: How many labelled points they have.
        games: The games of each lamp. Those of the mix are 2 a partition: more frequent, then less frequent.
        predicted: (C,) pair counts of each predicted class.
        true: (C,) pair counts of each true class.
        partition: (P,) pair counts of each partition.
        drawn: (P,) int64, documents whose drawn point is in each partition, those of the calibration data included.
        drawn_wrong: (P,) int64, those whose drawn point is predicted wrong.
    """

    documents: int
    points: int
    games: dict[Lamp, Games]
    predicted: list[PairCounts] = field(default_factory=list)
    true: list[PairCounts] = field(default_factory=list)
    partition: list[PairCounts] = field(default_factory=list)
    drawn: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    drawn_wrong: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def initial_state(plan: MonitorPlan) -> MonitorState:
    """Return the state before the first document.

    Args:
        plan: The plan.
    """
    classes, partitions = plan.class_count, plan.partition_count
    return MonitorState(
        documents=0,
        points=0,
        games={
            Lamp.PROMISE: Games.of(classes),
            Lamp.TRUE_CLASSES: Games.of(classes),
            Lamp.PARTITIONS: Games.of(partitions),
            Lamp.MIX: Games.of(2 * partitions),
        },
        predicted=[{} for _ in range(classes)],
        true=[{} for _ in range(classes)],
        partition=[{} for _ in range(partitions)],
        drawn=plan.documents.copy(),
        drawn_wrong=plan.wrong.copy(),
    )


def advance(plan: MonitorPlan, state: MonitorState, points: LabelledPoints, level: float) -> None:
    """Take further documents into a state, which changes.

    Args:
        plan: The plan that the state began with.
        state: After the documents before.
        points: The further documents, numbered from 0.
        level: That the games of each lamp share.
    """
    step = max(BLOCK_VALUES // (2 * plan.partition_count * len(STAKES)), 1)
    for first in range(0, points.document_count, step):
        block = points.take(first, min(first + step, points.document_count))
        least = {lamp: plan.games(lamp) / level for lamp in Lamp}
        _compare_with_calibration(plan, state, block, least)
        _count_shares(plan, state, block, least)
        state.documents += block.document_count
        state.points += len(block.document)


def _count_shares(plan: MonitorPlan, state: MonitorState, block: LabelledPoints, least: Mapping[Lamp, float]) -> None:
    alpha = float(plan.alpha)
    for lamp, group, largest, pairs in (
        (Lamp.PROMISE, block.predicted, plan.largest_predicted, state.predicted),
        (Lamp.TRUE_CLASSES, block.label, plan.largest_true, state.true),
    ):
        counts = tally(block, group, largest)
        state.games[lamp].go_on(
            excess_factors(counts.wrong, counts.points, largest, alpha), state.documents, least[lamp]
        )
        _add_pairs(pairs, counts)
    _add_pairs(state.partition, tally(block, block.partition, plan.largest_partition))


def _add_pairs(pairs: list[PairCounts], counts: DocumentCounts) -> None:
    document, group = np.nonzero(counts.points)
    found = np.stack([group, counts.points[document, group], counts.wrong[document, group]], axis=1)
    for (number, points, wrong), times in zip(*_unique_rows(found), strict=True):
        pairs[number][points, wrong] = pairs[number].get((points, wrong), 0) + times


def _unique_rows(rows: IntArray) -> tuple[list[list[int]], list[int]]:
    if not len(rows):
        return [], []
    found, times = np.unique(rows, axis=0, return_counts=True)
    return found.tolist(), times.tolist()


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
