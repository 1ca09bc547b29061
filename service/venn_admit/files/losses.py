"""What errors cost, from CSV or JSON: a row for each true class, a value for each predicted class."""

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from venn_admit.errors import InvalidInputError

MOST_BYTES = 64 << 20
_EXPECTED = "a CSV or JSON file with a row for each true class and a value for each predicted class"


def read_loss(path: Path, class_names: Sequence[str]) -> list[list[str]]:
    """Return the rows of a loss as texts, in the order of the classes.

    CSV may begin with a line that names the predicted classes, and its lines with the name of their true class. JSON is
    a list of lists, or an object of rows by true class, each with its values by predicted class; what is left out of
    a row is the class itself, which costs nothing.

    Raises:
        InvalidInputError: It cannot be read, or names other classes. Values and shape are not checked.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"loss: expected at most {MOST_BYTES:,} bytes, got more in {path}")
        text = path.read_text("utf-8-sig")
        if path.suffix == ".csv":
            return _from_csv(list(csv.reader(text.splitlines())), class_names)
        found = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise InvalidInputError(
            f"loss: expected rows such as 0,1;0.2,0, or {_EXPECTED}, got {path}, which cannot be read: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    return _from_json(found, class_names)


def _from_csv(lines: list[list[str]], class_names: Sequence[str]) -> list[list[str]]:
    """Names stand where a line or a column is more than there are classes."""
    lines = [line for line in lines if line]
    count = len(class_names)
    by_row = {len(line) for line in lines[1:]} == {count + 1}
    if len(lines) == count + 1:
        header, *lines = lines
        columns = _order(header[len(header) - count :], class_names, "the first line")
    else:
        columns = list(range(count))
    if len({len(line) for line in lines}) > 1:
        lengths = ", ".join(str(len(line)) for line in lines[:20])
        raise InvalidInputError(
            f"loss: expected rows of {count} values, all with a name before them or none, got {lengths}"
        )
    if by_row and {len(line) for line in lines} == {count + 1}:
        order = _order([line[0] for line in lines], class_names, "the first column")
        lines = [lines[place][1:] for place in order]
    return [[line[place] for place in columns] if len(line) == count else line for line in lines]


def _from_json(found: Any, class_names: Sequence[str]) -> list[list[str]]:
    if isinstance(found, Mapping):
        _order(list(found), class_names, "the object")
        return [_named_row(name, found[name], class_names) for name in class_names]
    if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
        raise InvalidInputError(f"loss: expected {_EXPECTED}, got JSON that is neither lists in a list nor an object")
    return [list(map(str, row)) for row in found]


def _named_row(name: str, row: Any, class_names: Sequence[str]) -> list[str]:
    if not isinstance(row, Mapping):
        raise InvalidInputError(f"loss: expected values by predicted class for the true class {name!r}, got {row!r}")
    values = {name: "0", **row}
    _order(list(values), class_names, f"the row of {name!r}")
    return [str(values[one]) for one in class_names]


def _order(names: Collection[str], class_names: Sequence[str], where: str) -> list[int]:
    """The place of each class among names that are all classes, each once."""
    known = {name.strip(): place for place, name in enumerate(names)}
    if known.keys() != set(class_names) or len(names) != len(class_names):
        strange = [name for name in known if name not in class_names]
        lacking = [name for name in class_names if name not in known]
        got = f"the unknown {strange[0]!r}" if strange else f"none for {lacking[0]!r}" if lacking else "one twice"
        raise InvalidInputError(
            f"loss: expected each of the classes {', '.join(class_names[:10])} once in {where}, got {got}"
        )
    return [known[name] for name in class_names]
