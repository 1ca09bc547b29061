"""The labels that came back, by reviewer, and what every format needs to gather them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from venn_admit.errors import InvalidInputError

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class GivenLabels:
    """Labels of one reviewer, as texts by the ids of their points. reviewer: None if the file does not say."""

    reviewer: str | None
    labels: dict[str, str]


class OneLabel(NamedTuple):
    """A label of one point. at: when it was given, as text that sorts by time; empty if unknown."""

    reviewer: str | None
    external_id: str
    label: str
    at: str


def by_reviewer(found: Iterable[OneLabel]) -> list[GivenLabels]:
    """Return the newest label of each reviewer for each point, so that the newest of a point comes last.

    Points that several people have labelled take as many turns, of each of whom there is one entry a turn.
    """
    newest: dict[str, dict[str | None, str]] = {}
    for one in sorted(found, key=lambda one: one.at):
        of_point = newest.setdefault(one.external_id, {})
        of_point.pop(one.reviewer, None)
        of_point[one.reviewer] = one.label
    turns: dict[tuple[int, str | None], dict[str, str]] = {}
    for external_id, of_point in newest.items():
        for turn, (reviewer, label) in enumerate(of_point.items()):
            turns.setdefault((turn, reviewer), {})[external_id] = label
    in_order = sorted(turns.items(), key=lambda one: one[0][0])
    return [GivenLabels(reviewer, labels) for (_, reviewer), labels in in_order]


def member(where: str, value: object, name: str, kind: type[_Kind]) -> _Kind:
    """Return a member of an object of JSON. Raises InvalidInputError if it is missing, or of another kind."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise InvalidInputError(f"{where}: {name}: expected {_KINDS[kind]}, got {_shown(found)}")
    return found


def shown_name(value: object, name: str, number: int) -> str:
    """Return what a message calls an entry of a list: a member by which the tool finds it, otherwise its number.

    >>> shown_name({"id": 31}, "id", 4), shown_name({"id": "review-7"}, "id", 4), shown_name({}, "id", 4)
    ('with id 31', "with id 'review-7'", '4')
    """
    found = value.get(name) if isinstance(value, dict) else None
    return f"with {name} {_shown(found)}" if isinstance(found, str | int) else str(number)


def listed(where: str, value: object) -> list[object]:
    """Return a list. Raises InvalidInputError if it is something else."""
    if not isinstance(value, list):
        raise InvalidInputError(f"{where}: expected a list, got {_shown(value)}")
    return value


_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    str: "text",
    list: "a list",
    dict: "an object",
}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
