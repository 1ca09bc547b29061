"""The state of a monitor: the games of its lamps, and what was counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from venn_admit.core.monitoring.anytime.documents import DocumentTally, LabelledPoints, drawn, tally
from venn_admit.core.monitoring.anytime.games import (
    BLOCK_VALUES,
    STAKES,
    Further,
    Games,
    GamesFromStarts,
    excess_factors,
    go_on_from_starts,
    rank_factors,
)
from venn_admit.core.monitoring.anytime.groups import GroupPlan, unknown_counts
from venn_admit.core.monitoring.anytime.plan import EARLY, OF_SAMPLE, Lamp, MonitorPlan
from venn_admit.core.types import BoolArray, IntArray

PairCounts = dict[tuple[int, int, float, float], int]
"""How many documents have (admitted points, wrong ones among them, their weight, that of the wrong ones)."""


@dataclass(slots=True, eq=False)
class MonitorState:
    """What is known after some documents.

    Attributes:
        points: How many labelled points they have.
        games: The games of each lamp; monitors whose games start once have no early ones. Those of the mix are 2 a
            partition: more frequent, then less frequent.
        predicted: (C,) pair counts of each predicted class.
        true: (C,) pair counts of each true class.
        partition: (P,) pair counts of each partition.
        groups: (G,) pair counts of each group that is watched.
        drawn: (P,) int64, documents whose drawn point is in each partition, those of the calibration data included.
        drawn_wrong: (P,) int64, those whose drawn point is predicted wrong.
        unknown: (A,) int64, labelled points that are in no known group, by attribute.
        compared: (2, C, 2) int64, the pairs that each lamp of the sample compares, by class: those in which the
            labelled point is predicted so, or is the surer one, and the others. Without such lamps, C is 0.
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
    compared: IntArray


def initial_state(plan: MonitorPlan) -> MonitorState:
    """Return the state before the first document."""
    classes, partitions = plan.class_count, plan.partition_count
    groups, attributes = (0, 0) if plan.groups is None else (len(plan.groups.classes), len(plan.groups.values))
    games: dict[Lamp, Games] = {}
    for lamp, count in {Lamp.PROMISE: classes, Lamp.TRUE_CLASSES: classes, Lamp.GROUPS: groups}.items():
        if plan.from_starts:
            games[lamp] = GamesFromStarts.before_the_first(count, is_detector=False)
            games[EARLY[lamp]] = GamesFromStarts.before_the_first(count, is_detector=True)
        else:
            games[lamp] = Games.of(count)
    games |= {lamp: Games.of(2 * classes if plan.compares_sample else 0) for lamp in OF_SAMPLE}
    return MonitorState(
        documents=0,
        points=0,
        compared=np.zeros((2, classes if plan.compares_sample else 0, 2), dtype=np.int64),
        games={**games, Lamp.PARTITIONS: Games.of(partitions), Lamp.MIX: Games.of(2 * partitions)},
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
        least = {lamp: plan.needed(lamp, level) for lamp in Lamp}
        _compare_with_calibration(plan, state, block, least)
        _count_shares(plan, state, block, least)
        if plan.compares_sample:
            _compare_sample(plan, state, block, least)
        state.documents += block.document_count
        state.points += len(block.document)
        state.unknown = state.unknown + unknown_counts(block.groups)


def _count_shares(plan: MonitorPlan, state: MonitorState, block: LabelledPoints, least: Mapping[Lamp, float]) -> None:
    counted = [
        (
            Lamp.PROMISE,
            tally(block, block.predicted, plan.largest_predicted, block.weight),
            plan.largest_predicted,
            state.predicted,
        ),
        (
            Lamp.TRUE_CLASSES,
            tally(block, block.label, plan.largest_true, block.weight_of_admitted),
            plan.largest_true,
            state.true,
        ),
    ]
    if plan.groups is not None:
        counted.append((Lamp.GROUPS, _tally_groups(plan.groups, block), plan.groups.largest, state.groups))
    from_starts = []
    for lamp, found, largest, pairs in counted:
        factors = excess_factors(found.wrong_weight, found.weight, largest, float(plan.alpha))
        counts = found.points > 0
        if lamp is Lamp.GROUPS and plan.groups is not None:
            factors[:, ~plan.groups.tested] = 1.0
            counts &= plan.groups.tested
        _add_pairs(pairs, found)
        for each in (lamp, EARLY[lamp]):
            games = state.games.get(each)
            if isinstance(games, GamesFromStarts):
                from_starts.append(Further(games, factors, counts, least[each]))
            elif games is not None:
                games.go_on(factors, state.documents, least[each])
    if from_starts:
        go_on_from_starts(from_starts, state.documents)
    _add_pairs(state.partition, tally(block, block.partition, plan.largest_partition, block.weight))


def _tally_groups(plan: GroupPlan, block: LabelledPoints) -> DocumentTally:
    # The classes of different kinds have different places.
    of_kinds = (tally(block, place, plan.largest, block.weight_of_admitted) for place in plan.places(block))
    return reduce(DocumentTally.__add__, of_kinds)


def _add_pairs(pairs: list[PairCounts], counted: DocumentTally) -> None:
    """Add the counts of documents."""
    document, group = np.nonzero(counted.points)
    columns = (counted.points, counted.wrong, counted.weight, counted.wrong_weight)
    rows = zip(*(column[document, group].tolist() for column in columns), strict=True)
    for (number, pair), times in sorted(Counter(zip(group.tolist(), rows, strict=True)).items()):
        pairs[number][pair] = pairs[number].get(pair, 0) + times


def _compare_with_calibration(
    plan: MonitorPlan, state: MonitorState, block: LabelledPoints, least: Mapping[Lamp, float]
) -> None:
    """Rank the drawn point of each document that has one for ranks among those of the documents before it."""
    rows, partitions = drawn(block), plan.partition_count
    of_partitions = np.ones((len(rows), partitions, len(STAKES)))
    of_mix = np.ones((len(rows), 2 * partitions, len(STAKES)))
    place = np.flatnonzero(block.is_ranked[rows])
    rows = rows[place]
    partition, wrong, uniform = block.partition[rows], block.wrong[rows], block.uniform[rows]
    all_before = state.drawn.sum() + np.arange(len(rows))
    for number in np.flatnonzero(plan.tested).tolist():
        inside = partition == number
        among = np.flatnonzero(inside)
        before = state.drawn[number] + np.cumsum(inside) - inside
        wrong_before = state.drawn_wrong[number] + np.cumsum(inside & wrong) - (inside & wrong)
        factors = rank_factors(wrong[among], uniform[among], wrong_before[among], before[among])
        played = _since_admitted(state, block, number)[place[among]]
        of_partitions[place[among[played]], number] = factors[played]
        of_mix[place, number] = rank_factors(inside, uniform, before, all_before)
        of_mix[place, partitions + number] = rank_factors(~inside, uniform, all_before - before, all_before)
    state.games[Lamp.PARTITIONS].go_on(of_partitions, state.documents, least[Lamp.PARTITIONS])
    state.games[Lamp.MIX].go_on(of_mix, state.documents, least[Lamp.MIX])
    state.drawn = state.drawn + np.bincount(partition, minlength=partitions)
    state.drawn_wrong = state.drawn_wrong + np.bincount(partition[wrong], minlength=partitions)


def _compare_sample(plan: MonitorPlan, state: MonitorState, block: LabelledPoints, least: Mapping[Lamp, float]) -> None:
    """Compare the labelled point of each document with the one beside it: each was as likely to be labelled first.

    A gambler stakes c on one of both, so that a pair multiplies its wealth by 1 + c or by 1 - c.
    """
    rows, classes = drawn(block), np.arange(plan.class_count)
    predicted, beside = block.predicted[rows, None] == classes, block.beside[rows, None] == classes  # (documents, C)
    is_compared = block.beside[rows, None] >= 0
    signs = {
        Lamp.LABELLED_CLASSES: np.where(is_compared, predicted.astype(np.int64) - beside, 0),
        Lamp.LABELLED_SCORES: np.where(predicted & beside, block.surer[rows, None], 0),
    }
    for place, (lamp, sign) in enumerate(signs.items()):
        both = np.concatenate([sign, -sign], axis=1)  # (documents, 2C)
        state.games[lamp].go_on(1.0 + both[:, :, None] * STAKES, state.documents, least[lamp])
        state.compared[place] += np.stack([(sign > 0).sum(axis=0), (sign < 0).sum(axis=0)], axis=1)


def _since_admitted(state: MonitorState, block: LabelledPoints, number: int) -> BoolArray:
    """Whether anything of a partition was admitted in the documents before each, so that its errors can do harm."""
    if state.partition[number]:
        return np.ones(block.document_count, dtype=np.bool_)
    admitted = block.document[block.admitted & (block.partition == number)]
    first = admitted[0] if len(admitted) else block.document_count
    return np.arange(block.document_count) > first
