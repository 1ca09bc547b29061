"""A tool for labelling that answers as it was recorded, and notes every request that differs from the recorded one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.receiver import listening

RECORDED = Path(__file__).parent / "recorded"
SIGNING = ("Authorization", "X-Argilla-Api-Key")


@dataclass
class Replay:
    """Where it answers, the exchanges that are left, and what was amiss."""

    url: str
    exchanges: list[dict[str, Any]]
    amiss: list[str] = field(default_factory=list)


def recorded(name: str) -> list[dict[str, Any]]:
    """The exchanges of a recording."""
    return list(json.loads((RECORDED / f"{name}.json").read_text("utf-8"))["exchanges"])


@contextmanager
def replaying(exchanges: list[dict[str, Any]]) -> Iterator[Replay]:
    """Listen on a port of this machine; in the end every exchange must have taken place, and no other."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            seen = {
                "method": self.command,
                "path": parts.path,
                "query": dict(parse_qsl(parts.query, keep_blank_values=True)),
                "headers": {name: self.headers[name] for name in SIGNING if name in self.headers},
                "body": json.loads(content) if content else None,
            }
            expected = {"query": {}, "body": None, **found.exchanges[0]["request"]} if found.exchanges else None
            if seen != expected or (content and self.headers["Content-Type"] != "application/json"):
                found.amiss.append(f"expected {expected}, got {seen}")
                self.send_error(418)
                return
            answer = found.exchanges.pop(0)["answer"]
            if answer.get("dropped"):
                self.close_connection = True
                return
            body = answer["body"] if isinstance(answer["body"], str) else json.dumps(answer["body"])
            self.send_response(answer["status"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, *_: object) -> None:
            pass

    with listening(Handler) as server:
        found = Replay(f"http://127.0.0.1:{server.server_port}", list(exchanges))
        yield found
    assert not found.amiss
    assert not found.exchanges
