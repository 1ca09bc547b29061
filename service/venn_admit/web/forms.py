"""What forms of the page bring."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, ValidationError

from venn_admit.core.names import check_text, refused_as
from venn_admit.errors import InvalidInputError
from venn_admit.http.bodies import apart
from venn_admit.http.problems import Refused
from venn_admit_client.codes import Problem

Filled = TypeVar("Filled", bound=BaseModel)

MEDIA_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 1000
# 100,000 logits, the most that a classifier has, with as many digits as doubles have and a comma and a space between.
MOST_BYTES = 4 << 20
# Four for each logit: a comma and a line break are three. While a form is parsed, each takes some 250 bytes.
MOST_ESCAPES = 400_000
# A key, and the page to go to.
MOST_BYTES_TO_SIGN_IN = 16 << 10


async def read_form(request: Request, most: int) -> Mapping[str, str]:
    """Read a form once per request, and return its fields; of one that comes twice, the last.

    Raises:
        InvalidInputError: The body is no form.
        Refused: It has more than `most` bytes.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise InvalidInputError(f"body: expected a form as {MEDIA_TYPE}, got {kind or 'no media type'!a}")
    form = await apart(_parsed, await _body(request, most))
    request.state.form = form
    return form


def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of the form that was read before its page was asked."""
    form: Mapping[str, str] = request.state.form
    return form


async def _body(request: Request, most: int) -> bytes:
    """Return a body, of which no more than `most` bytes and a block are ever held."""
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > most:
            raise Refused(
                413, Problem.BODY_TOO_LARGE, f"expected a form of at most {most:,} bytes, got a larger one; send less"
            )
    return bytes(body)


def _parsed(body: bytes) -> dict[str, str]:
    if body.count(b"%") > MOST_ESCAPES:
        raise InvalidInputError(
            f"body: expected at most {MOST_ESCAPES:,} escaped characters, got more; send less, such as the "
            "columns external_id and label of a sheet"
        )
    try:
        text = body.decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError as error:  # what is no ASCII or no UTF-8 is one too
        raise InvalidInputError(
            f"body: expected at most {MOST_FIELDS} fields of a form in UTF-8, got others"
        ) from error


def required(form: Mapping[str, str], field: str, *, stripped: bool = True) -> str:
    """Return a field, without spaces around it unless it is an id, which may have some.

    Raises InvalidInputError if it is empty or missing, or holds what Postgres cannot store.
    """
    found = form.get(field, "")
    found = found.strip() if stripped else found
    if not found.strip():
        raise InvalidInputError(f"{field}: expected a value, got none; fill it in")
    with refused_as(field):
        check_text(found)
    return found


def checked(model: type[Filled], **values: Any) -> Filled:
    """Return what programs would send. Raises InvalidInputError, which names the first value that is wrong."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
