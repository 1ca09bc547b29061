"""Keeping the answer to a request in the transaction that stores what it asks for: both are stored, or neither.

A route hands `keeping` to the flow that stores. If the process dies after that transaction, the request finds its
answer when it is sent again; if it dies before, nothing is stored.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from venn_admit.flows.keys import idempotency
from venn_admit.flows.keys.idempotency import Transaction
from venn_admit.http.problems import Problem, Refused
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.idempotency import Attempt, KeptAnswer

RETRY_SECONDS = 5
_KEPT_HEADERS = ("content-type", "location", "etag", "cache-control")

Done = TypeVar("Done")


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
