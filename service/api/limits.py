"""Limits on what a request may hold, each with an answer of its own."""

import re

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venn_admit.service.api.problems import Problem, Refused

MOST_BODY_BYTES = 32 << 20
MOST_NESTING = 32

_ALLOWED = "most_body_bytes"

# A text, whose brackets mean nothing, or a bracket.
_TEXT_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def too_large(most: int) -> Refused:
    """The refusal of a body that is too large."""
    return Refused(
        413,
        Problem.BODY_TOO_LARGE,
        f"expected a body of at most {most:,} bytes, got a larger one; send fewer rows at a time",
    )


class BodyLimit:
    """Refuses a body that is too large: by its announced length before it is read, or else as soon as it is known.

    A route may allow more, by `allow`, before it reads.
    """

    def __init__(self, app: ASGIApp, *, most: int = MOST_BODY_BYTES) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        digits = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        announced = int(digits[:20]) if digits.isdigit() else 0
        got = 0
        started = False

        async def counted() -> Message:
            nonlocal got
            most = scope.get("state", {}).get(_ALLOWED, self._most)
            if max(got, announced) > most:
                raise too_large(most)
            message = await receive()
            got += len(message.get("body", b""))
            if got > most:
                raise too_large(most)
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except Refused as refusal:
            if started:
                raise
            await refusal.answer()(scope, receive, send)


def allow(request: Request, most: int) -> None:
    """Let the body of a request have more bytes than those of others; to be called before it is read."""
    setattr(request.state, _ALLOWED, most)


def check_nesting(body: bytes, most: int = MOST_NESTING) -> None:
    """Refuse JSON that is nested deeper than anything that a request may hold; parsing it would take much memory.

    >>> check_nesting(b'{"a": ["[[[[", {}]}', most=3)
    """
    depth = 0
    for found in _TEXT_OR_BRACKET.finditer(body):
        match found.group():
            case b"[" | b"{":
                depth += 1
                if depth > most:
                    raise Refused(
                        422, Problem.INVALID_REQUEST, f"body: expected JSON nested at most {most} deep, got deeper"
                    )
            case b"]" | b"}":
                depth -= 1
