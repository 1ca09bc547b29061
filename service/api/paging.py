"""Pages of lists that are read from the newest to the oldest: a cursor says after which row the next page begins."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from venn_admit.service.errors import InvalidInputError

Row = TypeVar("Row")

LARGEST_PAGE = 1000
DEFAULT_PAGE = 100
_CURSOR = re.compile(rb"before ([0-9]{1,19})", re.ASCII)
_LARGEST_KEY = 2**63 - 1


def cursor_after(key: int) -> str:
    """Return the cursor of the page that follows a row.

    >>> key_before(cursor_after(42))
    42
    """
    return base64.urlsafe_b64encode(f"before {key}".encode()).decode().rstrip("=")


def key_before(cursor: str | None) -> int | None:
    """Return the row after which a page begins; None for the first page. Raises InvalidInputError."""
    if cursor is None:
        return None
    try:
        decoded = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        decoded = b""
    found = _CURSOR.fullmatch(decoded)
    if found is None or int(found[1]) > _LARGEST_KEY:
        raise InvalidInputError(
            "cursor: expected the next_cursor of an earlier answer, got something else; leave it out for the first page"
        )
    return int(found[1])


def page(rows: Sequence[Row], limit: int, key: Callable[[Row], int]) -> tuple[Sequence[Row], str | None]:
    """Return a page of rows, and the cursor of the next one; None if there is none.

    Args:
        rows: The rows of the page, in their order, and one more if there are more.
        limit: The most rows of the page.
        key: Of a row, by which the rows are in order.
    """
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_after(key(rows[limit - 1]))
