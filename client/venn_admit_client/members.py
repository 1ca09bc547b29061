"""How a record is written as JSON and read from it: each member under the name, and in the place, that JSON has."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


class Told:
    """What says more as text than in its representation: a notebook shows the text."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        # IPython looks no further than the first class that has a representation of its own.
        cls._repr_pretty_ = Told._repr_pretty_  # type: ignore[method-assign]

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """Show the text, by the protocol of IPython."""
        for number, line in enumerate(str(self).rstrip("\n").split("\n")):
            if number:
                printer.break_()
            printer.text(line)


def member(
    example: Any = ...,
    name: str | None = None,
    *,
    default: Any = MISSING,
    repr: bool = True,  # noqa: A002 - as of `field`
    late: bool = False,
) -> Any:
    """Declare a member of a record; an attribute declared otherwise is not in its JSON.

    Args:
        example: A value as JSON has it, for the reference of the HTTP service.
        name: What JSON calls it, if not what Python does.
        default: What it is if a program that makes the record does not say.
        repr: Whether the record's representation shows it.
        late: Whether JSON has it after all that are not.
    """
    return field(default=default, repr=repr, metadata={"example": example, "name": name, "late": late})


@dataclass_transform(frozen_default=True, field_specifiers=(member, field))
def record(made: type[Record]) -> type[Record]:
    """Make a class with annotations a record, which is a frozen dataclass."""
    return dataclass(frozen=True, slots=True)(made)


def members(of: type) -> Mapping[str, Field[Any]]:
    """Return the members of a record by the names that JSON has, in its order."""
    found = [one for one in fields(of) if "name" in one.metadata]
    return {one.metadata["name"] or one.name: one for one in sorted(found, key=lambda one: one.metadata["late"])}


def as_json(shown: object) -> dict[str, Any]:
    """Return a record, or a row by its names, as JSON has it: decimals and times are texts, times with their offset."""
    if isinstance(shown, Mapping):
        return {str(name): _plain(one) for name, one in shown.items()}
    return {name: _plain(getattr(shown, one.name)) for name, one in members(type(shown)).items()}


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return as_json(value)
        case tuple() | list():
            return [_plain(one) for one in value]
        case datetime():
            return value.isoformat()
        case Decimal() | Enum():
            return str(value)
    return as_json(value) if is_dataclass(value) else value


def from_json(of: type[Record], answer: Mapping[str, Any], **rest: Any) -> Record:
    """Return the record that JSON holds; rest: attributes that it does not hold."""
    types = get_type_hints(of)
    found = {one.name: _parsed(types[one.name], answer[name]) for name, one in members(of).items()}
    return of(**found, **rest)


def _parsed(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    arguments = get_args(kind)
    if NoneType in arguments:
        return _parsed(arguments[0], value)
    if get_origin(kind) is tuple:
        return tuple(_parsed(arguments[0], one) for one in value)
    if kind is Decimal:
        return Decimal(value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    return from_json(kind, value) if isinstance(kind, type) and is_dataclass(kind) else value


def described(of: type) -> tuple[str, Mapping[str, str]]:
    """Return what the docstring of a record says of it, and of each of its attributes."""
    said, _, attributes = (of.__doc__ or "").partition("\n\n    Attributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in attributes.splitlines():
        if line.startswith(" " * 12):
            found[name] += f" {line.strip()}"
        elif line.strip():
            name, _, found[name] = line.strip().partition(": ")
    return said, found
