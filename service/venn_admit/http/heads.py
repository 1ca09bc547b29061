"""HEAD requests: answered as GET, without the body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """Answers HEAD wherever GET is answered, with the same rights, status and headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        asked, has_ended = {**scope, "method": "GET"}, False

        async def received() -> Message:
            # A stream of events ends here, and would go on for GET.
            return {"type": "http.disconnect"} if has_ended else await receive()

        async def sent(message: Message) -> None:
            nonlocal has_ended
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})
                has_ended = True

        try:
            await self._app(asked, received, sent)
        finally:
            scope.update(asked, method="HEAD")  # what surrounds the answer tells the route
