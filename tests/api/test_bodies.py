"""Bodies of JSON: what is refused before it is parsed, in time that grows with their length alone."""

import asyncio
import json
import threading

import pytest
from starlette.requests import Request

from venn_admit.service.api import bodies
from venn_admit.service.api.bodies import MOST_BYTES_WITHOUT_PARTS, MOST_NESTING, MOST_PARTS, JsonRequest, check_json
from venn_admit.service.api.problems import Refused


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
        json.dumps([[number / 7 for number in range(100_000)]] * 5, indent=4).encode(),
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


def test_a_text_is_looked_at_once() -> None:
    """A text that never ends, with quotes that could begin others: each would be looked at to the end again."""
    parts = list(bodies._PART.finditer(b'[ "' + b'\\"' * 1000))
    assert [part.span() for part in parts] == [(0, 1), (2, 2003)]


def test_the_loop_goes_on_while_a_long_body_is_checked_and_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both end once the loop has gone on; if it could not, they would give up after half a minute."""
    gone_on = threading.Event()
    waited = []

    def waiting(body: bytes) -> int:
        waited.append(gone_on.wait(30))
        return len(body)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b" " * bodies.BYTES_FOR_A_THREAD}

    async def both() -> list[object]:
        request = JsonRequest(Request({"type": "http", "method": "POST", "headers": []}).scope, receive)

        async def go_on() -> None:
            gone_on.set()

        return list(await asyncio.gather(request.check(), request.json(), go_on()))

    monkeypatch.setattr(bodies, "check_json", waiting)
    monkeypatch.setattr(bodies, "parse_json", waiting)
    assert asyncio.run(both())[1] == bodies.BYTES_FOR_A_THREAD
    assert waited == [True, True]
