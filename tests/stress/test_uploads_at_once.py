"""Many files are uploaded to one process at once: none fails."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.api.processes import start_serving
from tests.cli.program import Program
from tests.patience import PATIENCE_SECONDS
from tests.stress.furnished import NAME, reviews
from venn_admit_client.bodies import ARROW_STREAM, PARQUET

pytestmark = pytest.mark.processes

OWN = f"/v1/classifiers/{NAME}"
# A key may have four uploads at a time, and sends as many; all keys together need more connections than there are.
KEYS, ROUNDS, ROWS = 6, 5, 300


@dataclass(frozen=True, slots=True)
class Serving:
    """The address of a process that serves, the keys that it knows, and its log."""

    url: str
    keys: tuple[str, ...]
    log: Path


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to be sent."""

    path: str
    query: dict[str, str]
    content: bytes
    kind: str
    key: str


@pytest.fixture
def many_keys(own_furnished: Program, tmp_path: Path) -> Iterator[Serving]:
    """A process that has answered nothing yet; its keys may have any number of jobs, which no worker takes."""
    keys = tuple(
        own_furnished("key", "create", f"upload-{number}", "--scope", "admin", "--json").result["secret"]
        for number in range(KEYS)
    )
    log = tmp_path / "log"
    served = start_serving(Program(own_furnished.environment | {"VENN_ADMIT_JOBS_PER_KEY": "1000"}), log)
    try:
        yield Serving(served.url, keys, log)
    finally:
        served.kill()


def encoded(prefix: str, seed: int, kind: str) -> bytes:
    """Return exemplars as a file; the rows of files with one prefix are the same, in different orders."""
    columns = reviews(prefix, ROWS, seed=11)
    order = np.random.default_rng(seed).permutation(ROWS)
    table = pa.table({name: list(values[order]) for name, values in columns.items()})
    sink = BytesIO()
    if kind == PARQUET:
        pq.write_table(table, sink, row_group_size=100)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    return sink.getvalue()


def uploads_of(key: int, secret: str, number: int) -> list[Upload]:
    """Four files of one key: exemplars of its own, exemplars that all keys send, and two jobs."""
    kinds = (PARQUET, ARROW_STREAM) if (key + number) % 2 else (ARROW_STREAM, PARQUET)
    held_out = {"split": "held-out"}
    asked = [
        (f"{OWN}/exemplars/file", held_out, f"own-{key}-{number}", kinds[0]),
        (f"{OWN}/exemplars/file", held_out, f"shared-{number}", kinds[1]),
        (f"{OWN}/jobs", {}, f"job-{key}-{number}", kinds[0]),
        (f"{OWN}/jobs", {}, f"same-job-{number}", kinds[1]),
    ]
    return [
        Upload(path, query, encoded(prefix, seed=key, kind=kind), kind, secret) for path, query, prefix, kind in asked
    ]


def sent_together(serving: Serving, uploads: list[Upload]) -> list[httpx.Response]:
    """Send each in a thread of its own, all at the same moment, by one client."""
    together = threading.Barrier(len(uploads))

    def send(upload: Upload) -> httpx.Response:
        headers = {"Authorization": f"Bearer {upload.key}", "Content-Type": upload.kind}
        together.wait(PATIENCE_SECONDS)
        return client.post(upload.path, params=upload.query, content=upload.content, headers=headers)

    with (
        httpx.Client(base_url=serving.url, timeout=PATIENCE_SECONDS) as client,
        ThreadPoolExecutor(len(uploads)) as threads,
    ):
        return list(threads.map(send, uploads))


def test_every_upload_is_taken(many_keys: Serving) -> None:
    """From the first moment of the process on, the rows that several files share included."""
    for number in range(ROUNDS):
        uploads = [one for key, secret in enumerate(many_keys.keys) for one in uploads_of(key, secret, number)]
        answers = sent_together(many_keys, uploads)
        expected = [202 if one.path.endswith("/jobs") else 200 for one in uploads]
        wrong = {answer.text for answer in answers if not answer.is_success}
        assert [answer.status_code for answer in answers] == expected, f"{wrong}, {many_keys.log.read_text()[-5000:]}"
        assert {answer.json()["rows"] for answer in answers} == {ROWS}


def test_those_of_one_key_that_are_too_many_are_refused(many_keys: Serving) -> None:
    first = many_keys.keys[0]
    uploads = [one for key in range(KEYS) for one in uploads_of(key, first, 0)]
    answers = sent_together(many_keys, uploads)
    refused = [answer for answer in answers if not answer.is_success]
    assert 0 < len(refused) < len(answers)
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (429, "too-many"), many_keys.log.read_text()[-5000:]
        assert int(answer.headers["Retry-After"]) > 0
    # They are taken once there is room.
    for upload, answer in zip(uploads, answers, strict=True):
        if not answer.is_success:
            (again,) = sent_together(many_keys, [upload])
            assert again.is_success, again.text
