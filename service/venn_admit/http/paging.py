"""Pages of lists, from the newest to the oldest or by name: a cursor says after which row the next page begins."""

import base64
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from venn_admit.errors import InvalidInputError

Row = TypeVar("Row")

LARGEST_PAGE = 1000
DEFAULT_PAGE = 100
_BEFORE = re.compile(r"before ([0-9]{1,19})")
_AFTER = re.compile(r"after ([^\x00-\x1f\x7f]{1,100})")
LARGEST_KEY = 2**63 - 1
"""That of the database's keys."""


def cursor_after(key: int | str) -> str:
    """Return the cursor of the page that follows a row; key: its number, or of a list by name, its name.

    >>> key_before(cursor_after(42)), name_after(cursor_after("reviews"))
    (42, 'reviews')
    """
    said = f"before {key}" if isinstance(key, int) else f"after {key}"
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def key_before(cursor: str | None) -> int | None:
    """Return the row after which a page begins; None for the first page. Raises InvalidInputError."""
    if cursor is None:
        return None
    key = int(_read(cursor, _BEFORE))
    if key > LARGEST_KEY:
        raise _refused()
    return key


def name_after(cursor: str | None) -> str | None:
    """Return the name after which a page of a list by name begins, as `key_before` does."""
    return None if cursor is None else _read(cursor, _AFTER)


def _read(cursor: str, form: re.Pattern[str]) -> str:
    """Return what a cursor of a form holds."""
    try:
        said = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
    except ValueError as error:
        raise _refused() from error
    found = form.fullmatch(said)
    if found is None:
        raise _refused()
    return found[1]


def _refused() -> InvalidInputError:
    return InvalidInputError(
        "cursor: expected the next_cursor of an earlier answer, got something else; leave it out for the first page"
    )


def page(rows: Sequence[Row], limit: int, key: Callable[[Row], int | str]) -> tuple[Sequence[Row], str | None]:
    """Return a page of rows, and the cursor of the next one; None if there is none.

    Args:
        rows: The rows of the page, in their order, and one more if there are more.
        limit: The most rows of the page.
        key: The key of a row, by which the rows are in order.
    """
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_after(key(rows[limit - 1]))
