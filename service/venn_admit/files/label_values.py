"""Labels in whatever form a file has them: class numbers, whole floats, or class names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import UNKNOWN_LABEL, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit_client.arrays import is_missing

_SHOWN_NAMES = 5


def check_class_names(class_names: Sequence[str]) -> None:
    """Raise InvalidInputError unless these can be the names of a classifier's classes."""
    if len(class_names) < 2:
        raise InvalidInputError(f"classes: expected at least two names, got {len(class_names)}")
    if not all(class_names):
        raise InvalidInputError("classes: expected a name for each class, got an empty one")
    unprintable = [known for known in class_names if not known.isprintable()]
    if unprintable:
        raise InvalidInputError(f"classes: expected printable characters, got {unprintable[0]!a}")
    repeated = sorted({known for known in class_names if class_names.count(known) > 1})
    if repeated:
        raise InvalidInputError(f"classes: expected each name once, got {', '.join(repeated)} more than once")


class ClassNumbers:
    """The classes of a classifier, as labels name them.

    class_names: of the C classes in order; without names, labels are numbers only.
    """

    def __init__(self, class_count: int, class_names: Sequence[str] = ()) -> None:
        self._class_count = class_count
        self._number_of = {name: number for number, name in enumerate(class_names)}
        shown = ", ".join(map(repr, class_names[:_SHOWN_NAMES])) + ", ..." * (len(class_names) > _SHOWN_NAMES)
        self.expected = f"a class number 0..{class_count - 1}" + (f" or a class name ({shown})" if shown else "")

    def of(self, value: object) -> int:
        """Return the class that a value names, with blanks around it if the name itself has none.

        Raises ValueError(expected, got) if it names none, or more than one.
        """
        if isinstance(value, str) and value not in self._number_of:
            value = value.strip()
        number = _whole_number(value)
        by_number = {number} if number is not None and 0 <= number < self._class_count else set()
        by_name = {self._number_of[value]} if isinstance(value, str) and value in self._number_of else set()
        match sorted(by_number | by_name):
            case [only]:
                return only
            case []:
                raise ValueError(self.expected, repr(value))
        integers = "class numbers as integers alone, which Python, JSON, Parquet and npz can hold"
        raise ValueError(integers, f"{value!r}, which is the number of one class and the name of another")

    def of_column(self, values: npt.NDArray[Any] | Sequence[object]) -> IntArray:
        """Return the classes of n labels, (n,) int64; -1 if a label is unknown.

        Unknown are -1, NaN, an empty text, None and what pandas has in its place.

        Raises ValueError(position, expected, got) at the first label that names no class.
        """
        if isinstance(values, np.ndarray):
            return self._of_numbers(values)
        numbers = np.empty(len(values), dtype=np.int64)
        for position, given in enumerate(values):
            value = given.item() if isinstance(given, np.generic) else given
            try:
                numbers[position] = UNKNOWN_LABEL if _is_unknown(value) else self.of(value)
            except ValueError as error:
                raise ValueError(position, *error.args) from None
        return numbers

    def _of_numbers(self, values: npt.NDArray[Any]) -> IntArray:
        filled = np.where(np.isnan(values), UNKNOWN_LABEL, values) if values.dtype.kind == "f" else values
        outside = (filled < UNKNOWN_LABEL) | (filled >= self._class_count)  # before the cast: uint64 would wrap
        if filled.dtype.kind == "f":
            outside |= filled != np.floor(filled)
        if outside.any():
            position = int(outside.argmax())
            expected = f"{UNKNOWN_LABEL} (unknown) or 0..{self._class_count - 1}"
            raise ValueError(position, expected, str(filled[position].item()))
        return filled.astype(np.int64)


def _is_unknown(value: object) -> bool:
    match value:
        case int() | float() if value == UNKNOWN_LABEL:
            return True
        case str():
            return not value
    return is_missing(value)


def _whole_number(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case float():
            return int(value) if value.is_integer() else None
        case str():
            digits = value.removesuffix(".0")
            return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
    return None
