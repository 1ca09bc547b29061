"""What a state says: a row for each class and partition that has labels, and whether its lamp is lit."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.monitoring.anytime.bounds import lower_bound
from venn_admit.core.monitoring.anytime.plan import CONFIDENCE, LEVEL, Lamp, MonitorPlan
from venn_admit.core.monitoring.anytime.state import Games, MonitorState, PairCounts


@dataclass(frozen=True, slots=True)
class Reading:
    """One class or partition under one lamp.

    Attributes:
        lamp: What is watched.
        number: The class; for a partition, the group of q times C, plus the predicted class.
        documents: Documents that count in it.
        points: Admitted points of these with a label; for the mix, the documents whose drawn point is in the partition.
        right: The admitted points that are predicted right; None for the mix.
        lower_bound: The lower bound of the share right, at the confidence 0.95, whenever one looks; None for the mix.
        e_value: The e-value of the evidence now; None for a partition that is not tested.
        most: The largest e-value so far; None for a partition that is not tested.
        needed: The e-value that lights the lamp.
        lit_at: The number of documents at which it was reached; None if it never was.
    """

    lamp: Lamp
    number: int
    documents: int
    points: int
    right: int | None
    lower_bound: float | None
    e_value: float | None
    most: float | None
    needed: float
    lit_at: int | None

    @property
    def share_right(self) -> float | None:
        """The share right of the points; None if there are none, and for the mix."""
        return None if self.right is None or not self.points else self.right / self.points


def readings(plan: MonitorPlan, state: MonitorState, *, level: float = LEVEL) -> list[Reading]:
    """Return what is known of each class and partition that has labels, by lamp.

    Args:
        plan: The plan.
        state: After some documents.
        level: That the games of each lamp share.
    """
    return [
        *_shares(plan, state, Lamp.PROMISE, state.predicted, plan.largest_predicted.tolist(), level),
        *_shares(plan, state, Lamp.TRUE_CLASSES, state.true, plan.largest_true.tolist(), level),
        *_shares(plan, state, Lamp.PARTITIONS, state.partition, plan.largest_partition.tolist(), level),
        *_mix(plan, state, level),
    ]


def partition_of(number: int, class_count: int) -> tuple[int, int]:
    """Return the group of q, in [0, 3) or 0 without vectors, and the predicted class of a partition.

    Args:
        number: The partition's number.
        class_count: C.
    """
    return divmod(number, class_count)


def _shares(
    plan: MonitorPlan, state: MonitorState, lamp: Lamp, pairs: list[PairCounts], largest: list[int], level: float
) -> list[Reading]:
    games, needed = state.games[lamp], plan.games(lamp) / level
    found = []
    for number, counts in enumerate(pairs):
        if not counts and not games.crossed[number]:
            continue
        tested = lamp is not Lamp.PARTITIONS or bool(plan.tested[number])
        points = sum(pair[0] * times for pair, times in counts.items())
        found.append(
            Reading(
                lamp=lamp,
                number=number,
                documents=sum(counts.values()),
                points=points,
                right=points - sum(pair[1] * times for pair, times in counts.items()),
                lower_bound=lower_bound(counts, largest[number], level=1 - CONFIDENCE),
                e_value=float(games.e_value[number]) if tested else None,
                most=float(games.most[number]) if tested else None,
                needed=needed,
                lit_at=int(games.crossed[number]) or None,
            )
        )
    return found


def _mix(plan: MonitorPlan, state: MonitorState, level: float) -> list[Reading]:
    """The two games of a partition are shown as one: the one with more evidence."""
    games, partitions = state.games[Lamp.MIX], plan.partition_count
    seen = state.drawn - plan.documents
    return [
        Reading(
            lamp=Lamp.MIX,
            number=number,
            documents=int(seen[number]),
            points=int(seen[number]),
            right=None,
            lower_bound=None,
            e_value=float(max(games.e_value[number], games.e_value[partitions + number])),
            most=float(max(games.most[number], games.most[partitions + number])),
            needed=plan.games(Lamp.MIX) / level,
            lit_at=_first(games, number, partitions + number),
        )
        for number in np.flatnonzero(plan.tested).tolist()
    ]


def _first(games: Games, *numbers: int) -> int | None:
    crossed = [int(games.crossed[number]) for number in numbers if games.crossed[number]]
    return min(crossed, default=None)
