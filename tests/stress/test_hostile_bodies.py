"""Bodies that were made to do harm: each is refused, nothing is stored, and the service stays as it was."""

import gzip
import json
import select
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from fastapi.routing import APIRoute

from tests.cli.program import Program, contents
from tests.files.hostile import CLASS_NAMES, DIMENSION, HOSTILE, MEBIBYTE
from tests.files.samples import write
from tests.patience import PATIENCE_SECONDS
from tests.stress.furnished import NAME, run
from tests.stress.served import Served, service
from venn_admit.api.application import document
from venn_admit.api.models.common import ProblemAnswer
from venn_admit.flows.keys.sessions import form_token
from venn_admit.http.limits import MOST_BODY_BYTES
from venn_admit.http.uploads import EXEMPLAR_FILES, LABEL_FILES
from venn_admit.web.forms import MEDIA_TYPE, MOST_BYTES, MOST_BYTES_TO_SIGN_IN, MOST_ESCAPES
from venn_admit.web.site import ROUTERS
from venn_admit.web.visitors import COOKIE, FORM_HEADER, SIGN_IN

pytestmark = pytest.mark.processes

OWN = f"/v1/classifiers/{NAME}"
ROUTES = [
    (method, path.format(classifier=NAME, cascade=NAME))
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
]
FORMS = [
    route.path.format(classifier=NAME, cascade=NAME, key=999_999)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and "POST" in (route.methods or ())
]
TRY = f"/classifiers/{NAME}/try"
UPLOADS = {"exemplars/file": EXEMPLAR_FILES, "labels/file": LABEL_FILES, "jobs": EXEMPLAR_FILES}
SHAPED = "shaped"
GOOD = {"points": [{"vector": [0.25, -1.5, 0.75], "logits": [2.5, -1.5]}]}
MANY = 1_000_000
# What the process may hold at any time beyond what it held before. A body of the largest size is there as it came and
# in one piece, which is twice that size; numbers as Python has them take two to three times their text, once as they
# are parsed and once as they are checked, which makes seven; and an allocator keeps some of what it was given back.
MOST_GROWTH = 10 * MOST_BODY_BYTES
BUDGET_MB = 32
# What each file may take beside the budget, for what the request itself takes and what allocators keep.
SLACK = 48 * MEBIBYTE


def point(vector: bytes) -> bytes:
    return b'{"points": [{"logits": [2.5, -1.5], "vector": ' + vector + b"}]}"


def bodies() -> dict[str, bytes]:
    """A few hundred megabytes, which are made where they are sent."""
    return {
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
        "quotes within a text that never ends": b'"' + b'\\"' * (10 * MANY),
        "nine megabytes of numbers": b'{"points": [' + b"0," * (4 * MANY + MANY // 2) + b"0]}",
        "vectors of truth values": b'{"points": ['
        + b",".join([b'{"vector": [' + b"true," * 5000 + b"true]}"] * 1000)
        + b"]}",
        "spaces": b" " * (30 << 20),
        "half an object": json.dumps(GOOD).encode()[:-3],
        "nothing": b"",
    }


ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
# What one such body takes: twice its bytes, and its text.
MOST_GROWTH_BEYOND_UTF_8 = 4 * MOST_BODY_BYTES
# For a form: objects for each escape while it is parsed, its bytes a few times over, and what allocators keep.
MOST_GROWTH_OF_FORM = 48 * MOST_BYTES
AS_MANY_ESCAPES = b"vector=" + b"%41" * MOST_ESCAPES


def hostile_forms() -> dict[str, bytes]:
    return {
        "escapes": b"key=" + b"%41" * (3 << 20),
        "too many escapes": b"vector=" + b"%41" * (MOST_BYTES // 3 - 10),
        "as many escapes as there may be": AS_MANY_ESCAPES,
        "numbers and escapes": b"vector=" + b"1%20" * MOST_ESCAPES,
        "numbers": b"vector=" + b"1+" * (MOST_BYTES // 2 - 10),
        "many more numbers": b"vector=" + b"1+" * (15 << 20),
        "a list of numbers": b"logits=[" + b"1," * (MOST_BYTES // 2 - 10) + b"1]",
        "one number": b"logits=" + b"9" * (MOST_BYTES - 10),
        "brackets": b"vector=" + b"[" * (MOST_BYTES - 10),
        "an identifier": b"external_id=" + b"a" * (MOST_BYTES - 20),
        "fields": b"a&" * (MOST_BYTES // 2),
        "escapes that are no UTF-8": b"vector=" + b"%ff" * MOST_ESCAPES,
    }


@pytest.fixture
def kept(served: Served) -> Iterator[Served]:
    """The service; it must survive, answer as before, have stored nothing and never have grown much."""
    with unharmed(served):
        yield served


@pytest.fixture
def little(own_furnished: Program, tmp_path: Path) -> Iterator[Served]:
    """The service with little memory for files, and a classifier of the shape of the hostile files; as `kept`."""
    generator = np.random.default_rng(7)
    labels = generator.integers(2, size=800)
    vectors = generator.normal(size=(800, DIMENSION)) + labels[:, None]
    columns = {"vector": vectors, "logits": np.stack([1 - vectors[:, 0], vectors[:, 0]], axis=1), "label": labels}
    train = write(tmp_path / "train.npz", {name: values[:200] for name, values in columns.items()})
    held_out = write(tmp_path / "held-out.npz", {name: values[200:] for name, values in columns.items()})
    run(own_furnished, "create", SHAPED, "--classes", ",".join(CLASS_NAMES), "--dim", DIMENSION)
    run(own_furnished, "ingest", SHAPED, train, "--split", "train")
    run(own_furnished, "ingest", SHAPED, held_out, "--split", "held-out")
    run(own_furnished, "fit", SHAPED)
    run(own_furnished, "calibrate", SHAPED, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2")
    program = Program(own_furnished.environment | {"VENN_ADMIT_MEMORY_BUDGET_MB": str(BUDGET_MB)})
    with service(program) as served, unharmed(served):
        yield served


@contextmanager
def unharmed(served: Served) -> Iterator[None]:
    """See that the service lives, answers as before, has stored nothing and has not grown much."""
    with served.client() as client:
        expected = client.post(f"{OWN}/decide", json=GOOD)
        assert expected.status_code == 200, expected.text
        before = contents(served.program.url)
        with served.most_growth(MOST_GROWTH):
            yield
        assert served.process.poll() is None
        assert client.post(f"{OWN}/decide", json=GOOD).json() == expected.json()
        after = contents(served.program.url)
        # That a key is used is noted once a minute, which route it asked, and who signs in; nothing else is.
        noted = {"api_key", "audit_event", "page_session"}
        assert {table for table in before if before[table] != after[table]} <= noted


def check_refused(answer: httpx.Response, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text[:1000]
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 16_384, "the answer repeats the body"
    ProblemAnswer.model_validate(answer.json())


def test_every_body_is_refused(kept: Served) -> None:
    """Sent to every route, whatever it takes; what is large takes seconds, and so one route has to do for it."""
    assert len(ROUTES) >= 10
    with kept.client() as client:
        for body in bodies().values():
            for method, route in ROUTES if len(body) < 1 << 20 else [("post", f"{OWN}/decide")]:
                answer = client.request(method, route, content=body, headers={"Content-Type": "application/json"})
                check_refused(answer, 413, 422)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_in_another_encoding_is_refused(kept: Served, encoding: str) -> None:
    """RFC 8259 has UTF-8 alone; what is checked is what is parsed."""
    # Read as UTF-8, U+2200 ends in a quote, and all that follows lies in a text that never ends.
    beyond = '["\u2200"' + ",[]" * (4 << 20)
    body = beyond.encode(encoding)[: MOST_BODY_BYTES - 4]
    with kept.client() as client, kept.most_growth(MOST_GROWTH_BEYOND_UTF_8):
        answer = client.post(f"{OWN}/decide", content=body, headers={"Content-Type": "application/json"})
        check_refused(answer, 422)
    assert "UTF-8" in answer.json()["detail"]


def test_every_form_is_refused(kept: Served) -> None:
    """Sent to every page that takes one; before anyone has signed in, by its size alone."""
    assert {SIGN_IN, TRY} < set(FORMS)
    with kept.client() as client:
        assert client.post(SIGN_IN, data={"key": kept.key}).status_code == 303
        shown = {"Content-Type": MEDIA_TYPE, FORM_HEADER: form_token(client.cookies[COOKIE])}
        for name, body in hostile_forms().items():
            # What is larger than any form is refused by all before it is parsed, and what is parsed takes a second.
            for path in FORMS if len(body) > MOST_BYTES else (SIGN_IN, TRY):
                with kept.most_growth(SLACK if path == SIGN_IN else MOST_GROWTH_OF_FORM):
                    answer = client.post(path, content=body, headers=shown)
                most = MOST_BYTES_TO_SIGN_IN if path == SIGN_IN else MOST_BYTES
                assert answer.status_code == (413 if len(body) > most else 422), (name, path, answer.text[:1000])
                assert ("expected a form of at most" in answer.text) == (len(body) > most)
                assert len(answer.content) < len(body) + 65_536


def test_every_file_is_refused(little: Served, tmp_path: Path) -> None:
    """Sent to every route that takes files of its format, whatever the file says that it holds."""
    with little.client() as client:
        for name, make in HOSTILE.items():
            file = tmp_path / name
            make(file)
            for what, kinds in UPLOADS.items():
                for kind in (kind for kind, ending in kinds.items() if ending == file.suffix):
                    path = f"/v1/classifiers/{SHAPED}/{what}"
                    split = {"split": "train"} if what == "exemplars/file" else {}
                    with little.most_growth((BUDGET_MB << 20) + SLACK):
                        answer = client.post(
                            path, content=file.read_bytes(), params=split, headers={"Content-Type": kind}
                        )
                    check_refused(answer, 422)
                    assert "the body" in answer.json()["detail"], (name, what, answer.text)


def test_others_are_answered_while_a_large_body_is_checked(kept: Served) -> None:
    """The body is all there before the other request is sent, and its answer comes after that of the other."""
    one = {"external_id": "a", "vector": [0.123456789] * 2500}
    body = json.dumps({"points": [one] * 990}).encode()
    assert 30 << 20 < len(body) < MOST_BODY_BYTES
    headers = {"Authorization": f"Bearer {kept.key}", "Content-Type": "application/json"}
    assert answer_beside_others(kept, f"{OWN}/decide", headers, body) == b"HTTP/1.1 422"


def test_others_are_answered_while_a_form_is_parsed(kept: Served) -> None:
    """As with a large body; its escapes are unquoted one by one."""
    with kept.client() as client:
        client.post(SIGN_IN, data={"key": kept.key})
        session = client.cookies[COOKIE]
    headers = {"Cookie": f"{COOKIE}={session}", FORM_HEADER: form_token(session), "Content-Type": MEDIA_TYPE}
    body = AS_MANY_ESCAPES
    assert answer_beside_others(kept, TRY, headers, body) == b"HTTP/1.1 422"


def answer_beside_others(served: Served, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Send a body, see that others are answered until its answer comes, and return the first bytes of that."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {served.address[0]}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection(served.address, timeout=PATIENCE_SECONDS) as large, served.client() as client:
        assert client.get("/health/live").status_code == 200, "connected before"
        large.sendall("\r\n".join((*lines, "\r\n")).encode() + body)
        answered, until = 0, time.monotonic() + PATIENCE_SECONDS
        while not select.select([large], [], [], 0)[0]:
            assert time.monotonic() < until, "the large body is not answered"
            assert client.get("/health/live").status_code == 200
            answered += 1
        assert answered > 0
        return large.recv(12)


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
