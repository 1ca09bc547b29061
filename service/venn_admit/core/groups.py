"""The groups that exemplars belong to: the values of their attributes, as texts."""

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from venn_admit.core.names import listed
from venn_admit.errors import InvalidInputError


def group_value(value: Any) -> str | None:
    """Return the group of an attribute's value as JSON has it; None if it is in none, as nulls and lists are.

    SQL has the same rule in `venn_admit.group_value_v1`.

    Args:
        value: A text is its own group; numbers are written in decimals without zeros at the end.

    Examples:
        >>> [group_value(value) for value in ("north", 1, 1.0, 2.5, True, None, ["north"])]
        ['north', '1', '1', '2.5', 'true', None, None]
    """
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float() if math.isfinite(value):
            number = Decimal(repr(value))
            return format(number.normalize() if number else Decimal(0), "f")
    return None


def attribute_text(value: Any) -> str:
    """Return the value of an attribute for people: a text as it is, anything else as JSON.

    >>> attribute_text("north"), attribute_text([1, None])
    ('north', '[1, null]')
    """
    return value if isinstance(value, str) else json.dumps(value)


def named_texts(text: str) -> dict[str, str]:
    """Return attributes that are written as `name=value`, with commas between them, as `listed` has them.

    Raises:
        InvalidInputError: It is not written so, or a name occurs twice.

    Examples:
        >>> named_texts("region=north, device=pc")
        {'region': 'north', 'device': 'pc'}
        >>> named_texts('"region=north, east"')
        {'region': 'north, east'}
    """
    found: dict[str, str] = {}
    for part in listed("attributes", text, "region=north") if text.strip() else []:
        name, equals, value = (one.strip() for one in part.partition("="))
        if not (name and equals and value) or name in found:
            raise InvalidInputError(
                f"attributes: expected names and values such as region=north, each name once, got {part!r}"
            )
        found[name] = value
    return found


def group_values(names: Sequence[str], of_points: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """Return the group of each point, by the name of an attribute.

    Args:
        names: The attributes wanted.
        of_points: All attributes of each point, as JSON has them.
    """
    return {name: [group_value(attributes.get(name)) for attributes in of_points] for name in names}
