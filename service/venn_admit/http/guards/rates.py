"""How many requests a key may send, and how many a process answers at once, of one key and of all."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venn_admit.http.problems import Refused
from venn_admit.runtime.settings import Settings
from venn_admit_client.codes import Problem

# Callers that were not seen for longest are forgotten, by when their buckets are mostly full.
MOST_CALLERS = 10_000
RETRY_SECONDS = 1


class Bucket:
    """Fills at a steady rate up to what may happen at once; each event takes one token.

    Attributes:
        burst: How many tokens it holds.
    """

    def __init__(self, per_minute: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.burst = burst
        self._per_second = per_minute / 60
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    def take(self) -> float:
        """Take a token; return 0, or if there is none, after how many seconds there will be one.

        >>> bucket = Bucket(60, 1, clock=lambda: 0.0)
        >>> bucket.take(), bucket.take()
        (0.0, 1.0)
        """
        self._fill()
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._per_second

    @property
    def left(self) -> int:
        """How many tokens there are."""
        return math.floor(self._tokens)

    @property
    def seconds_to_full(self) -> float:
        """After how many seconds it is full again if nothing is taken."""
        return (self.burst - self._tokens) / self._per_second

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now


@dataclass(frozen=True, slots=True)
class Rate:
    """How many requests of one kind a key may send a minute, 0 for any number, and at once before that counts."""

    kind: str
    per_minute: int
    burst: int


class Rates:
    """Counts the requests of each caller of one process, those that decide apart from the others."""

    def __init__(self, settings: Settings, *, new_bucket: Callable[[float, int], Bucket] = Bucket) -> None:
        self._requests = Rate("requests", settings.requests_per_minute, settings.requests_burst)
        self._decisions = Rate("decisions", settings.decisions_per_minute, settings.requests_burst)
        self._new_bucket = new_bucket
        self._buckets: OrderedDict[tuple[Rate, str], Bucket] = OrderedDict()

    def check(self, request: Request, caller: str, *, decides: bool = False) -> None:
        """Count a request, and have its answer say how many more may follow, as the draft of the IETF has it.

        Raises:
            Refused: The caller has sent too many, or too many of them are being answered.
        """
        rate = self._decisions if decides else self._requests
        if rate.per_minute:
            self._count(request, rate, caller)
        place: _Place = request.state.place
        place.assign(caller)

    def _count(self, request: Request, rate: Rate, caller: str) -> None:
        bucket = self._bucket_of(rate, caller)
        seconds = bucket.take()
        window = math.ceil(rate.burst * 60 / rate.per_minute)
        request.state.answer_headers = {
            "RateLimit-Policy": f'"{rate.kind}";q={rate.burst};w={window}',
            "RateLimit": f'"{rate.kind}";r={bucket.left};t={math.ceil(bucket.seconds_to_full)}',
        }
        if seconds:
            raise Refused(
                429,
                Problem.TOO_MANY_REQUESTS,
                f"expected at most {rate.per_minute:,} {rate.kind} a minute from one key, and {rate.burst:,} at once, "
                "got more; wait for as long as Retry-After says",
                headers={"Retry-After": str(math.ceil(seconds))},
            )

    def _bucket_of(self, rate: Rate, caller: str) -> Bucket:
        key = (rate, caller)
        if key in self._buckets:
            self._buckets.move_to_end(key)
        else:
            self._buckets[key] = self._new_bucket(rate.per_minute, rate.burst)
            if len(self._buckets) > MOST_CALLERS:
                self._buckets.popitem(last=False)
        return self._buckets[key]


class Concurrency:
    """Refuses requests beyond those that a process can answer at once, of one key and of all, except health checks."""

    def __init__(self, app: ASGIApp, *, most: int, most_per_key: int) -> None:
        self._app = app
        self._most = most
        self._most_per_key = most_per_key
        self._running: set[_Place] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"].startswith("/health/"):
            await self._app(scope, receive, send)
            return
        if self._most and len(self._running) >= self._most:
            refusal = Refused(
                503,
                Problem.TOO_BUSY,
                f"this process is answering {self._most:,} requests, which is the most that it takes; try again",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
            await refusal.answer()(scope, receive, send)
            return
        place = scope.setdefault("state", {})["place"] = _Place(self._running, self._most_per_key)

        async def received() -> Message:
            # A slow body keeps no other request from being answered.
            place.leave()
            try:
                return await receive()
            finally:
                place.take()

        async def sent(message: Message) -> None:
            # A stream of events waits for most of its life; the number of streams has a limit of its own.
            if message["type"] == "http.response.start" and _is_of_events(message):
                place.give_up()
            await send(message)

        place.take()
        try:
            await self._app(scope, received, sent)
        finally:
            place.give_up()


class _Place:
    """A request's place among those that are being answered."""

    def __init__(self, running: "set[_Place]", most_per_key: int) -> None:
        self._running = running
        self._most_per_key = most_per_key
        self._caller: str | None = None
        self._is_given_up = False

    def assign(self, caller: str) -> None:
        """Count the request among those of its caller. Raises Refused if too many of them are being answered."""
        if self._most_per_key and sum(one._caller == caller for one in self._running) >= self._most_per_key:
            raise Refused(
                429,
                Problem.TOO_MANY,
                f"expected at most {self._most_per_key:,} requests with a key at a time, got another; wait until one "
                "is answered",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self._caller = caller

    def take(self) -> None:
        """Count the request, unless it gave its place up."""
        if not self._is_given_up:
            self._running.add(self)

    def leave(self) -> None:
        """Do not count the request until it takes its place again."""
        self._running.discard(self)

    def give_up(self) -> None:
        """Do not count the request any more."""
        self._is_given_up = True
        self.leave()


def _is_of_events(start: Message) -> bool:
    return any(name.lower() == b"content-type" and b"text/event-stream" in value for name, value in start["headers"])
