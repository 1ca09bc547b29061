"""What callers give: ids, names and sizes, checked alike in both packages, and the arguments of requests as JSON."""

import json
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from operator import index
from typing import Any, overload

from .naming import type_text


@overload
def listed_ids(argument: str, ids: Collection[str], refused: type[Exception]) -> list[str]: ...


@overload
def listed_ids(argument: str, ids: None, refused: type[Exception]) -> None: ...


def listed_ids(argument: str, ids: Collection[str] | None, refused: type[Exception]) -> list[str] | None:
    """Return ids as a list of texts.

    Args:
        argument: What messages call them.
        ids: Texts or whole numbers; None for all.
        refused: What is raised if they are a single text, which would be taken for as many ids as it has characters.
    """
    if ids is None:
        return None
    if isinstance(ids, str | bytes):
        raise refused(f"{argument}: expected ids, in a list for example, got the single text {ids[:80]!r}")
    return [str(one) for one in ids]


def class_names(classes: Iterable[object], refused: type[Exception]) -> list[str]:
    """Return the names of classes; refused is raised for a single text, and for what is no text."""
    if isinstance(classes, str | bytes):
        raise refused(f"classes: expected names, in a list for example, got the single text {classes[:80]!r}")
    names = []
    for name in classes:
        if not isinstance(name, str):
            raise refused(f"classes: expected texts as names, got {name!r}")
        names.append(name)
    return names


def stage_costs(stages: Mapping[str, Any] | Collection[str], refused: type[Exception]) -> dict[str, float]:
    """Return what a point costs that reaches each stage, 0 if that is not said.

    refused is raised for a single text, and for a cost that is no number.
    """
    if isinstance(stages, str | bytes):
        raise refused(f"stages: expected names, in a list for example, got the single text {stages[:80]!r}")
    if not isinstance(stages, Mapping):
        return dict.fromkeys(stages, 0.0)
    for stage, cost in stages.items():
        if not isinstance(cost, Real):
            raise refused(f"cost of {stage!r}: expected a number, got {cost!r}")
    return {stage: float(cost) for stage, cost in stages.items()}


@overload
def whole_number(argument: str, value: int, refused: type[Exception]) -> int: ...


@overload
def whole_number(argument: str, value: None, refused: type[Exception]) -> None: ...


def whole_number(argument: str, value: int | None, refused: type[Exception]) -> int | None:
    """Return a number as Python has it, also one of NumPy's; None stays. refused is raised for anything else."""
    if value is None:
        return None
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise refused(f"{argument}: expected a whole number, got {value!r}")


def attributes_by_name(given: Any, refused: type[Exception]) -> dict[str, Any]:
    """Return the attributes of a point; refused is raised unless they are values by names."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise refused(f"attributes: expected values by name, such as {{'region': 'north'}}, got {given!r}")
    return dict(given)


def encoded(where: str, body: Mapping[str, Any], refused: type[Exception]) -> bytes:
    """Return an object as JSON, with numbers of NumPy as Python has them.

    refused is raised for what JSON cannot hold, such as NaN; where: what its message calls the object.
    """
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError) as error:
        raise refused(f"{where}: expected what JSON can hold: {error}") from error


def encoded_members(body: Mapping[str, Any], refused: type[Exception]) -> bytes:
    """Return the members of an object as JSON, without its braces, one by one so that a refusal names the argument."""
    return b", ".join(encoded(name, {name: value}, refused)[1:-1] for name, value in body.items())


def _plain(value: Any) -> Any:
    if type(value).__module__ == "numpy" and value.ndim == 0:
        return value.item()
    raise TypeError(f"{type_text(value)} is none of its types")
