"""What forms of the page bring."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, ValidationError

from venn_admit.service.errors import InvalidInputError

Filled = TypeVar("Filled", bound=BaseModel)

MEDIA_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 1000


async def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a form; of a field that comes twice, the last. Raises InvalidInputError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise InvalidInputError(f"body: expected a form as {MEDIA_TYPE}, got {kind or 'no media type'!a}")
    try:
        text = (await request.body()).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError as error:  # what is no ASCII or no UTF-8 is one too
        raise InvalidInputError(
            f"body: expected at most {MOST_FIELDS} fields of a form in UTF-8, got others"
        ) from error


def required(form: Mapping[str, str], field: str) -> str:
    """Return a field without spaces around it. Raises InvalidInputError if it is empty or missing."""
    found = form.get(field, "").strip()
    if not found:
        raise InvalidInputError(f"{field}: expected a value, got none; fill it in")
    return found


def checked(model: type[Filled], **values: Any) -> Filled:
    """Return what programs would send. Raises InvalidInputError, which names the first value that is wrong."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
