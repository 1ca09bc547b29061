"""A span for each request, which contains the spans of what the request sends."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venn_admit import telemetry

# Paths that are requested every few seconds, and whose spans would tell nothing.
_UNTRACED = ("/health/", "/metrics")


class Tracing:
    """Makes the span of a request; if it has the header `traceparent`, the span is within the sender's trace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or not telemetry.is_on() or scope["path"].startswith(_UNTRACED):
            await self._app(scope, receive, send)
            return
        attributes = {"http.request.method": scope["method"], "url.scheme": scope["scheme"]}
        with telemetry.span(scope["method"], "server", attributes, sent_with=Headers(scope=scope)) as span:

            async def noted(message: Message) -> None:
                if span is not None and message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            try:
                await self._app(scope, receive, noted)
            finally:
                route = getattr(scope.get("route"), "path", None)
                if span is not None and route is not None:
                    span.update_name(f"{scope['method']} {route}")
                    span.set_attribute("http.route", route)
