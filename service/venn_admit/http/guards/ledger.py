"""The requests that the audit ledger records: each that stores something, and those whose keys were refused.

No request is answered as done that is not in the ledger: if the ledger cannot be written, the answer is an error, and
the request can be sent again. What a request held is not in the ledger.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from venn_admit.errors import VennAdmitError
from venn_admit.flows.keys.keys import record
from venn_admit.http.guards.idempotency import REPLAYED
from venn_admit.http.guards.rates import Bucket
from venn_admit.http.problems import Refused, status_of
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.audit import Event, Origin

# Anyone can show keys that are not valid, and must not be able to fill the disk with that. The log has every request.
REFUSALS_PER_MINUTE = 60

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a route is called: its operationId, and its method and path template."""

    action: str
    route: str


class Ledger:
    """Records the requests of one application."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._refusals = Bucket(REFUSALS_PER_MINUTE, REFUSALS_PER_MINUTE)

    async def noted(self, request: Request, asked: Asked, answer: Callable[[], Awaitable[Response]]) -> Response:
        """Answer a request that stores something, and note what became of it."""
        try:
            given = await answer()
        except Exception as error:
            await self._try_to_add(self._event(request, asked, status_of(error)))
            raise
        event = self._event(request, asked, given.status_code)
        await run_in_threadpool(record, self._runtime.engine, replace(event, is_replay=REPLAYED in given.headers))
        return given

    async def note_refusal(self, request: Request, asked: Asked, refusal: Refused, *, stores: bool) -> None:
        """Note that a request was refused before it was answered: without a valid key, or one that allows it.

        stores: whether the request would have stored something; others are only noted if nobody is known to have sent
        them. Requests beyond those that a key may send are not noted, so that no key can fill the disk.
        """
        if getattr(request.state, "caller", None) is None:
            if refusal.status < 500 and not self._refusals.take():
                await self._try_to_add(self._event(request, replace(asked, action="authenticate"), refusal.status))
        elif stores and refusal.status == 403:
            await self._try_to_add(self._event(request, asked, refusal.status))

    def _event(self, request: Request, asked: Asked, status: int) -> Event:
        caller = getattr(request.state, "caller", None)
        shows_address = self._runtime.settings.audit_client_addresses and request.client is not None
        return Event(
            Origin.HTTP,
            asked.action,
            key_id=None if caller is None else caller.key_id,
            subject=None if caller is None else caller.subject,
            route=asked.route,
            target=_printable(request.path_params.get("classifier")),
            status=status,
            request_id=request.state.request_id,
            client_address=request.client.host if shows_address and request.client else None,
        )

    async def _try_to_add(self, event: Event) -> None:
        try:
            await run_in_threadpool(record, self._runtime.engine, event)
        except VennAdmitError as error:
            # The request was refused already, and that answer says more.
            log.warning("not in the audit ledger", request=event.request_id, reason=str(error))


def _printable(name: str | None) -> str | None:
    """A name as the path has it, which nobody has checked yet: Postgres stores no NUL."""
    return None if name is None else name[:100].encode("unicode_escape").decode("ascii")
