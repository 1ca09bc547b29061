"""Traces: a job that is requested over HTTP is one trace, through the service, its messages and the workers."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.api.processes import serving
from tests.api.service import OWN
from tests.cli import samples
from tests.cli.program import Program
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.telemetry.collector import CollectedSpan, Collector, collecting
from tests.workers.processes import await_workers, running_worker
from venn_admit import telemetry
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.store.database.engine import create_engine

SERVER, PRODUCER, CONSUMER = 2, 4, 5
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def submit(client: httpx.Client, file: Path, **headers: str) -> int:
    answer = client.post(f"{OWN}/jobs", content=file.read_bytes(), headers={**PARQUET, **headers})
    assert answer.status_code == 202, answer.text
    return int(answer.json()["job"])


def await_job(client: httpx.Client, job: int) -> None:
    wait_until(lambda: client.get(f"{OWN}/jobs/{job}").json()["state"] == "done", "the job is done")


@pytest.mark.processes
def test_a_job_is_one_trace_from_the_request_to_the_last_chunk(
    own_calibrated: Program, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in collector.environment.items():
        monkeypatch.setenv(name, value)
    secret = own_calibrated("key", "create", "traced", "--scope", "admin", "--json").result["secret"]
    traced = replace(own_calibrated, environment={**own_calibrated.environment, "VENN_ADMIT_CHUNK_ROWS": "40"})
    file = samples.save(tmp_path, "scored.parquet", samples.scored())
    engine = create_engine(traced.url)
    with (
        running_worker(traced.url, tmp_path) as worker,
        serving(traced) as (process, url),
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=PATIENCE_SECONDS) as client,
    ):
        await_workers(engine, 1)
        engine.dispose()
        job = submit(client, file, **TRACED)
        await_job(client, job)
        assert client.get("/health/live", headers=TRACED).status_code == 200
        refused = client.get("/v1/classifiers/missing/decisions?external_id=query", headers=TRACED)
        assert refused.status_code == 404

        def of_job() -> list[CollectedSpan]:
            return [one for one in collector.named("run chunk") if one.attributes["venn_admit.job"] == job]

        wait_until(lambda: len(of_job()) == -(-samples.SCORED_ROWS // 40), "the worker has exported all chunks")
        wait_until(
            lambda: collector.named("GET /v1/classifiers/{classifier}/decisions"),
            "the service has exported the refusal",
        )
        children = {one.pid for one in worker.family()}

    (request,) = collector.named("POST /v1/classifiers/{classifier}/jobs")
    (sent,) = (one for one in collector.spans if one.kind == PRODUCER and one.parent == request.own)
    chunks = of_job()
    assert (request.trace, request.parent, request.kind) == (TRACE, CALLER, SERVER)
    assert (sent.trace, sent.attributes["messaging.batch.message_count"]) == (TRACE, len(chunks))
    assert {(one.trace, one.parent, one.kind) for one in chunks} == {(TRACE, sent.own, CONSUMER)}
    assert sorted(one.attributes["venn_admit.chunk"] for one in chunks) == list(range(len(chunks)))
    assert sum(one.attributes["venn_admit.rows"] for one in chunks) == samples.SCORED_ROWS
    assert {(one.service, one.process) for one in (request, sent)} == {("venn-admit-api", process.pid)}
    assert {one.service for one in chunks} == {"venn-admit-worker"}
    assert {one.process for one in chunks} <= children - {process.pid}
    assert request.attributes["http.response.status_code"] == 202
    (missing,) = collector.named("GET /v1/classifiers/{classifier}/decisions")
    assert (missing.attributes["http.response.status_code"], missing.is_error) == (404, False)
    assert not [one for one in collector.spans if "health" in json.dumps(one.attributes)]
    exported = b"".join(collector.raw)
    for hidden in (secret, secret.rpartition("_")[2], "missing", "query", "scored-1", traced.url):
        assert hidden.encode() not in exported, hidden


IMPORTED = """
import sys
from venn_admit import telemetry
from venn_admit.api.application import create_application
telemetry.begin("api")
with telemetry.span("a", "server", {}) as span:
    print(span, telemetry.headers(), telemetry.is_on())
print(*(name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "torch"))))
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_SERVICE_NAME": "named", "OTEL_TRACES_SAMPLER": "always_on"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=str,
)
def test_without_the_variables_nothing_is_loaded(variables: dict[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | variables
    done = subprocess.run([sys.executable, "-c", IMPORTED], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "None {} False\n\n"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(NotReadyError, match=r"pip install 'venn-admit\[telemetry\]'"):
        telemetry.begin("api")
    assert not telemetry.is_on()


def test_another_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(InvalidInputError, match="expected http/protobuf, got 'grpc'"):
        telemetry.check()


def test_the_variables_name_the_service_and_the_end_exports(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**collector.environment, "OTEL_BSP_SCHEDULE_DELAY": "60000"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=ours,deployment.environment.name=staging")
    telemetry.begin("api")
    with telemetry.span("outer", "server", {"a": 1}, sent_with={"traceparent": "nonsense", "other": 1}):
        headers = telemetry.headers()
        with telemetry.span("inner", "producer", {}):
            pass
    assert collector.spans == []
    telemetry.end()
    assert not telemetry.is_on()
    (outer,), (inner,) = collector.named("outer"), collector.named("inner")
    assert (outer.service, outer.process, outer.parent, outer.attributes) == ("ours", os.getpid(), "", {"a": 1})
    assert (inner.parent, inner.trace) == (outer.own, outer.trace)
    assert headers["traceparent"].split("-")[1:3] == [outer.trace, outer.own]
