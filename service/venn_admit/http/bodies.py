"""Bodies of JSON: checked before they are parsed.

Parsing is one call of C, during which no other thread runs: for a body of the largest size it takes no longer than
some tenths of a second. A body with a long stretch without texts and brackets, or with more of them than any valid
request, is refused before.
"""

import codecs
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from venn_admit.http.problems import Refused
from venn_admit_client.bodies import JSON
from venn_admit_client.codes import Problem

_Read = TypeVar("_Read")

MOST_NESTING = 32
# 1,000 exemplars with 100 attributes, each a name and a text, are 200,000 texts, and 100,000 classes as many.
MOST_PARTS = 500_000
# 100,000 numbers of 80 characters each, the spaces before them included.
MOST_BYTES_WITHOUT_PARTS = 8 << 20
# A shorter one takes some milliseconds at worst, and mostly less than it takes to hand it to a thread.
BYTES_FOR_A_THREAD = 32 << 10

# A stretch without texts and brackets, and what follows it: a text, whose brackets mean nothing and whose end may be
# missing, a bracket, or the end. It matches everywhere, so that no part of a body is looked at twice.
_PART = re.compile(rb'([^"\[\]{}]*+)("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]|\Z)', re.DOTALL)
_DEEPER = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
# What most of a body is. Without it, texts and brackets are the same up to a backslash before one of these in a text,
# and no parser gets beyond that.
_OF_NUMBERS = b"0123456789+-.eE, \t\r\n"


class JsonRequest(Request):
    """A request whose body is checked and parsed in a thread, unless it is short, before the framework asks for it."""

    _kind = ""

    async def read(self) -> None:
        """Read and parse the body. Raises Refused if it is not JSON, or JSON that no request may hold."""
        if body := await self.body():
            self._kind = _checked_media_type(self.headers.get("content-type"))
            self._json = await apart(read_json, body)

    @property
    def parsed(self) -> Any:
        """What the body holds, once it is read; None if there is none, or if it has another type than JSON itself."""
        return self._json if self._kind == JSON else None


def _checked_media_type(given: str | None) -> str:
    kind = (given or "").partition(";")[0].strip().lower()
    if kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refused(
            415,
            Problem.UNSUPPORTED_MEDIA_TYPE,
            f"header Content-Type: expected {JSON}, got {kind[:100]!a}; name the type of the body"
            if kind
            else f"header Content-Type: expected {JSON}, got none; name the type of the body",
        )
    return kind


async def apart(read: Callable[[bytes], _Read], body: bytes) -> _Read:
    """Return what `read` makes of a body, which it does in a thread unless the body is short."""
    return read(body) if len(body) < BYTES_FOR_A_THREAD else await run_in_threadpool(read, body)


def read_json(body: bytes) -> Any:
    """Return what a body holds. Raises Refused if it is not JSON, or JSON that no request may hold.

    >>> read_json(b'{"a": [1, {"b": null}]}')
    {'a': [1, {'b': None}]}
    """
    check_json(body)
    try:
        # A mark of the byte order may stand before it.
        return msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _read_leniently(body)


def _read_leniently(body: bytes) -> Any:
    """Return what a body holds, NaN and half characters included, whose place the check of the values then names."""
    try:
        # The parser would take UTF-16 and UTF-32 too, which were not checked; RFC 8259 has neither.
        return json.loads(body.decode("utf-8-sig"), object_pairs_hook=_as_dict)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise _refused(f"JSON in UTF-8, got something else at {where}") from error
    except ValueError as error:
        raise _refused("JSON in UTF-8 with integers of at most 4,300 digits, got something else") from error


def _as_dict(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object as the parser would, but in Python, so that another thread may run."""
    return dict(members)


def check_json(body: bytes, most_nesting: int = MOST_NESTING) -> None:
    """Refuse JSON that is nested deeper, or has more parts, than anything that a request may hold.

    >>> check_json(b'{"a": ["[[[[", {}]}', most_nesting=3)
    """
    if len(body) <= MOST_BYTES_WITHOUT_PARTS:
        body = body.translate(None, _OF_NUMBERS)
    depth, length = 0, len(body)
    for number, found in enumerate(_PART.finditer(body)):
        start, end = found.span(1)
        _check_stretch(end - start)
        if end == length:
            return
        depth += _DEEPER.get(body[end], 0)
        if depth > most_nesting:
            raise _refused(f"JSON nested at most {most_nesting} deep, got deeper")
        if number == MOST_PARTS:
            raise _refused(f"at most {MOST_PARTS:,} texts, lists and objects, got more; send fewer rows at a time")


def _check_stretch(length: int) -> None:
    """Refuse more bytes without texts and brackets than the longest list of numbers has."""
    if length > MOST_BYTES_WITHOUT_PARTS:
        most = MOST_BYTES_WITHOUT_PARTS >> 20
        raise _refused(f"at most {most} MiB of numbers or spaces in a row, got more; send JSON as the API describes it")


def _refused(what: str) -> Refused:
    return Refused(422, Problem.INVALID_REQUEST, f"body: expected {what}")
