"""What a state says: a row for each class and partition that has labels, with its bound, and whether its lamp is lit.

The bounds of a share hold at all times: they leave the shares that a game has not refuted yet. Source: Waudby-Smith &
Ramdas (2024), *Estimating means of bounded random variables by betting*, theorem 3.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from venn_admit.core.monitoring.anytime.games import STAKES, Games, GamesFromStarts
from venn_admit.core.monitoring.anytime.plan import CONFIDENCE, EARLY, LEVEL, OF_SAMPLE, Lamp, MonitorPlan, Watched
from venn_admit.core.monitoring.anytime.state import MonitorState, PairCounts
from venn_admit.core.types import BoolArray

HALVINGS = 40
KEPT_EVIDENCE = 0.1
"""The part of the evidence that lights a lamp which labels that were corrected must leave for its alarm to stand."""


def lower_bound(documents: Mapping[tuple[float, float], int], largest: int, *, level: float) -> float:
    """The lower bound of the share right, E(right) / E(points), over documents.

    A game against each share m that it is at most m; the bound is the largest m at which the wealth has reached
    1 / level. Wealth falls as m grows, so m is found by halving. With probability 1 - level the share lies above the
    bound after every document, whenever one looks.

    Args:
        documents: How many documents have (points, wrong), or the sums of their weights, 0 <= wrong <= points <=
            largest.
        largest: M >= 1, fixed before the documents were seen.

    Returns:
        In [0, 1); 0 if nothing is known.

    Examples:
        >>> round(lower_bound({(1, 0): 95, (1, 1): 5}, 1, level=0.05), 3)
        0.848
    """
    pairs = sorted(documents)
    if not pairs:
        return 0.0
    points = np.array([pair[0] for pair in pairs], dtype=np.float64)
    right = points - np.array([pair[1] for pair in pairs])
    count = np.array([documents[pair] for pair in pairs], dtype=np.float64)

    def is_refuted(share: float) -> bool:
        gain = (right / share - points) / largest  # (p,)
        logs = np.log1p(gain[:, None] * STAKES).T @ count  # (S,)
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).mean())) >= -math.log(level)

    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Reading:
    """One class, group or partition under one lamp.

    Attributes:
        about: Which one.
        points: Admitted points of these with a label; for the mix, the documents whose drawn point is in the partition;
            for the sample, pairs.
        right: The admitted points that are predicted right; None for the mix and the sample.
        lower_bound: The lower bound of the share right, at the confidence 0.95, whenever one looks; None for the mix
            and the sample.
        e_value: The e-value of the evidence now; None for a partition or a group that is not tested.
        most: The largest e-value so far; None for a partition or a group that is not tested.
        lit_at: The number of documents at which it was reached; None if it never was.
        since: The number of the document from which on the evidence that lit the lamp came, as far as it tells; None if
            it is not lit, and for games that start once.
        labelled: For the sample, the pairs in which the labelled point is predicted so, or is the surer one; None for
            all others.
    """

    about: Watched
    documents: int
    points: int
    right: int | None
    lower_bound: float | None
    e_value: float | None
    most: float | None
    needed: float
    lit_at: int | None
    since: int | None = None
    labelled: int | None = None

    @property
    def stands(self) -> bool:
        """Whether an alarm that was raised before stands: labels that were corrected may leave less than lights it."""
        return self.lit_at is not None or (self.most is not None and self.most >= KEPT_EVIDENCE * self.needed)

    @property
    def share_right(self) -> float | None:
        """The share right of the points; None if there are none, and for the mix."""
        return None if self.right is None or not self.points else self.right / self.points


@dataclass(frozen=True, slots=True)
class StandingAlarm:
    """An alarm, or a notice, that stands. created_at: when it was seen."""

    id: int
    about: Watched
    created_at: datetime


def readings(plan: MonitorPlan, state: MonitorState, *, level: float = LEVEL) -> list[Reading]:
    """Return what is known of each class, group and partition that has labels, by lamp."""
    promised = [
        (Lamp.PROMISE, state.predicted, plan.largest_predicted),
        (Lamp.TRUE_CLASSES, state.true, plan.largest_true),
        *([] if plan.groups is None else [(Lamp.GROUPS, state.groups, plan.groups.largest)]),
    ]
    shares = [
        *promised,
        *((EARLY[lamp], pairs, largest) for lamp, pairs, largest in promised if plan.from_starts),
        (Lamp.PARTITIONS, state.partition, plan.largest_partition),
    ]
    return [
        *(row for lamp, pairs, largest in shares for row in _shares(plan, state, lamp, pairs, largest.tolist(), level)),
        *_mix(plan, state, level),
        *(_sample(plan, state, level) if plan.compares_sample else []),
    ]


def _shares(
    plan: MonitorPlan, state: MonitorState, lamp: Lamp, pairs: list[PairCounts], largest: list[int], level: float
) -> list[Reading]:
    games, needed, is_tested = state.games[lamp], plan.needed(lamp, level), _tested(plan, lamp)
    since = games.since if isinstance(games, GamesFromStarts) else np.zeros(len(games.most), dtype=np.int64)
    found = []
    for number, counts in enumerate(pairs):
        if not counts and not games.crossed[number]:
            continue
        tested = is_tested is None or bool(is_tested[number])
        points = sum(pair[0] * times for pair, times in counts.items())
        found.append(
            Reading(
                about=plan.watched(lamp, number),
                documents=sum(counts.values()),
                points=points,
                right=points - sum(pair[1] * times for pair, times in counts.items()),
                lower_bound=lower_bound(_weights(counts), largest[number], level=1 - CONFIDENCE),
                e_value=float(games.e_value[number]) if tested else None,
                most=float(games.most[number]) if tested else None,
                needed=needed,
                lit_at=int(games.crossed[number]) or None,
                since=int(since[number]) or None,
            )
        )
    return found


def _weights(counts: PairCounts) -> Mapping[tuple[float, float], int]:
    found = Counter[tuple[float, float]]()
    for (_, _, weight, of_wrong), times in counts.items():
        found[weight, of_wrong] += times
    return found


def _tested(plan: MonitorPlan, lamp: Lamp) -> BoolArray | None:
    """Which rows of a lamp are tested; None for all."""
    if (lamp.warned_of or lamp) is Lamp.GROUPS and plan.groups is not None:
        return plan.groups.tested
    return plan.tested if lamp is Lamp.PARTITIONS else None


def _mix(plan: MonitorPlan, state: MonitorState, level: float) -> list[Reading]:
    """The two games of a partition are shown as one: the one with more evidence."""
    games, partitions = state.games[Lamp.MIX], plan.partition_count
    seen = state.drawn - plan.documents
    return [
        Reading(
            about=plan.watched(Lamp.MIX, number),
            documents=int(seen[number]),
            points=int(seen[number]),
            right=None,
            lower_bound=None,
            e_value=float(max(games.e_value[number], games.e_value[partitions + number])),
            most=float(max(games.most[number], games.most[partitions + number])),
            needed=plan.needed(Lamp.MIX, level),
            lit_at=_first(games, number, partitions + number),
        )
        for number in np.flatnonzero(plan.tested).tolist()
    ]


def _sample(plan: MonitorPlan, state: MonitorState, level: float) -> list[Reading]:
    """The classes of which pairs were compared."""
    classes = plan.class_count
    return [
        Reading(
            about=plan.watched(lamp, number),
            documents=int(compared.sum()),
            points=int(compared.sum()),
            right=None,
            lower_bound=None,
            e_value=float(max(games.e_value[number], games.e_value[classes + number])),
            most=float(max(games.most[number], games.most[classes + number])),
            needed=plan.needed(lamp, level),
            lit_at=_first(games, number, classes + number),
            labelled=int(compared[0]),
        )
        for lamp, of_lamp in zip(OF_SAMPLE, state.compared, strict=True)
        for games in [state.games[lamp]]
        for number, compared in enumerate(of_lamp)
        if compared.any()
    ]


def _first(games: Games, *numbers: int) -> int | None:
    crossed = [int(games.crossed[number]) for number in numbers if games.crossed[number]]
    return min(crossed, default=None)
