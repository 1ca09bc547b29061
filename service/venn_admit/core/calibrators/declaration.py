"""What is declared of a setting of a calibration, and what follows for every way of writing its values.

A setting is a field of the settings of a method (`venn_admit.core.calibrators.settings`), with a `Declared` in its
annotation. Options, requests, columns, documents and advice are made from that.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, get_type_hints

from venn_admit.errors import InvalidInputError

DECIMAL_PLACES = 20


class SettingKind(Enum):
    """What one value of a setting is."""

    DECIMAL = "an exact decimal"
    NUMBER = "a number, which may be infinite"
    INTEGER = "a whole number"
    WORD = "one of some words"
    FLAG = "yes or no"


_TYPES: dict[SettingKind, Callable[[Any], Any]] = {
    SettingKind.DECIMAL: Decimal,
    SettingKind.NUMBER: float,
    SettingKind.INTEGER: int,
    SettingKind.WORD: str,
    SettingKind.FLAG: bool,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A setting. Its name is that of its field, also as an argument and, with hyphens, as an option.

    Attributes:
        kind: What its value is, or each if there are several.
        about: What it is, without the methods that have it; it begins in lower case and ends without a full stop.
        given: How it is given, and its default, as a continuation of `about`.
        usual: The default as JSON has it, if it is the same for every method and classifier.
        example: A value, as JSON has it.
        words: Makes a value of a word; raises ValueError for another.
        many: Whether it has several values.
        rows: Whether each of these is several in its turn, so that its value is a matrix.
        least: The least that each value may be.
        most: The most that each value may be.
        most_values: How many values a request may bring, if there are several.
        name: What tables and sentences call it; None for the name of the field.
        column: Its column in the database; None for the name of the field.
        none: What stands for None outside, if that is not the absence of the setting.
        always: Whether advice names it even if it has its default, so that nothing else is chosen.
        added: Whether it was added after digests of settings had been stored. It is in those of settings that do not
            have its default alone, so that the others stay as they are.
        default: If it was added: its value in settings that were stored before.
    """

    kind: SettingKind
    about: str
    given: str = ""
    usual: Any = None
    example: Any = None
    words: Callable[[str], Any] | None = None
    many: bool = False
    rows: bool = False
    least: int | None = None
    most: int | None = None
    most_values: int | None = None
    name: str | None = None
    column: str | None = None
    none: str | None = None
    always: bool = False
    added: bool = False
    default: Any = None

    def read(self, name: str, given: Any) -> Any:
        """Return the value that a user gives, as text or as Python or JSON have it; its range is not checked.

        Args:
            name: What a message calls it.
            given: A text with commas, or a sequence, if there are several values; with semicolons between rows, or a
                sequence of rows, if it is a matrix.

        Raises:
            InvalidInputError: It is not of this kind.
        """
        if not self.many:
            return self._read(name, given)
        if not self.rows:
            return self._read_all(name, given)
        return tuple(self._read_all(name, row) for row in _parts(name, given, ";"))

    def _read_all(self, name: str, given: Any) -> Any:
        return tuple(self._read(name, part) for part in _parts(name, given, ","))

    def _read(self, name: str, given: Any) -> Any:
        match self.kind:
            case SettingKind.DECIMAL:
                return parse_decimal(name, str(given))
            case SettingKind.NUMBER:
                return _number(name, given)
            case SettingKind.INTEGER:
                return _whole(name, given)
            case SettingKind.WORD:
                return str(given).strip()
            case SettingKind.FLAG:
                return _flag(name, given)

    def plain(self, value: Any) -> Any:
        """Return a value as an argument: texts, numbers and exact decimals, in a list if there are several."""
        if value is None:
            return self.none
        one = str if self.kind is SettingKind.WORD else lambda each: each
        return self._mapped(one, value, list)

    def from_plain(self, plain: Any) -> Any:
        """Return the value that an argument gives.

        Args:
            plain: As the method `plain` returns it; None, as stored before the setting existed, gives its default.
        """
        if plain is None or plain == self.none:
            return self.default
        one: Callable[[Any], Any] = self.words or _TYPES[self.kind]
        return self._mapped(one, plain, tuple)

    def _mapped(self, one: Callable[[Any], Any], value: Any, made: Callable[[Any], Any]) -> Any:
        """One value, or a sequence of one type of all, each made of its own."""
        if not self.many:
            return one(value)
        return made(made(map(one, each)) if self.rows else one(each) for each in value)

    def json(self, value: Any) -> Any:
        """Return a value as JSON has it, where exact decimals are texts; an infinite number stays one."""
        given = self.plain(value)
        if given is None or self.kind is not SettingKind.DECIMAL:
            return given
        return self._mapped(str, given, list)

    def canonical(self, value: Any) -> Any:
        """Return what is the same for equal values, however they are written; digests are made of it."""
        plain = self.plain(value)
        if plain is None:
            return None
        one: Callable[[Any], Any] = Decimal.normalize if self.kind is SettingKind.DECIMAL else _TYPES[self.kind]
        return self._mapped(one, plain, tuple)


def declared(record: type[Any]) -> dict[str, Declared]:
    """Return the settings of a method by name, in their order.

    Args:
        record: A dataclass; each field is annotated with its declaration.
    """
    hints = get_type_hints(record, include_extras=True)
    return {one.name: hints[one.name].__metadata__[0] for one in fields(record)}


def _parts(name: str, given: Any, separator: str) -> Sequence[Any]:
    try:
        return given.split(separator) if isinstance(given, str) else tuple(given)
    except TypeError:
        raise InvalidInputError(f"{name}: expected several values, got {given!r}; give them in a sequence") from None


def parse_decimal(name: str, text: str) -> Decimal:
    """Return the decimal number that a text holds, exactly.

    Args:
        name: What a message calls it.
        text: Such as `0.1`, with few enough places for 1 minus it to be exact.

    Raises:
        InvalidInputError: It holds none.
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, str) or exponent < -DECIMAL_PLACES:  # an exponent that is text is that of infinity or NaN
        raise InvalidInputError(f"{name}: expected a decimal number with at most {DECIMAL_PLACES} places, got {text!r}")
    return number


def _flag(name: str, given: Any) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.strip().lower() in {"true", "false"}:
        return given.strip().lower() == "true"
    raise InvalidInputError(f"{name}: expected true or false, got {given!r}")


def _number(name: str, given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name}: expected a number, got {given!r}") from None


def _whole(name: str, given: Any) -> int:
    try:
        if isinstance(given, str):
            return int(given)
        return int(given) if isinstance(given, float) and given.is_integer() else operator.index(given)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name}: expected whole numbers, got {given!r}") from None
