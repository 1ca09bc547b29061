"""States and plans as values that JSON can hold, exactly: floats are written in hexadecimal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from decimal import Decimal
from typing import Any

import numpy as np

from venn_admit.core.calibrators.certification import class_document, class_from_document
from venn_admit.core.monitoring.anytime.games import Games, GamesFromStarts
from venn_admit.core.monitoring.anytime.groups import GroupPlan
from venn_admit.core.monitoring.anytime.plan import Lamp, MonitorPlan
from venn_admit.core.monitoring.anytime.state import MonitorState, PairCounts, initial_state

_FLAGS = ("from_starts", "compares_sample")
_WRITTEN_ALWAYS = tuple(field.name for field in fields(MonitorPlan) if field.default is MISSING)


def plan_document(plan: MonitorPlan) -> dict[str, Any]:
    """Return a plan as JSON holds it."""
    values = {name: getattr(plan, name) for name in _WRITTEN_ALWAYS}
    arrays = {name: value.tolist() for name, value in values.items() if isinstance(value, np.ndarray)}
    groups = {} if plan.groups is None else {"groups": _groups_document(plan.groups)}
    flags = {name: True for name in _FLAGS if getattr(plan, name)}
    return {**values, "alpha": str(plan.alpha), **arrays, **groups, **flags}


def plan_of_document(document: Mapping[str, Any]) -> MonitorPlan:
    """Return the plan that `plan_document` made a document of."""
    values = {name: document[name] for name in _WRITTEN_ALWAYS}
    arrays = {name: np.array(value, np.int64) for name, value in values.items() if isinstance(value, list)}
    groups = _read_groups(document["groups"]) if "groups" in document else None
    written = {**values, "alpha": Decimal(document["alpha"]), **arrays}
    return MonitorPlan(**written, groups=groups, **{name: document.get(name, False) for name in _FLAGS})


def _groups_document(plan: GroupPlan) -> dict[str, Any]:
    return {
        "classes": [class_document(of) for of in plan.classes],
        "largest": plan.largest.tolist(),
        "documents": plan.documents.tolist(),
        "certified": plan.certified.tolist(),
    }


def _read_groups(document: Mapping[str, Any]) -> GroupPlan:
    return GroupPlan(
        classes=tuple(map(class_from_document, document["classes"])),
        largest=np.array(document["largest"], np.int64),
        documents=np.array(document["documents"], np.int64),
        certified=np.array(document["certified"], np.bool_),
    )


def state_document(state: MonitorState) -> dict[str, Any]:
    """Return a state as JSON holds it, without what has not changed since the start."""
    return {
        "documents": state.documents,
        "points": state.points,
        "games": {str(lamp): games_document(games) for lamp, games in _played(state)},
        **{name: _pairs_document(getattr(state, name)) for name in _pairs(state)},
        **{name: getattr(state, name).tolist() for name in _counts(state)},
    }


def state_of_document(document: Mapping[str, Any], plan: MonitorPlan) -> MonitorState:
    """Return the state that `state_document` made a document of."""
    state = initial_state(plan)
    state.documents, state.points = document["documents"], document["points"]
    for lamp, games in _played(state):
        read_games(document["games"][str(lamp)], games)
    for name in _pairs(state):
        for number, rows in document[name].items():
            getattr(state, name)[int(number)].update(dict(map(_read_pair, rows)))
    for name in _counts(state):
        setattr(state, name, np.array(document[name], np.int64))
    return state


def _played(state: MonitorState) -> list[tuple[Lamp, Games]]:
    """The games of each lamp that has any: without groups, a state is what it was before they were watched."""
    return [(lamp, games) for lamp, games in state.games.items() if len(games.most)]


def _pairs(state: MonitorState) -> tuple[str, ...]:
    return ("predicted", "true", "partition", *(["groups"] if state.groups else []))


def _counts(state: MonitorState) -> tuple[str, ...]:
    beside = {"unknown": bool(state.groups), "compared": state.compared.size > 0}
    return ("drawn", "drawn_wrong", *(name for name, is_counted in beside.items() if is_counted))


def games_document(games: Games) -> dict[str, Any]:
    """Return games by their numbers as JSON holds them.

    Args:
        games: Those of a lamp; what has not begun is left out.
    """
    if isinstance(games, GamesFromStarts):
        begun = games.counted > 0
    else:
        begun = (games.wealth != 1).any(axis=1) | (games.most != 1)
    return {
        str(number): {
            "wealth": _hexadecimal(games.wealth[number]),
            "most": float(games.most[number]).hex(),
            "crossed": int(games.crossed[number]),
            **(_starts_document(games, number) if isinstance(games, GamesFromStarts) else {}),
        }
        for number in np.flatnonzero(begun).tolist()
    }


def _starts_document(games: GamesFromStarts, number: int) -> dict[str, Any]:
    return {
        "moment": _hexadecimal(games.moment[number]),
        "counted": int(games.counted[number]),
        "since": int(games.since[number]),
    }


def _hexadecimal(values: Iterable[float]) -> list[str]:
    return [float(value).hex() for value in values]


def read_games(document: Mapping[str, Any], games: Games) -> None:
    """Set games to what `games_document` made a document of.

    Args:
        games: They have not begun, and change.
    """
    for number, written in document.items():
        row = int(number)
        games.wealth[row] = [float.fromhex(value) for value in written["wealth"]]
        games.most[row] = float.fromhex(written["most"])
        games.crossed[row] = written["crossed"]
        if isinstance(games, GamesFromStarts):
            games.moment[row] = [float.fromhex(value) for value in written["moment"]]
            games.counted[row], games.since[row] = written["counted"], written["since"]


def _pairs_document(pairs: Sequence[PairCounts]) -> dict[str, list[list[int]]]:
    return {
        str(number): [_written_pair(pair, times) for pair, times in sorted(counts.items())]
        for number, counts in enumerate(pairs)
        if counts
    }


def _written_pair(pair: tuple[int, int, float, float], times: int) -> list[Any]:
    """Counts, and weights only where they are others: without drawn points, a state is what it was before these."""
    points, wrong, *weights = pair
    return [points, wrong, times, *([] if weights == [points, wrong] else _hexadecimal(weights))]


def _read_pair(written: Sequence[Any]) -> tuple[tuple[int, int, float, float], int]:
    points, wrong, times, *weights = written
    weight, of_wrong = map(float.fromhex, weights) if weights else (float(points), float(wrong))
    return (points, wrong, weight, of_wrong), times
