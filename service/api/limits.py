"""Limits on what a request may hold, each with an answer of its own."""

import asyncio
import time
from collections.abc import Iterable

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venn_admit.service.api.problems import Problem, Refused

MOST_BODY_BYTES = 32 << 20
# What libraries send with a request that needs no body, such as {}, is shorter.
MOST_UNUSED_BYTES = 4 << 10
# How long a request is waited for: this long, and as much longer as what came takes at the least rate.
BODY_SECONDS = 20.0
LEAST_BYTES_PER_SECOND = 64 << 10

_ALLOWED = "most_body_bytes"


def too_large(most: int) -> Refused:
    """The refusal of a body that is too large."""
    return Refused(
        413,
        Problem.BODY_TOO_LARGE,
        f"expected a body of at most {most:,} bytes, got a larger one; send fewer rows at a time",
    )


def too_slow() -> Refused:
    """The refusal of a body that others would have to wait for."""
    return Refused(
        408,
        Problem.BODY_TOO_SLOW,
        f"expected the body within {BODY_SECONDS:.0f} s, and a large one at {LEAST_BYTES_PER_SECOND >> 10} KiB a "
        "second or more, got less; send it again",
        headers={"Connection": "close"},
    )


def check_encoding(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a body that is compressed: a small one may unpack to more than memory holds."""
    codings = b",".join(value for name, value in headers if name == b"content-encoding").decode("latin-1")
    if any(one.strip().lower() not in {"", "identity"} for one in codings.split(",")):
        raise Refused(
            415,
            Problem.UNSUPPORTED_MEDIA_TYPE,
            f"header Content-Encoding: expected identity or none, got {codings[:100]!a}; send the body as it is",
            headers={"Accept-Encoding": "identity"},
        )


class BodyLimit:
    """Refuses a body that is too large, too slow or compressed.

    One that is too large is refused by its announced length before it is read, or else as soon as it is known. A route
    may allow more, by `allow`, before it reads, and then sees to time and encoding itself.
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
        got, waited = 0, 0.0
        started = complete = False

        async def counted() -> Message:
            nonlocal got, waited, complete
            allowed = scope.get("state", {}).get(_ALLOWED)
            most = self._most if allowed is None else allowed
            if max(got, announced) > most:
                raise too_large(most)
            if allowed is None:
                check_encoding(scope["headers"])
            # After the end of a body, what follows is that the client leaves, which it may do at any time.
            is_timed = allowed is None and not complete
            began = time.monotonic()
            try:
                async with asyncio.timeout(BODY_SECONDS + got / LEAST_BYTES_PER_SECOND - waited if is_timed else None):
                    message = await receive()
            except TimeoutError:
                raise too_slow() from None
            waited += time.monotonic() - began
            got += len(message.get("body", b""))
            complete = not message.get("more_body", False)
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


async def skip_unused(request: Request) -> None:
    """Read a body that the route has no use for, so that it counts when the request is sent again.

    Raises Refused if it is longer than such bodies are.
    """
    got = 0
    async for part in request.stream():
        got += len(part)
        if got > MOST_UNUSED_BYTES:
            raise Refused(
                413,
                Problem.BODY_TOO_LARGE,
                f"expected no body, or one of at most {MOST_UNUSED_BYTES:,} bytes, which is not used, got a larger "
                "one; send none",
            )
