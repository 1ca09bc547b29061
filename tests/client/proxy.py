"""A proxy that fails as proxies and networks do: it drops answers after their effect, or answers itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import httpx2 as httpx

from tests.patience import PATIENCE_SECONDS

_PASSED_ON = ("Authorization", "Content-Type", "Idempotency-Key")


@dataclass(frozen=True, slots=True)
class Own:
    """An answer of the proxy itself; the service sees nothing of the request."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"<html>a proxy</html>"


class Drop:
    """The service answers, and the answer is lost."""


@dataclass(slots=True)
class Seen:
    """A request, and the status that the service answered it with; None if it did not see it."""

    method: str
    idempotency_key: str | None
    status: int | None


@dataclass(slots=True)
class Proxy:
    """A proxy at a URL. Each request takes the next fault, None for none, and when they are used up, none."""

    url: str
    faults: list[Own | Drop | None] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    @classmethod
    @contextmanager
    def before(cls, service: str) -> Iterator[Self]:
        """A proxy before the service at a URL."""
        with httpx.Client(base_url=service, timeout=PATIENCE_SECONDS) as client:
            server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
            proxy = cls(f"http://127.0.0.1:{server.server_port}")
            server.RequestHandlerClass = _handler(proxy, client)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield proxy
            finally:
                server.shutdown()
                server.server_close()
                thread.join()


def _handler(proxy: Proxy, client: httpx.Client) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = proxy.faults.pop(0) if proxy.faults else None
            seen = Seen(self.command, self.headers.get("Idempotency-Key"), None)
            proxy.seen.append(seen)
            if isinstance(fault, Own):
                self._write(fault.status, fault.headers, fault.body)
                return
            headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
            answer = client.request(self.command, self.path, content=body, headers=headers)
            seen.status = answer.status_code
            if fault is None:
                self._write(answer.status_code, {"Content-Type": answer.headers["Content-Type"]}, answer.content)

        def _write(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its name in the base class
            """Write nothing to standard error."""

    return Handler
