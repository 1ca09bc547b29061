"""Bodies that were made to do harm: each is refused, nothing is stored, and the service stays as it was."""

import gzip
import json
from collections.abc import Iterator

import httpx2 as httpx
import pytest

from tests.cli.program import contents
from tests.stress.furnished import NAME
from tests.stress.served import Served
from venn_admit.service.api.limits import MOST_BODY_BYTES
from venn_admit.service.api.models.common import ProblemAnswer

OWN = f"/v1/classifiers/{NAME}"
ROUTES = ("/v1/classifiers", *(f"{OWN}/{what}" for what in ("decide", "exemplars", "labels", "calibrations")))
GOOD = {"points": [{"vector": [0.25, -1.5, 0.75], "logits": [2.5, -1.5]}]}
MANY = 1_000_000
# What the process may come to hold beyond what it held before; a body is at most 32 MiB, and is parsed to more.
MOST_GROWTH = 20 * MOST_BODY_BYTES


def point(vector: bytes) -> bytes:
    return b'{"points": [{"logits": [2.5, -1.5], "vector": ' + vector + b"}]}"


BODIES = {
    "nested lists": b"[" * MANY,
    "nested objects": b'{"a":' * MANY,
    "nested in a point": point(b"[" * 100_000 + b"]" * 100_000),
    "a number that no float holds": point(b"[1e400, 0, 0]"),
    "an integer of a hundred thousand digits": point(b"[" + b"9" * 100_000 + b", 0, 0]"),
    "a fraction of a million digits": point(b"[0." + b"9" * MANY + b"e999999999, 0, 0]"),
    "an exponent that no machine holds": point(b"[1e99999999999999999999, 0, 0]"),
    "NaN": point(b"[NaN, 0, 0]"),
    "infinities": point(b"[Infinity, -Infinity, 0]"),
    "a member twice": b'{"points": 1, "points": 2}',
    "lone surrogates": b'{"points": [{"external_id": "\\ud800\\udfff\\udfff", "vector": [0, 0, 0]}]}',
    "bytes that are no UTF-8": b'{"points": [{"external_id": "\xff\xfe\x00"}]}',
    "NUL": b'{"points": [{"external_id": "a\\u0000b", "vector": [0, 0, 0]}]}',
    "an object for a list": b'{"points": {"0": {}}, "labels": {}, "exemplars": {}}',
    "texts for numbers": point(b'["0", "0", "0"]'),
    "true for a number": point(b"[true, false, true]"),
    "a million numbers": point(b"[" + b"0," * MANY + b"0]"),
    "a million points": b'{"points": [' + b"{}," * MANY + b"{}]}",
    "a million members": b"{" + b",".join(b'"%d":0' % number for number in range(MANY)) + b"}",
    "a million empty lists": b'{"points": [' + b"[]," * MANY + b"[]]}",
    "a text of thirty megabytes": b'"' + b"a" * (30 << 20) + b'"',
    "a text of escapes": b'{"points": "' + b"\\u0000" * MANY + b'"}',
    "a quote that never ends": b'"' + b"\\" * MANY,
    "spaces": b" " * (30 << 20),
    "half an object": json.dumps(GOOD).encode()[:-3],
    "nothing": b"",
}


@pytest.fixture
def kept(served: Served) -> Iterator[Served]:
    """The service; it must survive, answer as before, have stored nothing and not have grown much."""
    with served.client() as client:
        expected = client.post(f"{OWN}/decide", json=GOOD)
        assert expected.status_code == 200, expected.text
        before, held = contents(served.program.url), served.resident()
        yield served
        assert served.process.poll() is None
        assert client.post(f"{OWN}/decide", json=GOOD).json() == expected.json()
        after = contents(served.program.url)
        # That a key is used is noted once a minute, and which route it asked; nothing else is.
        assert {table for table in before if before[table] != after[table]} <= {"api_key", "audit_event"}
        assert served.resident() - held < MOST_GROWTH


def check_refused(answer: httpx.Response, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text[:1000]
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 16_384, "the answer repeats what came"
    ProblemAnswer.model_validate(answer.json())


def test_every_body_is_refused(kept: Served) -> None:
    """By every route, whatever it takes; what is large takes seconds, and so one route has to do for it."""
    with kept.client() as client:
        for body in BODIES.values():
            for route in ROUTES if len(body) < 1 << 20 else (f"{OWN}/decide",):
                answer = client.post(route, content=body, headers={"Content-Type": "application/json"})
                check_refused(answer, 413, 422)


def test_a_compressed_body_is_refused_before_it_is_read(kept: Served) -> None:
    """A megabyte may unpack to a gigabyte, and so nothing is unpacked."""
    bomb = gzip.compress(b" " * (64 << 20))
    with kept.client() as client:
        for coding in ("gzip", "deflate", "br", "zstd", "identity, gzip"):
            headers = {"Content-Type": "application/json", "Content-Encoding": coding}
            answer = client.post(f"{OWN}/decide", content=bomb, headers=headers)
            check_refused(answer, 415)
            assert answer.json()["code"] == "unsupported-media-type"
        answer = client.post(f"{OWN}/decide", json=GOOD, headers={"Content-Encoding": "identity"})
        assert answer.status_code == 200


def test_headers_have_a_limit(kept: Served) -> None:
    """Uvicorn refuses them, and closes the connection."""
    for headers in ({"x-large": "a" * (1 << 20)}, {f"x-{number}": "a" * 1000 for number in range(2000)}):
        with kept.client() as client:
            try:
                answer = client.get("/health/live", headers=headers)
            except httpx.TransportError:
                continue
            assert answer.status_code in {400, 431}, answer.status_code
