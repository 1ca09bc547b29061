"""Files sent over HTTP: taken as the command line takes them, or refused with nothing stored and nothing left."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import text
from structlog.testing import capture_logs

from tests.api.service import OWN, Service, check_problem
from tests.cli import samples
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.cli.samples import NAME
from tests.files.hostile import CLASS_NAMES, DIMENSION, HOSTILE, MEBIBYTE
from tests.files.read_hostile import forget_peak, memory
from venn_admit.api.application import create_application
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.flows.keys.keys import Caller, authenticate
from venn_admit.flows.keys.keys import create as create_key
from venn_admit.http.limits import BodyLimit
from venn_admit.http.uploads import MOST_AT_A_TIME
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect
from venn_admit_client.bodies import ARROW_STREAM, CSV, PARQUET

BUDGET_MB, UPLOAD_MB = 32, 64
# What the program itself takes of a request, and what allocators keep.
SLACK = 48 * MEBIBYTE
TYPES = {".parquet": PARQUET, ".arrows": ARROW_STREAM, ".csv": CSV}
# Each way that a body takes here, of each type; tests/files sees to all the others, which the same readers read.
HOSTILE_BODIES = [
    *(f"{name}.arrows" for name in ("bomb", "cut within a batch", "column with a name that is no text")),
    *(f"{name}.parquet" for name in ("dictionary of a longer text", "one long vector")),
    *(f"label file {name}" for name in ("that is a bomb.arrows", "of long texts.parquet")),
    *(f"label file {name}.csv" for name in ("empty", "of a huge field")),
]


def send(service: Service, path: str, content: Any, kind: str, *, key: Scope = Scope.WRITE, **params: Any) -> Response:
    return service.ask("POST", path, key=key, content=content, headers={"Content-Type": kind}, params=params)


def spooled(service: Service) -> list[Path]:
    """Return the bodies that are kept now."""
    return list((service.runtime.settings.home / "uploads").glob("*"))


def stored(service: Service) -> list[int]:
    """Return how much is stored of what uploads bring."""
    with connect(service.runtime.engine) as connection:
        tables = ("exemplar", "label_event", "job", "job_row", "recalibration_request")
        return [connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0 for table in tables]


@pytest.fixture(scope="module")
def little(calibrated: Program, server_url: str, session_folder: Path) -> Iterator[Service]:
    """The application with little memory, and a classifier of the shape of the hostile files."""
    with copied(calibrated, server_url, session_folder / "uploads") as program, capture_logs():
        settings = Settings(
            database_url=program.url,
            home=program.home,
            memory_budget_mb=BUDGET_MB,
            upload_mb=UPLOAD_MB,
        )
        runtime = Runtime.start(settings)
        create_classifier(runtime.engine, "hostile", CLASS_NAMES, dimension=DIMENSION, seed=0)
        keys = {scope: create_key(runtime.engine, scope, scope=scope).text for scope in Scope}
        yield Service(TestClient(create_application(runtime), raise_server_exceptions=False), runtime, keys)
        runtime.engine.dispose()


def as_arrow(file: Path) -> bytes:
    """Return a Parquet file as an Arrow stream."""
    table, sink = pq.read_table(file), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=30)
    return bytes(sink.getvalue().to_pybytes())


def test_exemplars_are_stored_as_from_the_command_line(
    service: Service, own_calibrated: Program, tmp_path: Path
) -> None:
    more = samples.exemplars("more", 100, seed=7)
    file = samples.save(tmp_path, "more.parquet", more)
    parquet, arrow = file.read_bytes(), as_arrow(file)
    told = send(service, f"{OWN}/exemplars/file", iter([parquet[:5], parquet[5:]]), PARQUET, split="held-out")
    assert told.status_code == 200, told.text
    assert (told.json()["rows"], told.json()["new"], told.json()["recalibrations_due"]) == (100, 100, 1)
    again = send(service, f"{OWN}/exemplars/file", arrow, ARROW_STREAM, split="held-out").json()
    assert (again["new"], again["already_stored"]) == (0, 100)
    by_file = own_calibrated("ingest", NAME, file, "--split", "held-out", "--json").result
    assert by_file["already_stored"] == 100
    assert spooled(service) == []


def test_labels_are_recorded_as_from_the_command_line(service: Service, tmp_path: Path) -> None:
    content = b"external_id,label,selection\nheld-out-0,red,random\nheld-out-1,,random\n"
    refused = send(service, f"{OWN}/labels/file", content, CSV)
    check_problem(refused, 422, "label-missing", "the body: row 1, label: expected a label, got nothing")
    told = send(service, f"{OWN}/labels/file", content, f"{CSV}; charset=utf-8", retract=True)
    assert told.status_code == 200, told.text
    assert (told.json()["rows"], told.json()["retracted"]) == (2, 1)
    file = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"external_id": ["held-out-1"], "label": [2]}), file)
    again = send(service, f"{OWN}/labels/file", file.read_bytes(), PARQUET, selection="random").json()
    assert again["rows"] == 1
    stream = send(service, f"{OWN}/labels/file", as_arrow(file), ARROW_STREAM).json()
    assert (stream["rows"], stream["unchanged"], stream["ignored"]) == (1, 1, [])
    misspelled = b"external_id,label,Selection\nheld-out-1,2,selected\n"
    assert send(service, f"{OWN}/labels/file", misspelled, CSV).json()["ignored"] == ["Selection"]
    assert spooled(service) == []


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_a_hostile_body_is_refused_within_the_memory_budget(little: Service, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    HOSTILE[name](file)
    content, kind = file.read_bytes(), TYPES[file.suffix]
    own = "/v1/classifiers/hostile"
    before = stored(little)
    forget_peak()
    held = memory("VmRSS")
    if name.startswith("label file"):
        answer = send(little, f"{own}/labels/file", content, kind)
    else:
        answer = send(little, f"{own}/exemplars/file", content, kind, split="train")
    peak = memory("VmHWM") - held
    problem = check_problem(answer, 422, answer.json()["code"], "the body")
    assert problem.code in ("invalid-input", "label-missing")
    assert str(little.runtime.settings.home) not in answer.text
    assert peak <= (BUDGET_MB << 20) + SLACK
    assert stored(little) == before
    assert spooled(little) == []


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_has_a_limit_of_its_own(little: Service, announced: bool) -> None:
    content = bytes((UPLOAD_MB << 20) + 1)
    blocks = (content[start : start + (1 << 20)] for start in range(0, len(content), 1 << 20))
    answer = send(little, f"{OWN}/exemplars/file", content if announced else blocks, PARQUET, split="train")
    check_problem(answer, 413, "body-too-large", f"at most {UPLOAD_MB << 20:,} bytes")
    assert spooled(little) == []


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ({"Content-Type": "application/json"}, f"{OWN}/exemplars/file?split=train"),
        ({"Content-Type": CSV}, f"{OWN}/exemplars/file?split=train"),
        ({"Content-Type": "application/vnd.apache.arrow.file"}, f"{OWN}/labels/file"),
        ({}, f"{OWN}/labels/file"),
        ({"Content-Type": CSV, "Content-Encoding": "gzip"}, f"{OWN}/labels/file"),
    ],
)
def test_a_body_of_another_type_is_refused(shared: Service, headers: dict[str, str], path: str) -> None:
    answer = shared.ask("POST", path, key=Scope.WRITE, content=b"x", headers=headers)
    check_problem(answer, 415, "unsupported-media-type", "expected a body with Content-Type")


def test_a_split_must_be_named(shared: Service) -> None:
    check_problem(send(shared, f"{OWN}/exemplars/file", b"x", PARQUET), 422, "invalid-request", "query.split")
    answer = send(shared, "/v1/classifiers/nobody/exemplars/file", b"x", PARQUET, split="train")
    check_problem(answer, 404, "unknown-classifier")


def ask_slowly(service: Service, parts: AsyncIterator[bytes], *, is_cut: bool = False) -> tuple[int, bytes]:
    """Send a body as it comes, and return status and body of the answer; is_cut: whether the client leaves then."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": f"{OWN}/exemplars/file",
        "raw_path": f"{OWN}/exemplars/file".encode(),
        "query_string": b"split=train",
        "headers": [
            (b"authorization", f"Bearer {service.keys[Scope.WRITE]}".encode()),
            (b"content-type", PARQUET.encode()),
        ],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        async for part in parts:
            return {"type": "http.request", "body": part, "more_body": True}
        return {"type": "http.disconnect"} if is_cut else {"type": "http.request", "body": b"", "more_body": False}

    async def send_message(message: Any) -> None:
        sent.append(message)

    asyncio.run(service.client.app(scope, receive, send_message))  # type: ignore[arg-type] # an ASGI application
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_a_slow_body_is_refused_in_time(little: Service) -> None:
    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.05)

    settings = replace(little.runtime.settings, upload_seconds=0.5)
    app = create_application(replace(little.runtime, settings=settings))
    impatient = replace(little, client=TestClient(app, raise_server_exceptions=False))
    began = time.monotonic()
    status, said = ask_slowly(impatient, drops())
    assert status == 408
    assert b"body-too-slow" in said
    assert time.monotonic() - began < little.runtime.settings.upload_seconds / 10
    assert spooled(little) == []


def test_a_client_that_leaves_leaves_nothing(little: Service) -> None:
    async def part() -> AsyncIterator[bytes]:
        yield b"PAR1"

    with capture_logs() as entries:
        status, _ = ask_slowly(little, part(), is_cut=True)
    assert status == 400
    assert [entry["event"] for entry in entries] == ["request"], "it is no fault of the program"
    assert spooled(little) == []


def test_a_key_has_so_many_uploads_at_a_time(little: Service) -> None:
    caller = authenticate(little.runtime.engine, little.keys[Scope.WRITE])
    assert isinstance(caller, Caller)
    running = little.client.app.state.uploads._running  # type: ignore[attr-defined] # of the application
    running[caller.identity] = MOST_AT_A_TIME
    answer = send(little, f"{OWN}/exemplars/file", b"x", PARQUET, split="train")
    check_problem(answer, 429, "too-many", f"at most {MOST_AT_A_TIME} uploads")
    assert answer.headers["retry-after"] == "5"
    running[caller.identity] = MOST_AT_A_TIME - 1
    check_problem(send(little, f"{OWN}/exemplars/file", b"x", PARQUET, split="train"), 422, "invalid-input")
    assert running[caller.identity] == MOST_AT_A_TIME - 1
    running[caller.identity] = 0


def test_a_file_that_is_sent_again_may_be_as_large_and_is_counted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = BodyLimit.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "most", 10)
    client = TestClient(create_application(service.runtime), raise_server_exceptions=False)
    again = replace(service, client=client)

    def sent(content: bytes) -> Response:
        headers = {"Content-Type": CSV, "Idempotency-Key": "one"}
        return again.ask("POST", f"{OWN}/labels/file", key=Scope.WRITE, content=content, headers=headers)

    content = b"external_id,label\nheld-out-0,red\n"
    first = sent(content)
    assert first.status_code == 200, first.text
    assert sent(content).content == first.content
    check_problem(sent(content + b"\n"), 422, "idempotency-key-reused")
    caller = authenticate(service.runtime.engine, service.keys[Scope.WRITE])
    assert isinstance(caller, Caller)
    running = client.app.state.uploads._running  # type: ignore[attr-defined] # of the application
    assert running[caller.identity] == 0
    running[caller.identity] = MOST_AT_A_TIME
    check_problem(sent(content), 429, "too-many", f"at most {MOST_AT_A_TIME} uploads")


def test_what_a_killed_process_left_is_removed(little: Service) -> None:
    folder = little.runtime.settings.home / "uploads"
    old, new = folder / "1-old.parquet", folder / "1-new.parquet"
    for file in (old, new):
        file.write_bytes(b"x")
    os.utime(old, (1, 1))
    send(little, f"{OWN}/exemplars/file", b"x", PARQUET, split="train")
    assert spooled(little) == [new]
    new.unlink()


def test_a_folder_that_cannot_be_written(shared: Service, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "uploads").write_text("in the way")
    runtime = Runtime.start(Settings(database_url=shared.runtime.database_url, home=home))
    service = Service(TestClient(create_application(runtime)), runtime, shared.keys)
    with capture_logs() as entries:
        answer = send(service, f"{OWN}/exemplars/file", b"x", PARQUET, split="train")
    check_problem(answer, 503, "no-room", "cannot keep the body")
    assert str(home) not in answer.text
    assert str(home) in str(entries), "the log says where"
    runtime.engine.dispose()
