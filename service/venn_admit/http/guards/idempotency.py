"""The header Idempotency-Key: a request that stores something is executed once, however often it is sent.

The answer is kept in the transaction that stores what the request asks for: both are stored, or neither. A route hands
`keeping` to the flow that stores. If the process dies after that transaction, the request finds its answer when it is
sent again; if it dies before, nothing is stored.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Message

from venn_admit.errors import VennAdmitError
from venn_admit.flows.keys import idempotency
from venn_admit.flows.keys.idempotency import Transaction
from venn_admit.http.problems import Refused
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.idempotency import Attempt, KeptAnswer
from venn_admit_client.codes import Problem

HEADER = "idempotency-key"
REPLAYED = "Idempotent-Replayed"
LONGEST_KEY = 200
# What else of a request makes another request of it.
_TELLING_HEADERS = ("content-type", "content-encoding", "if-match")
# The draft of the IETF has it in quotes; most programs send it without.
_KEY = re.compile(rf'"([!#-~]{{1,{LONGEST_KEY}}})"|([!#-~]{{1,{LONGEST_KEY}}})', re.ASCII)
log = structlog.get_logger()
Answer = Callable[[Request], Awaitable[Response]]
Skip = Callable[[Request], Awaitable[None]]
RETRY_SECONDS = 5
_KEPT_HEADERS = ("content-type", "location", "etag", "cache-control")
Done = TypeVar("Done")


class DigestedRequest:
    """A request whose body is digested as it is read, so that none need be held in memory for it.

    Attributes:
        request: What the route reads from.
    """

    def __init__(self, request: Request) -> None:
        self._receive = request.receive
        self._digest = hashlib.sha256()
        self.request = Request(request.scope, self._digested)
        head = [request.method, request.url.path, request.url.query]
        for part in (*head, *(request.headers.get(name, "") for name in _TELLING_HEADERS)):
            encoded = part.encode()
            self._digest.update(len(encoded).to_bytes(8, "big") + encoded)

    async def _digested(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._digest.update(message.get("body", b""))
        return message

    def digest(self) -> bytes:
        """Return the digest of what was read, of 32 bytes."""
        return self._digest.digest()


async def answer_once(request: Request, route: str, caller: str, answer: Answer, skip: Skip) -> Response:
    """Answer a request; if its caller has sent one of this name before, give the answer to that one again.

    Args:
        request: Its body is not read yet.
        route: Method and path template.
        caller: Who sent it.
        answer: What executes it.
        skip: Reads a body that is not needed, within the limits that the route has for it.

    Raises:
        Refused: The name was used for another request, or the earlier one is still running.
    """
    name = _name(request)
    if name is None:
        return await answer(request)
    runtime: Runtime = request.app.state.runtime
    kept_for = timedelta(hours=runtime.settings.idempotency_hours)
    began = await run_in_threadpool(idempotency.begin, runtime.engine, caller, name, route, kept_for=kept_for)
    if began is None:
        raise still_running()
    attempt, kept = began
    digested = DigestedRequest(request)
    if kept is not None:
        await skip(digested.request)
        return _replayed(digested, kept)
    keeper = request.state.keeper = Keeper(attempt, digested.digest, kept_for)
    try:
        async with _leased(runtime, attempt):
            given = await _whole(await answer(digested.request))
    except Exception:
        await _release(runtime, attempt)
        raise
    if given.status_code >= 300:
        await _release(runtime, attempt)
        return given
    if keeper.given is not None:
        return keeper.given
    await run_in_threadpool(keeper.keep, runtime, given)
    return given


def _name(request: Request) -> str | None:
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    found = _KEY.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        raise Refused(
            422,
            Problem.INVALID_REQUEST,
            f"header Idempotency-Key: expected one of 1 to {LONGEST_KEY} characters of ASCII without spaces and "
            "quotes, got something else; use a random UUID",
        )
    return found[1] or found[2]


def _replayed(digested: DigestedRequest, kept: KeptAnswer) -> Response:
    if digested.digest() != kept.digest:
        raise Refused(
            422,
            Problem.IDEMPOTENCY_KEY_REUSED,
            "expected the same request as before under this Idempotency-Key, got another; use a key of its own for it",
        )
    return Response(kept.body, kept.status, headers={**kept.headers, REPLAYED: "true"})


async def _whole(given: Response) -> Response:
    """Return an answer with its whole body: the request is complete only when that is."""
    if not isinstance(given, StreamingResponse):
        return given
    blocks = [block if isinstance(block, bytes) else bytes(str(block), "utf-8") async for block in given.body_iterator]
    return Response(b"".join(blocks), given.status_code, headers=dict(given.headers))


@asynccontextmanager
async def _leased(runtime: Runtime, attempt: Attempt) -> AsyncIterator[None]:
    """Extend the lease of an attempt while the block runs, so that no other attempt begins."""
    extending = asyncio.create_task(_extend(runtime, attempt))
    try:
        yield
    finally:
        extending.cancel()
        with suppress(asyncio.CancelledError):
            await extending


async def _extend(runtime: Runtime, attempt: Attempt) -> None:
    # Not one of the threads that answer requests: all of those may be waiting for something long.
    own_thread = CapacityLimiter(1)
    while True:
        await asyncio.sleep(idempotency.LEASE.total_seconds() / 3)
        try:
            await to_thread.run_sync(idempotency.extend, runtime.engine, attempt, limiter=own_thread)
        except VennAdmitError as error:
            log.warning("lease of a request not extended", reason=str(error))


async def _release(runtime: Runtime, attempt: Attempt) -> None:
    try:
        await run_in_threadpool(idempotency.release, runtime.engine, attempt)
    except VennAdmitError as error:
        # The lease ends by itself, and the reason of the refusal matters more.
        log.warning("lease of a request not ended", reason=str(error))


class Keeper:
    """Keeps the answer to one attempt at a request.

    Attributes:
        given: The answer, once it is kept.
    """

    def __init__(self, attempt: Attempt, digest: Callable[[], bytes], kept_for: timedelta) -> None:
        """digest: of the request, once its body is read."""
        self.given: Response | None = None
        self._attempt = attempt
        self._digest = digest
        self._kept_for = kept_for

    def keep(self, runtime: Runtime, given: Response) -> None:
        """Keep an answer, unless another attempt has begun because this one lost its lease."""
        idempotency.record(runtime.engine, self._attempt, self._kept(given), kept_for=self._kept_for)

    def keep_with_effect(self, transaction: Transaction, given: Response) -> None:
        """Keep an answer, together with what a transaction stores.

        Raises Refused if another attempt has begun because this one lost its lease, so the transaction rolls back.
        """
        kept = self._kept(given)
        if not idempotency.record_with_effect(transaction, self._attempt, kept, kept_for=self._kept_for):
            raise still_running()
        self.given = given

    def forget(self, runtime: Runtime) -> None:
        """Delete the answer, because what was stored was taken back; the request can be sent again."""
        idempotency.forget(runtime.engine, self._attempt)
        self.given = None

    def _kept(self, given: Response) -> KeptAnswer:
        headers = {name: given.headers[name] for name in _KEPT_HEADERS if name in given.headers}
        return KeptAnswer(self._digest(), given.status_code, headers, bytes(given.body))


def keeping(
    request: Request,
    payload_of: Callable[[Done], dict[str, Any]],
    headers_of: Callable[[Done], Mapping[str, str]] = lambda _: {},
) -> Callable[[Transaction, Done], None]:
    """Return what a flow calls with its result in the transaction that stores it, to keep the answer of the route.

    Args:
        request: Without an Idempotency-Key, nothing is kept.
        payload_of: Gives what the route returns.
        headers_of: Gives the headers of the answer that are about its content.
    """
    keeper, route = keeper_of(request), request.scope["route"]
    assert isinstance(route, APIRoute)
    model, status = route.response_model, route.status_code or 200

    def keep(transaction: Transaction, done: Done) -> None:
        if keeper is not None:
            content = jsonable_encoder(model.model_validate(payload_of(done)))
            keeper.keep_with_effect(transaction, JSONResponse(content, status, headers=headers_of(done)))

    return keep


def keeper_of(request: Request) -> Keeper | None:
    """Return what keeps the answer to a request; None if it has no Idempotency-Key."""
    return getattr(request.state, "keeper", None)


def still_running() -> Refused:
    """The refusal of a request that another attempt is answering."""
    return Refused(
        409,
        Problem.STILL_RUNNING,
        "an earlier request with this Idempotency-Key is still being answered; send it again later for its answer",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
