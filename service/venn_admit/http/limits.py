"""Limits on what a request may hold, each with an answer of its own."""

import asyncio
import time
from collections.abc import Iterable

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venn_admit.http.problems import Refused
from venn_admit_client.codes import Problem

MOST_BODY_BYTES = 32 << 20
# How long after a refusal there may be room for another body.
RETRY_SECONDS = 1
# What libraries send with a request that needs no body, such as {}, is shorter.
MOST_UNUSED_BYTES = 4 << 10
# A body may take this long, and as much longer as it takes at the least rate below.
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
    """The refusal of a body that arrives too slowly."""
    return Refused(
        408,
        Problem.BODY_TOO_SLOW,
        f"expected the body within {BODY_SECONDS:.0f} s, and a large one at {LEAST_BYTES_PER_SECOND >> 10} KiB a "
        "second or more, got less; send it again",
        headers={"Connection": "close"},
    )


def incomplete() -> Refused:
    """The refusal of a body whose client left before its end, for the log and the metrics."""
    return Refused(400, Problem.BODY_INCOMPLETE, "expected the whole body, got a part of it; send it again")


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
    """Refuses a body that is too large, too slow or compressed, or that memory has no room for beside others.

    One that is too large is refused by its announced length before it is read, or else as soon as it is known. A route
    may allow more, by `allow`, before it reads, and then sees to time and encoding itself, and keeps it on the disk.
    """

    def __init__(self, app: ASGIApp, *, budget: int, most: int = MOST_BODY_BYTES) -> None:
        """budget: bytes of all bodies that are in memory at once; those of a request are, until it is answered."""
        self._app = app
        self._most = most
        self._room = _Room(budget)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, started = _Body(scope, receive, self._most, self._room), False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, body.receive, noted)
        except (Refused, ClientDisconnect) as error:
            if started:
                raise
            refusal = error if isinstance(error, Refused) else incomplete()
            await refusal.answer()(scope, receive, send)
        finally:
            body.forget()


class _Room:
    """The memory that bodies have together."""

    def __init__(self, budget: int) -> None:
        self._left = budget

    def take(self, size: int) -> None:
        """Take `size` bytes of it. Raises Refused if there are fewer."""
        if size > self._left:
            raise Refused(
                503,
                Problem.TOO_BUSY,
                "the bodies of other requests take all memory that this process has for them; try again",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self._left -= size

    def give_back(self, size: int) -> None:
        """Give `size` bytes back."""
        self._left += size


class _Body:
    """The body of a request, as it arrives."""

    def __init__(self, scope: Scope, receive: Receive, most: int, room: _Room) -> None:
        self._scope = scope
        self._receive = receive
        self._most = most
        self._room = room
        self._announced = _announced(scope)
        self._got, self._held, self._waited = 0, 0, 0.0
        self._is_complete = False

    async def receive(self) -> Message:
        """Return its next part. Raises Refused."""
        allowed = self._scope.get("state", {}).get(_ALLOWED)
        most = self._most if allowed is None else allowed
        if max(self._got, self._announced) > most:
            raise too_large(most)
        if allowed is None:
            check_encoding(self._scope["headers"])
        message = await self._next(is_timed=allowed is None)
        size = len(message.get("body", b""))
        self._got += size
        if self._got > most:
            raise too_large(most)
        if allowed is None:
            self._room.take(size)
            self._held += size
        return message

    async def _next(self, *, is_timed: bool) -> Message:
        seconds = BODY_SECONDS + self._got / LEAST_BYTES_PER_SECOND - self._waited
        began = time.monotonic()
        try:
            # After the end of a body, what follows is that the client leaves, which it may do at any time.
            async with asyncio.timeout(seconds if is_timed and not self._is_complete else None):
                message = await self._receive()
        except TimeoutError:
            raise too_slow() from None
        self._waited += time.monotonic() - began
        self._is_complete = not message.get("more_body", False)
        return message

    def forget(self) -> None:
        """Give back the memory that it has taken; the request is answered."""
        self._room.give_back(self._held)


def _announced(scope: Scope) -> int:
    """The bytes that a body will have, as far as the request says so."""
    digits = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(digits[:20]) if digits.isdigit() else 0


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
