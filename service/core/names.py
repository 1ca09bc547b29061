"""What ids and names may consist of, at whichever door they come in: files, tables, arguments, requests, forms."""

import re

ID_LENGTH_LIMIT = 1000
NAME_LENGTH_LIMIT = 100

_CONTROL = r"\x00-\x1f\x7f-\x9f"  # Unicode's category Cc
PRINTABLE = f"^[^{_CONTROL}]*$"
"""Matches a text without control characters, which no terminal is to run and some clients cannot send."""
STORABLE = r"^[^\x00]*$"
"""Matches a text that Postgres can store, if it can be encoded."""


def check_new_id(value: str) -> None:
    r"""Raise ValueError(expected, got) unless an exemplar or a document may be given this id.

    >>> check_new_id("a\tb")
    Traceback (most recent call last):
    ValueError: ('text without control characters', "'a\\tb'")
    """
    _check_length(value)
    check_printable(value)


def check_stored_id(value: str) -> None:
    """Raise ValueError(expected, got) unless an exemplar may have this id; earlier versions stored control characters.

    What only refers to exemplars takes these too, so that each can be labelled and forgotten.
    """
    _check_length(value)
    check_text(value)


def _check_length(value: str) -> None:
    if not 1 <= len(value) <= ID_LENGTH_LIMIT:
        raise ValueError(f"1 to {ID_LENGTH_LIMIT:,} characters", f"{len(value):,}")


def check_printable(value: str) -> None:
    """Raise ValueError(expected, got) if a text has control characters, or if Postgres could not store it."""
    check_text(value)
    if re.search(f"[{_CONTROL}]", value):
        raise ValueError("text without control characters", ascii(value[:80]))


def check_text(value: str) -> None:
    """Raise ValueError(expected, got) if Postgres could not store the text."""
    if "\0" in value:
        raise ValueError("text without NUL characters", ascii(value[:80]))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("text that UTF-8 can encode", ascii(value[:80])) from None


def is_label(text: str, most: int) -> bool:
    r"""Return whether a text has 1 to `most` printable characters, without spaces around them.

    >>> [is_label(text, 9) for text in ("film", "", " film", "a\nb", "a long name")]
    [True, False, False, False, False]
    """
    return 1 <= len(text) <= most and text.isprintable() and text == text.strip()


def is_name(text: str) -> bool:
    """Return whether a classifier may have this name, which is also a part of paths over HTTP and on the page.

    >>> [is_name(text) for text in ("film", "film/tv", ".", "..", "...")]
    [True, False, False, False, True]
    """
    return is_label(text, NAME_LENGTH_LIMIT) and "/" not in text and text not in (".", "..")
