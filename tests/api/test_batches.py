"""Batch scoring over HTTP, end to end: the same decisions as by the command line, its limits, and its events."""

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import text
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from tests.api.service import OWN, Service, check_problem
from tests.api.test_uploads import as_arrow, send, spooled
from tests.api.test_writing import working
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import NAME
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.api import events as api_events
from venn_admit.api.application import create_application
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.flows.jobs.control import cancel as cancel_job
from venn_admit.flows.jobs.control import reopen
from venn_admit.flows.keys.keys import create as create_key
from venn_admit.flows.keys.keys import revoke
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction
from venn_admit_client.bodies import ARROW_STREAM, PARQUET

ROWS = samples.SCORED_ROWS


@pytest.fixture(scope="module")
def exemplars(session_folder: Path) -> Path:
    return samples.save(session_folder, "batch.parquet", samples.scored())


def submit(service: Service, file: Path, **options: Any) -> dict[str, Any]:
    answer = send(service, f"{OWN}/jobs", file.read_bytes(), PARQUET, key=Scope.SCORE, **options)
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"{OWN}/jobs/{told['job']}"
    return told


def compute(service: Service, job: int) -> None:
    compute_job(service.runtime.engine, service.runtime.chunk_runner("test"), job)


def events(answer: Response) -> list[tuple[str, str, dict[str, Any]]]:
    """Return id, kind and data of the events of an answer."""
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


def test_the_whole_way(service: Service, own_calibrated: Program, exemplars: Path, tmp_path: Path) -> None:
    told = submit(service, exemplars, source="nightly")
    job = told["job"]
    assert told["rows"] == ROWS
    check_problem(service.get(f"{OWN}/jobs/{job}/scores"), 409, "not-ready", "is running, expected one that is done")
    compute(service, job)
    assert service.get(f"{OWN}/jobs/{job}").json()["state"] == "done"

    expected = tmp_path / "scores.parquet"
    assert own_calibrated("score", NAME, exemplars, "--out", expected).code == 0
    answer = service.get(f"{OWN}/jobs/{job}/scores")
    assert answer.headers["content-type"] == PARQUET
    assert int(answer.headers["content-length"]) == len(answer.content)
    table = pq.read_table(io.BytesIO(answer.content))
    assert table.equals(pq.read_table(expected))
    streamed = service.get(f"{OWN}/jobs/{job}/scores", headers={"Accept": f"text/html, {ARROW_STREAM};q=0.9"})
    assert streamed.headers["content-type"] == ARROW_STREAM
    assert pa.ipc.open_stream(streamed.content).read_all().equals(table)
    assert spooled(service) == []

    by_stream = send(service, f"{OWN}/jobs", as_arrow(exemplars), ARROW_STREAM, key=Scope.SCORE, weighted=False).json()
    assert by_stream["weighted"] is False
    compute(service, by_stream["job"])
    plain = pq.read_table(io.BytesIO(service.get(f"{OWN}/jobs/{by_stream['job']}/scores").content))
    assert plain["external_id"].equals(table["external_id"])
    assert set(plain["upweight"].to_pylist()) <= {1.0, None}
    assert set(table["upweight"].to_pylist()) - {1.0, None}


def test_what_is_refused(service: Service, exemplars: Path) -> None:
    content = exemplars.read_bytes()
    check_problem(send(service, f"{OWN}/jobs", content[:-100], PARQUET), 422, "invalid-input", "the body: expected")
    check_problem(send(service, f"{OWN}/jobs", content, PARQUET, calibration=99), 404, "unknown-calibration")
    create_classifier(service.runtime.engine, "other", samples.CLASS_NAMES, dimension=samples.DIMENSION, seed=0)
    check_problem(send(service, "/v1/classifiers/other/jobs", content, PARQUET), 409, "not-calibrated")
    before = len(service.get(f"{OWN}/jobs").json()["jobs"])
    job = submit(service, exemplars)["job"]
    assert len(service.get(f"{OWN}/jobs").json()["jobs"]) == before + 1
    for path in ("", "/scores", "/events"):
        check_problem(service.get(f"/v1/classifiers/other/jobs/{job}{path}"), 404, "unknown-job")
    check_problem(service.post(f"/v1/classifiers/other/jobs/{job}/cancel", None), 404, "unknown-job")
    unwanted = service.get(f"{OWN}/jobs/{job}/scores", headers={"Accept": "text/html"})
    check_problem(unwanted, 406, "not-acceptable", PARQUET)
    with transaction(service.runtime.engine) as connection:
        other = connection.execute(text("SELECT min(id) FROM job WHERE kind <> 'score'")).scalar_one()
    check_problem(service.get(f"{OWN}/jobs/{other}/scores"), 422, "invalid-input", "no decisions to write")


def test_a_key_has_so_many_jobs_running(service: Service, exemplars: Path) -> None:
    most = service.runtime.settings.jobs_per_key
    submitted = [submit(service, exemplars)["job"] for _ in range(most)]
    refused = send(service, f"{OWN}/jobs", exemplars.read_bytes(), PARQUET, key=Scope.SCORE)
    check_problem(refused, 429, "too-many", f"at most {most} running jobs")
    assert refused.headers["retry-after"] == "10"
    with_another = send(service, f"{OWN}/jobs", exemplars.read_bytes(), PARQUET, key=Scope.ADMIN)
    assert with_another.status_code == 202
    cancelled = service.post(f"{OWN}/jobs/{submitted[0]}/cancel", None, key=Scope.WRITE)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    check_problem(service.post(f"{OWN}/jobs/{submitted[0]}/cancel", None), 409, "job-not-running")
    submit(service, exemplars)


def test_all_processes_count_the_jobs_of_a_key_together(service: Service, exemplars: Path) -> None:
    """Each of several processes is asked at once, so that all of them look before any has recorded a job."""
    most, content = service.runtime.settings.jobs_per_key, exemplars.read_bytes()
    settings = Settings(database_url=service.runtime.database_url, home=service.runtime.settings.home)
    runtimes = [Runtime.start(settings) for _ in range(most + 1)]
    others = [
        Service(TestClient(create_application(one), raise_server_exceptions=False), one, service.keys)
        for one in runtimes
    ]
    for other in others:
        # FastAPI builds routes at the first request, and meanwhile silences warnings, which threads cannot do apart.
        assert other.get("/v1/nothing").status_code == 404
    with ThreadPoolExecutor(len(others)) as pool:
        answers = list(pool.map(lambda other: send(other, f"{OWN}/jobs", content, PARQUET, key=Scope.SCORE), others))
    taken = [answer.json()["job"] for answer in answers if answer.status_code == 202]
    assert len(taken) == most
    for answer in answers:
        if answer.status_code != 202:
            check_problem(answer, 429, "too-many", "running jobs with a key")
    check_problem(
        send(service, f"{OWN}/jobs", content, PARQUET, key=Scope.SCORE), 429, "too-many", "running jobs with a key"
    )
    with working(service):
        refused = service.post(f"{OWN}/fit", None, key=Scope.WRITE)
        assert refused.status_code == 202, "another key"
        for job in taken:
            events(service.get(f"{OWN}/jobs/{job}/events"))
    assert submit(service, exemplars)["job"]
    for one in runtimes:
        one.engine.dispose()


def test_events_tell_of_a_job_until_it_is_over(service: Service, exemplars: Path) -> None:
    job = submit(service, exemplars)["job"]
    with working(service):
        told = events(service.get(f"{OWN}/jobs/{job}/events"))
    assert [kind for _, kind, _ in told][-1] == "end"
    last_id, _, data = told[-1]
    assert data == {"job": job, "state": "done", "rows": ROWS, "rows_done": ROWS, "error": None}
    assert events(service.get(f"{OWN}/jobs/{job}/events"))[0][2] == data, "who comes late is told all the same"
    seen = service.get(f"{OWN}/jobs/{job}/events", headers={"Last-Event-ID": last_id})
    assert (seen.status_code, seen.content) == (204, b"")
    others = service.get(f"{OWN}/jobs/{job}/events", headers={"Last-Event-ID": "0-running"})
    assert events(others)[0][1] == "end"


def test_events_of_a_job_that_is_cancelled(service: Service, exemplars: Path) -> None:
    job, has_begun = submit(service, exemplars)["job"], threading.Event()

    def cancel() -> None:
        assert has_begun.wait(PATIENCE_SECONDS)
        service.post(f"{OWN}/jobs/{job}/cancel", None)

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    told = events(noting(service, b"event: progress", has_begun).get(f"{OWN}/jobs/{job}/events"))
    cancelling.join()
    assert [(kind, data["state"]) for _, kind, data in told] == [("progress", "running"), ("end", "cancelled")]
    reopen(service.runtime.engine, job)
    seen = {"Last-Event-ID": "0-running"}
    timer = threading.Timer(0.5, lambda: service.post(f"{OWN}/jobs/{job}/cancel", None))
    timer.start()
    again = events(service.get(f"{OWN}/jobs/{job}/events", headers=seen))
    timer.join()
    assert [kind for _, kind, _ in again] == ["end"], "what was seen is not told again"


def test_a_stream_ends_with_its_key(service: Service, exemplars: Path) -> None:
    engine, job, has_begun = service.runtime.engine, submit(service, exemplars)["job"], threading.Event()
    made = create_key(engine, "watching", scope=Scope.READ)

    def revoke_and_cancel() -> None:
        assert has_begun.wait(PATIENCE_SECONDS)
        revoke(engine, made.id)
        cancel_job(engine, job)

    revoking = threading.Thread(target=revoke_and_cancel)
    revoking.start()
    watching = noting(service, b"event: progress", has_begun).client
    told = events(watching.get(f"{OWN}/jobs/{job}/events", headers={"Authorization": f"Bearer {made.text}"}))
    revoking.join()
    assert [kind for _, kind, _ in told] == ["progress"], "how the job ended is not told"


@pytest.mark.parametrize(
    ("limit", "saying"), [("MOST_STREAMS_PER_KEY", "1 streams of events with a key"), ("MOST_STREAMS", "this process")]
)
def test_there_may_be_so_many_streams(
    service: Service, exemplars: Path, monkeypatch: pytest.MonkeyPatch, limit: str, saying: str
) -> None:
    monkeypatch.setattr(api_events, limit, 1)
    job, has_begun = submit(service, exemplars)["job"], threading.Event()
    path = f"{OWN}/jobs/{job}/events"
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(noting(service, b"event: progress", has_begun).get, path)
        assert has_begun.wait(PATIENCE_SECONDS)
        refused = service.get(path)
        cancel_job(service.runtime.engine, job)
    check_problem(refused, 429, "too-many", saying)
    assert refused.headers["retry-after"] == "10"
    assert events(first.result())[-1][1] == events(service.get(path))[-1][1] == "end"


def noting(service: Service, said: bytes, event: threading.Event) -> Service:
    """The service, which sets an event once an answer has said this."""
    app: ASGIApp = service.client.app

    async def noted(scope: ASGIScope, receive: Receive, send: Send) -> None:
        async def send_and_note(message: Message) -> None:
            await send(message)
            if said in message.get("body", b""):
                event.set()

        await app(scope, receive, send_and_note)

    return replace(service, client=TestClient(noted, raise_server_exceptions=False))


LISTENERS = """
SELECT pid
FROM pg_stat_activity
WHERE
    datname = current_database()
    AND pid <> pg_backend_pid()
    AND (query LIKE '%LISTEN venn_admit_job%' OR query LIKE '%SELECT 1 AS lasts%')
"""


def test_one_connection_serves_all_streams_and_is_made_again_if_it_is_lost(service: Service, exemplars: Path) -> None:
    jobs = [submit(service, exemplars)["job"] for _ in range(2)]
    answers: list[Response] = []

    def watch(job: int) -> None:
        answers.append(service.get(f"{OWN}/jobs/{job}/events"))

    threads = [threading.Thread(target=watch, args=(job,), daemon=True) for job in jobs for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: listeners(service), "somebody listens")
    (listener,) = listeners(service)
    with transaction(service.runtime.engine) as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": listener})
    for job in jobs:
        compute(service, job)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert len(answers) == len(threads)
    assert all(events(answer)[-1][1] == "end" for answer in answers)


def listeners(service: Service) -> list[int]:
    """Return the sessions that listen."""
    with transaction(service.runtime.engine) as connection:
        return list(connection.execute(text(LISTENERS)).scalars())
