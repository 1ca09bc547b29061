"""What surrounds every answer: security headers, a number to find the request by in the log, and its line there."""

import time
import uuid

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venn_admit.http.metrics import Metrics
from venn_admit.http.problems import answer_to_fault

# Nothing that this service sends may be run, framed, sniffed, or kept by caches on the way.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), camera=(), microphone=()",
    "cache-control": "no-store",
}
_SECURITY_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
REQUEST_ID = "x-request-id"
_ADDRESSES = (b"location", b"hx-redirect")
"""Headers with an address of this service."""
NO_ROUTE = "none"

log = structlog.get_logger()


class Surroundings:
    """Answers a request with these headers, whatever becomes of it; a fault of the program is answered and logged.

    Addresses of this service in headers get the path under which a proxy serves it.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, root_path: str) -> None:
        self._app = app
        self._metrics = metrics
        self._root = root_path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope.setdefault("state", {})["request_id"] = uuid.uuid4().hex
        began, status = time.perf_counter(), 0

        async def surround(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                own = {REQUEST_ID: request_id, **scope["state"].get("answer_headers", {})}
                message["headers"] = [
                    *(
                        (name, self._root + value if name in _ADDRESSES else value)
                        for name, value in message["headers"]
                    ),
                    *(one for one in _SECURITY_HEADERS if one[0] not in given),
                    *((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in own.items()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, surround)
        except Exception:
            log.exception("fault", request=request_id, method=scope["method"], path=scope["path"])
            if status:  # the answer has begun, so that only its end can tell
                raise
            await answer_to_fault()(scope, receive, surround)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            caller = scope.get("state", {}).get("caller")
            self._metrics.count(scope["method"], route, status, seconds)
            log.info(
                "request",
                request=request_id,
                method=scope["method"],
                route=route,
                status=status,
                seconds=round(seconds, 4),
                key=None if caller is None else caller.key_id,
            )
