"""States and plans as values that JSON can hold, exactly: floats are written in hexadecimal."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from venn_admit.core.monitoring.anytime.plan import MonitorPlan
from venn_admit.core.monitoring.anytime.state import Games, MonitorState, PairCounts, initial_state
from venn_admit.core.types import IntArray


def plan_document(plan: MonitorPlan) -> dict[str, Any]:
    """Return a plan as JSON holds it."""
    return {
        "class_count": plan.class_count,
        "alpha": str(plan.alpha),
        "largest_predicted": plan.largest_predicted.tolist(),
        "largest_true": plan.largest_true.tolist(),
        "largest_partition": plan.largest_partition.tolist(),
        "documents": plan.documents.tolist(),
        "wrong": plan.wrong.tolist(),
    }


def plan_of_document(document: Mapping[str, Any]) -> MonitorPlan:
    """Return the plan that `plan_document` made a document of."""
    return MonitorPlan(
        class_count=document["class_count"],
        alpha=Decimal(document["alpha"]),
        largest_predicted=_integers(document["largest_predicted"]),
        largest_true=_integers(document["largest_true"]),
        largest_partition=_integers(document["largest_partition"]),
        documents=_integers(document["documents"]),
        wrong=_integers(document["wrong"]),
    )


def state_document(state: MonitorState) -> dict[str, Any]:
    """Return a state as JSON holds it, without what has not changed since the start."""
    return {
        "documents": state.documents,
        "points": state.points,
        "games": {str(lamp): _games_document(games) for lamp, games in state.games.items()},
        "predicted": _pairs_document(state.predicted),
        "true": _pairs_document(state.true),
        "partition": _pairs_document(state.partition),
        "drawn": state.drawn.tolist(),
        "drawn_wrong": state.drawn_wrong.tolist(),
    }


def state_of_document(document: Mapping[str, Any], plan: MonitorPlan) -> MonitorState:
    """Return the state that `state_document` made a document of."""
    state = initial_state(plan)
    state.documents, state.points = document["documents"], document["points"]
    for lamp, games in state.games.items():
        _read_games(document["games"][str(lamp)], games)
    for pairs, written in (
        (state.predicted, document["predicted"]),
        (state.true, document["true"]),
        (state.partition, document["partition"]),
    ):
        for number, rows in written.items():
            pairs[int(number)].update({(points, wrong): times for points, wrong, times in rows})
    state.drawn, state.drawn_wrong = _integers(document["drawn"]), _integers(document["drawn_wrong"])
    return state


def _games_document(games: Games) -> dict[str, Any]:
    begun = np.flatnonzero((games.wealth != 1).any(axis=1) | (games.most != 1) | (games.crossed != 0))
    return {
        str(number): {
            "wealth": [value.hex() for value in games.wealth[number].tolist()],
            "most": float(games.most[number]).hex(),
            "crossed": int(games.crossed[number]),
        }
        for number in begun.tolist()
    }


def _read_games(document: Mapping[str, Any], games: Games) -> None:
    for number, written in document.items():
        row = int(number)
        games.wealth[row] = [float.fromhex(value) for value in written["wealth"]]
        games.most[row] = float.fromhex(written["most"])
        games.crossed[row] = written["crossed"]


def _pairs_document(pairs: Sequence[PairCounts]) -> dict[str, list[list[int]]]:
    return {
        str(number): [[*pair, times] for pair, times in sorted(counts.items())]
        for number, counts in enumerate(pairs)
        if counts
    }


def _integers(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
