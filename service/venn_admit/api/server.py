"""Serving the application: where it listens, the key of the embedded default, and its end."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from venn_admit.api.events import JobEvents
from venn_admit.errors import DatabaseError, InvalidInputError, NotReadyError
from venn_admit.flows.keys.keys import Refusal, any_is_valid, authenticate, create
from venn_admit.http.guards.issuer import is_loopback
from venn_admit.runtime.log import log_as_json
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope

KEY_FILE = "api-key"
# Requests that are being answered when the service is told to end have this long.
END_SECONDS = 30
# A connection has this long for the head of a request.
HEADER_SECONDS = 20.0
# A head, or what stands between the parts of a body, may have this many bytes, and as many more as arrive at once.
MOST_HEADER_BYTES = 64 << 10
# This many requests may wait for the answers to those that were sent before them on their connection.
MOST_PIPELINED = 32
_HEAD = b"HTTP/1.1 "
_BACKLOG = 2048


def warning_of_address(settings: Settings, host: str) -> str | None:
    """Return what to say of listening on an address; None if there is nothing to say."""
    if is_loopback(host):
        return None
    if settings.database_url is None:
        return (
            f"other machines reach {host}, with the embedded Postgres behind it, which is meant for one user: keep "
            "the keys safe, have a proxy with TLS before it, or set VENN_ADMIT_DATABASE_URL"
        )
    return f"other machines reach {host}, and keys are sent as they are: have a proxy with TLS before it"


def own_key(runtime: Runtime) -> Path:
    """Return the file with the key of the owner of the embedded Postgres; it is made if it is missing.

    Raises:
        NotReadyError: The file holds something else than a valid key.
    """
    engine, home = runtime.engine, runtime.settings.home
    file = home / KEY_FILE
    try:
        text = file.read_text().strip()
    except FileNotFoundError:
        made = create(engine, "the owner of this machine's data", scope=Scope.ADMIN)
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
                opened.write(f"{made.text}\n")
        except OSError as error:
            raise DatabaseError(f"{file} cannot be written: {error.strerror or error}; check the folder") from error
        return file
    except (OSError, UnicodeDecodeError) as error:
        raise DatabaseError(f"{file} cannot be read: {error}; delete it, and another key is made") from error
    found = authenticate(engine, text)
    if isinstance(found, Refusal):
        raise NotReadyError(f"{file} holds a key that is {found}; delete the file, and another key is made")
    return file


def require_key(runtime: Runtime, host: str) -> None:
    """Raise NotReadyError if other machines would reach a service that nobody has a key for."""
    if not is_loopback(host) and runtime.settings.oidc_issuer is None and not any_is_valid(runtime.engine):
        raise NotReadyError(f"other machines would reach {host}, but there is no valid key yet: make one first")


class _JoinedHeads:
    """A transport that sends the head of an answer with its body, since each call of the system costs more than it.

    A head whose body does not follow at once goes out alone.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send a head, which is one write, with the write that follows it."""
        if self._head:
            self._transport.writelines((self._take(), data))
        elif data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._send)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._send()
        self._transport.close()

    def _take(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def _send(self) -> None:
        if self._head:
            self._transport.write(self._take())


class Connection(HttpToolsProtocol):
    """A connection that is closed if the head of the next request does not arrive in time, or is too large."""

    _awaited: asyncio.TimerHandle | None = None
    # Bytes since the parser last passed on a complete head or a part of a body: it keeps the others.
    _kept = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Await the first request."""
        super().connection_made(_JoinedHeads(transport, self.loop))  # type: ignore[arg-type] # it has all methods
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        self._kept += len(data)
        super().data_received(data)
        if self._kept > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")
        self._await_request()

    def on_headers_complete(self) -> None:
        """Answer a request whose head is complete, or refuse it, by an error that the parser passes on."""
        self._kept = 0
        if len(self.pipeline) >= MOST_PIPELINED:
            raise ValueError("too many requests wait")
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise ValueError("a request names one host (RFC 9112, section 3.2)")
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Note that a chunk of a body begins."""
        self._kept = 0

    def on_body(self, body: bytes) -> None:
        """Pass on a part of a body."""
        self._kept = 0
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Await nothing more."""
        super().connection_lost(exc)
        self._await_nothing()

    def _is_between_requests(self) -> bool:
        # There is no cycle before the first request, although the type says that there is.
        return bool(getattr(self.cycle, "response_complete", True))

    def _await_request(self) -> None:
        if not self._is_between_requests():
            self._await_nothing()
        elif self._awaited is None:
            self._awaited = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _await_nothing(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None

    def _give_up(self) -> None:
        self._awaited = None
        if self._is_between_requests():
            self.transport.close()


def listen(app: FastAPI, host: str, port: int, *, on_start: Callable[[str], None]) -> None:
    """Answer requests until a signal asks this process to end; then complete those that are being answered.

    Args:
        app: The application.
        host: The address.
        port: 0 for any that is free.
        on_start: Is given the URL once requests are taken.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """
    opened = _open(host, port)
    log_as_json()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # the application logs each request itself, without what keys and texts it brings
        server_header=False,
        timeout_graceful_shutdown=END_SECONDS,
        lifespan="on",
        http=Connection,
    )
    shown = f"[{host}]" if ":" in host else host
    on_start(f"http://{shown}:{opened.getsockname()[1]}")
    uvloop.run(_Server(config, app.state.events).serve(sockets=[opened]))


class _Server(uvicorn.Server):
    """Ends streams of events before it waits for requests to be completed, because those would last."""

    def __init__(self, config: uvicorn.Config, events: JobEvents) -> None:
        super().__init__(config)
        self._events = events

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._events.end()
        await super().shutdown(sockets)


def _open(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        raise InvalidInputError(
            f"host {host}, port {port}: expected a free address, got: {error.strerror or error}; choose another"
        ) from error
    return opened
