"""Clients that send slowly, or not at all, hold nothing that others need."""

import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx2 as httpx
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.stress.furnished import NAME
from tests.stress.served import Served
from venn_admit.api.server import HEADER_SECONDS, MOST_HEADER_BYTES, MOST_PIPELINED
from venn_admit.http.limits import BODY_SECONDS
from venn_admit.web.forms import MEDIA_TYPE as FORM
from venn_admit.web.visitors import SIGN_IN

pytestmark = pytest.mark.processes

OWN = f"/v1/classifiers/{NAME}"
GOOD = {"points": [{"vector": [0.25, -1.5, 0.75], "logits": [2.5, -1.5]}]}
CONNECTIONS = 200


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(served: Served, connections: ExitStack, sent: bytes) -> socket.socket:
    opened = connections.enter_context(socket.create_connection(served.address, timeout=PATIENCE_SECONDS))
    opened.sendall(sent)
    return opened


def head(served: Served, path: str = f"{OWN}/decide", media_type: str = "application/json") -> bytes:
    """A request that announces a body, which is to follow."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {served.key}",
        f"Content-Type: {media_type}",
        "Content-Length: 1000",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_body_that_comes_a_byte_a_second_is_given_up(shared_service: Served, connections: ExitStack) -> None:
    began = time.monotonic()
    of_program = connect(shared_service, connections, head(shared_service))
    of_page = connect(shared_service, connections, head(shared_service, SIGN_IN, FORM))
    waiting = {of_program, of_page}
    while waiting:
        waiting -= set(select.select(waiting, [], [], 1)[0])
        assert time.monotonic() - began < PATIENCE_SECONDS, "it is not given up"
        # A byte that crosses the answer on its way would have the connection reset, and the answer lost.
        if time.monotonic() - began < BODY_SECONDS - 2:
            for opened in waiting:
                opened.sendall(b" ")
    for opened, *parts in (
        (of_program, b"connection: close", b"application/problem+json", b'"code": "body-too-slow"'),
        (of_page, b"connection: close", b"text/html", b"The body arrives too slowly"),
    ):
        answered = b""
        # The head and the body may come one after the other, and then the connection ends.
        while more := opened.recv(65536):
            answered += more
        assert answered.startswith(b"HTTP/1.1 408 "), answered
        assert all(part.lower() in answered.lower() for part in parts), answered
    assert time.monotonic() - began >= BODY_SECONDS


def test_others_are_answered_while_many_are_slow(shared_service: Served, connections: ExitStack) -> None:
    """Both those that do not complete their headers, and those that do not send their bodies."""
    for _ in range(CONNECTIONS):
        connect(shared_service, connections, head(shared_service))
        connect(shared_service, connections, head(shared_service)[:40])
    with shared_service.client() as client:
        answered_in_time(client)  # when their keys have been looked up
        for _ in range(20):
            # They would be held up until the slow ones are given up.
            slow = connect(shared_service, connections, head(shared_service))
            assert answered_in_time(client).status_code == 200
            assert not select.select([slow], [], [], 0)[0], "it is given up"


def answered_in_time(client: httpx.Client) -> httpx.Response:
    """Ask until the process is not too busy, which it may be while hundreds of keys are looked up at once."""
    until = time.monotonic() + PATIENCE_SECONDS
    while (answer := client.post(f"{OWN}/decide", json=GOOD)).status_code == 503 and time.monotonic() < until:
        assert answer.json()["code"] == "too-busy"
        time.sleep(float(answer.headers["Retry-After"]))
    return answer


def test_headers_that_do_not_come_are_given_up(shared_service: Served, connections: ExitStack) -> None:
    opened = connect(shared_service, connections, head(shared_service)[:40])
    began = time.monotonic()
    assert opened.recv(65536) == b"", "the connection is closed"
    assert time.monotonic() - began < HEADER_SECONDS + PATIENCE_SECONDS / 2


def test_a_head_that_does_not_end_is_refused(served: Served, connections: ExitStack) -> None:
    """As are trailers and the extension of a chunk, which a parser keeps too. Its memory is that of a new process."""
    chunked = head(served).replace(b"Content-Length: 1000", b"Transfer-Encoding: chunked")
    endless = (head(served)[:-4] + b"\r\nA: ", chunked + b"1;", chunked + b"1\r\n \r\n0\r\nA: ")
    with served.most_growth(64 << 20):
        for began in endless:
            opened = connect(served, connections, began)
            # Closing a connection that still receives resets it, and the answer may be lost.
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                opened.sendall(1000 * MOST_HEADER_BYTES * b"a")


def test_a_request_names_one_host(shared_service: Served, connections: ExitStack) -> None:
    for version, hosts, status in (
        ("1.1", (), b"400"),
        ("1.1", ("localhost", "example.org"), b"400"),
        ("1.1", ("localhost",), b"200"),
        ("1.0", (), b"200"),
    ):
        lines = [f"GET /health/live HTTP/{version}", *(f"Host: {host}" for host in hosts), "Connection: close"]
        opened = connect(shared_service, connections, ("\r\n".join(lines) + "\r\n\r\n").encode())
        assert opened.recv(65536).split()[1] == status, (version, hosts)


def test_requests_that_wait_for_others_are_limited(shared_service: Served, connections: ExitStack) -> None:
    one = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    few = connect(shared_service, connections, MOST_PIPELINED * one)
    answered = b""
    while answered.count(b"HTTP/1.1 200 ") < MOST_PIPELINED:
        more = few.recv(65536)
        assert more, "all are answered"
        answered += more
    many = connect(shared_service, connections, 5000 * one)
    answered = b""
    with suppress(ConnectionResetError):
        while more := many.recv(65536):
            answered += more
    assert answered.count(b"HTTP/1.1 200 ") < 5000, "the connection is closed before"
