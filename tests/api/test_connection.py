"""How answers leave a connection: their heads with their bodies, if these follow at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
import uvicorn
import uvloop
from uvicorn.server import ServerState

from venn_admit.api.server import Connection

Send = Callable[[dict[str, Any]], Awaitable[None]]
OTHER = b"HTTP/1.1 is the version\r\n\r\n"


class Watched:
    """A transport that notes what is sent at a time."""

    def __init__(self, transport: asyncio.Transport, sent: list[bytes]) -> None:
        self._transport, self._sent = transport, sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._sent.append(data)
        self._transport.write(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.write(b"".join(parts))


def answered(answer: Callable[[Send], Awaitable[None]]) -> tuple[list[bytes], bytes]:
    """What is sent at a time of an answer, and what its client receives until the connection ends."""
    sent: list[bytes] = []

    async def application(_scope: object, _receive: object, send: Send) -> None:
        await answer(send)

    async def ask() -> bytes:
        config = uvicorn.Config(application, log_config=None, server_header=False, date_header=False)
        config.load()

        class Noted(Connection):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(Watched(transport, sent))  # type: ignore[arg-type]

        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Noted(config, ServerState(), {}), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            received = await reader.read()
            writer.close()
        return received

    return sent, uvloop.run(ask())


def start(length: int | None) -> dict[str, Any]:
    headers = [] if length is None else [(b"content-length", b"%d" % length)]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


@pytest.mark.parametrize("body", [b"{}", OTHER, b""])
def test_a_head_is_sent_with_its_body(body: bytes) -> None:
    async def answer(send: Send) -> None:
        await send(start(len(body)))
        await send(part(body))

    sent, received = answered(answer)
    assert sent == [received]
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert received.endswith(b"\r\n\r\n" + body)


def test_a_head_does_not_wait_for_a_body_that_comes_later() -> None:
    async def answer(send: Send) -> None:
        await send(start(2))
        await asyncio.sleep(0.01)
        await send(part(b"{}"))

    sent, received = answered(answer)
    assert sent == [received.removesuffix(b"{}"), b"{}"]


def test_parts_of_a_body_stay_in_order() -> None:
    async def answer(send: Send) -> None:
        await send(start(None))
        await send(part(OTHER, more=True))
        await send(part(OTHER, more=True))
        await send(part(b""))

    sent, received = answered(answer)
    head, _, body = received.partition(b"\r\n\r\n")
    chunk = b"%x\r\n%b\r\n" % (len(OTHER), OTHER)
    assert head.endswith(b"transfer-encoding: chunked")
    assert body == 2 * chunk + b"0\r\n\r\n"
    assert b"".join(sent) == received
