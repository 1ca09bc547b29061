"""Bodies of JSON: what is refused before it is parsed, in time that grows with their length alone."""

import asyncio
import json
import threading
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from tests.api.service import OWN, Service, check_problem
from venn_admit.api.application import create_application
from venn_admit.http import bodies
from venn_admit.http.bodies import (
    MOST_BYTES_WITHOUT_PARTS,
    MOST_NESTING,
    MOST_PARTS,
    JsonRequest,
    check_json,
    read_json,
)
from venn_admit.http.limits import BodyLimit
from venn_admit.http.problems import Refused
from venn_admit.store.access.keys import Scope
from venn_admit_client.bodies import CSV


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * MOST_NESTING,
        b'{"a": "' + b"[" * 1000 + b'"}',
        b'{"a": "' + b'\\"[' * 1000 + b'"}',
        b'"' + b'\\"' * (1 << 20),
        b'"' + b"\\" * (1 << 20),
        b'{"text": "' + b"a" * (2 * MOST_BYTES_WITHOUT_PARTS) + b'"}',
        b"0" * MOST_BYTES_WITHOUT_PARTS,
        b"[]" * (MOST_PARTS // 2),
        b"[" + b",\n".join([json.dumps([number / 7 for number in range(100_000)], indent=4).encode()] * 5) + b"]",
    ],
    ids=lambda body: f"{body[:10]!r} of {len(body)}",
)
def test_what_a_request_may_hold_passes(body: bytes) -> None:
    check_json(body)


@pytest.mark.parametrize(
    ("body", "saying"),
    [
        (b"[" * (MOST_NESTING + 1), "nested at most"),
        (b'"a"' + b'{"b":' * (MOST_NESTING + 1), "nested at most"),
        (b"0" * (MOST_BYTES_WITHOUT_PARTS + 1), "numbers or spaces in a row"),
        (b"[" + b" " * (MOST_BYTES_WITHOUT_PARTS + 1) + b"]", "numbers or spaces in a row"),
        (b"[]" * (MOST_PARTS // 2 + 1), "texts, lists and objects"),
        (b'"",' * (MOST_PARTS + 1), "texts, lists and objects"),
    ],
    ids=lambda value: f"{value[:10]!r}" if isinstance(value, bytes) else "",
)
def test_what_none_may_hold_is_refused(body: bytes, saying: str) -> None:
    with pytest.raises(Refused, match=saying) as caught:
        check_json(body)
    assert caught.value.status == 422


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_json_is_in_utf_8(encoding: str) -> None:
    """RFC 8259; what is checked is what is parsed, and a mark of the byte order may stand before it."""
    with pytest.raises(Refused, match="expected JSON in UTF-8"):
        read_json('["\u2200", []]'.encode(encoding))
    assert read_json('["\u2200", []]'.encode("utf-8-sig")) == ["\u2200", []]


def test_a_text_is_looked_at_once() -> None:
    """A text that never ends, with quotes that could begin others: each would be looked at to the end again."""
    parts = list(bodies._PART.finditer(b'[ "' + b'\\"' * 1000))
    assert [part.span(2) for part in parts] == [(0, 1), (2, 2003), (2003, 2003)]


def test_the_loop_goes_on_while_a_long_body_is_checked_and_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once the loop has gone on; if it could not, it would give up after half a minute."""
    gone_on = threading.Event()

    def waiting(body: bytes) -> tuple[int, bool]:
        return len(body), gone_on.wait(30)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b" " * bodies.BYTES_FOR_A_THREAD}

    async def read() -> object:
        headers = [(b"content-type", b"application/json")]
        request = JsonRequest({"type": "http", "method": "POST", "headers": headers}, receive)

        async def go_on() -> None:
            gone_on.set()

        await asyncio.gather(request.read(), go_on())
        return await request.json()

    monkeypatch.setattr(bodies, "read_json", waiting)
    assert asyncio.run(read()) == (bodies.BYTES_FOR_A_THREAD, True)


def test_bodies_have_a_budget_together() -> None:
    """As many simultaneous bodies are taken as there is room for; others are once these are answered."""

    async def sent() -> tuple[list[int], list[int]]:
        go_on, statuses = asyncio.Event(), list[int]()

        async def app(scope: ASGIScope, receive: Receive, send: Send) -> None:
            assert await Request(scope, receive).body() == b"0123456789"
            await go_on.wait()
            await Response()(scope, receive, send)

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                assert message["status"] == 200 or (b"retry-after", b"1") in message["headers"]

        async def ask() -> None:
            parts = iter([b"01234", b"56789"])

            async def receive() -> Message:
                await asyncio.sleep(0)
                body = next(parts)
                return {"type": "http.request", "body": body, "more_body": body == b"01234"}

            await limited({"type": "http", "method": "POST", "headers": []}, receive, send)

        limited = BodyLimit(app, budget=25)
        asking = [asyncio.create_task(ask()) for _ in range(4)]
        pending = set(asking)
        while len(statuses) < 2:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        refused = list(statuses)
        go_on.set()
        await asyncio.gather(*asking)
        await asyncio.gather(ask(), ask())
        return refused, statuses[2:]

    refused, answered = asyncio.run(sent())
    assert refused == [503, 503]
    assert answered == [200] * 4


def test_files_are_not_among_the_bodies_that_memory_has_room_for(shared: Service) -> None:
    settings = replace(shared.runtime.settings, body_budget_mb=0)
    app = create_application(replace(shared.runtime, settings=settings))
    full = replace(shared, client=TestClient(app, raise_server_exceptions=False))
    refused = full.post(f"{OWN}/decide", {"points": []})
    check_problem(refused, 503, "too-busy", "the bodies of other requests")
    assert refused.headers["retry-after"] == "1"
    content, headers = b"external_id,label\n", {"Content-Type": CSV}
    read = full.ask("POST", f"{OWN}/labels/file", key=Scope.WRITE, content=content, headers=headers)
    assert read.status_code != 503, read.text
    assert full.get(OWN).status_code == 200
