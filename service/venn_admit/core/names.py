"""What ids and names may consist of, in files, tables, arguments, requests and forms alike.

The checks raise ValueError, whose arguments are what was expected and what was received.
"""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager

from venn_admit.errors import InvalidInputError

ID_LENGTH_LIMIT = 1000
NAME_LENGTH_LIMIT = 100
SOURCE_LENGTH_LIMIT = 200

_CONTROL = r"\x00-\x1f\x7f-\x9f"  # Unicode's category Cc
PRINTABLE = f"^[^{_CONTROL}]*$"
"""Matches a text without control characters, which no terminal is to run and some clients cannot send."""
STORABLE = r"^[^\x00]*$"
"""Matches a text that Postgres can store, if it can be encoded."""


@contextmanager
def refused_as(what: str) -> Iterator[None]:
    """Raise InvalidInputError where a check fails.

    Args:
        what: What its message calls the value.

    Examples:
        >>> with refused_as("source"):
        ...     check_source("")
        Traceback (most recent call last):
        venn_admit.errors.InvalidInputError: source: expected 1 to 200 characters, got 0
    """
    try:
        yield
    except ValueError as error:
        expected, got = error.args
        raise InvalidInputError(f"{what}: expected {expected}, got {got}") from None


def check_new_id(value: str) -> None:
    r"""Check that an exemplar or a document may be given an id.

    Examples:
        >>> check_new_id("a\tb")
        Traceback (most recent call last):
        ValueError: ('text without control characters', "'a\\tb'")
    """
    _check_length(value, ID_LENGTH_LIMIT)
    check_printable(value)


def check_source(value: str) -> None:
    """Check that a name may be recorded of data that come in."""
    _check_length(value, SOURCE_LENGTH_LIMIT)
    check_printable(value)


def check_stored_id(value: str) -> None:
    """Check that an exemplar may have an id; earlier versions stored ids with control characters.

    What only refers to exemplars takes these too, so that each can be labelled and forgotten.
    """
    _check_length(value, ID_LENGTH_LIMIT)
    check_text(value)


def _check_length(value: str, most: int) -> None:
    if not 1 <= len(value) <= most:
        raise ValueError(f"1 to {most:,} characters", f"{len(value):,}")


def check_printable(value: str) -> None:
    """Check that a text has no control characters, and that Postgres can store it."""
    check_text(value)
    if re.search(f"[{_CONTROL}]", value):
        raise ValueError("text without control characters", ascii(value[:80]))


def check_text(value: str) -> None:
    """Check that Postgres can store a text."""
    if "\0" in value:
        raise ValueError("text without NUL characters", ascii(value[:80]))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("text that UTF-8 can encode", ascii(value[:80])) from None


def is_title(text: str, most: int) -> bool:
    r"""Return whether a text consists of printable characters, without spaces around them.

    Args:
        most: The characters that it may have.

    Examples:
        >>> [is_title(text, 9) for text in ("film", "", " film", "a\nb", "a long name")]
        [True, False, False, False, False]
    """
    return 1 <= len(text) <= most and text.isprintable() and text == text.strip()


def is_name(text: str) -> bool:
    """Return whether a classifier may have a name, which is also a part of paths over HTTP and on the page.

    Examples:
        >>> [is_name(text) for text in ("film", "film/tv", ".", "..", "...")]
        [True, False, False, False, True]
    """
    return is_title(text, NAME_LENGTH_LIMIT) and "/" not in text and text not in (".", "..")


def is_group_attribute(text: str) -> bool:
    """Return whether groups may be made of an attribute of this name, which is a part of lists with commas.

    Examples:
        >>> [is_group_attribute(text) for text in ("region", "device os", "", "a,b")]
        [True, True, False, False]
    """
    return is_title(text, NAME_LENGTH_LIMIT) and "," not in text


def listed(what: str, text: str, example: str) -> list[str]:
    """Return the parts of a text that are separated by commas; one in double quotes may hold commas itself.

    Args:
        what: What a message calls it.
        text: As a user writes it.
        example: What it could be.

    Raises:
        InvalidInputError: Quotes do not enclose a part.

    Examples:
        >>> listed("classes", 'bad, "good, or better"', "negative,positive")
        ['bad', 'good, or better']
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise InvalidInputError(
            f"{what}: expected names such as {example}, each in quotes or none, got {text!r}"
        ) from None
    return [part.strip() for part in parts]
