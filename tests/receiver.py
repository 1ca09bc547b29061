"""A webhook for tests: it keeps what it was sent, and fails as told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@dataclass
class Receiver:
    """A webhook, what it was sent, and the statuses that it answers with; then 204."""

    url: str
    statuses: list[int] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = found.statuses.pop(0) if found.statuses else 204
            if status < 300:
                found.received.append(json.loads(body))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with listening(Handler) as server:
        found = Receiver(f"http://127.0.0.1:{server.server_port}/hook")
        yield found


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[HTTPServer]:
    """Answer on a port of this machine."""
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
