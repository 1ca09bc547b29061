"""Requests whose process dies, or whose broker fails, after what they ask for is stored: it is stored once."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import text

from tests.api.service import OWN, Service, check_problem
from tests.cli import samples
from tests.faults.clients import rows
from venn_admit.api.routes import calibrations, classifiers, exemplars, fits, jobs, settings
from venn_admit.api.waiting import WaitingForWorkers
from venn_admit.errors import BrokerError
from venn_admit.flows.calibration import calibrate
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.flows.keys import idempotency
from venn_admit.http.guards.idempotency import REPLAYED
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.idempotency import Attempt
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import approximations
from venn_admit_client.bodies import PARQUET

CLASSIFIERS = "/v1/classifiers"
CALIBRATIONS, PARAMETERS, SETTINGS = f"{OWN}/calibrations", f"{OWN}/parameters", f"{OWN}/settings"
NEW = {"classifier": "made", "classes": ["a", "b"], "dimension": 3, "seed": 0}
ASKED = json.dumps({"method": "venn-abers", "promise": "pointwise", "alpha": "0.2"}).encode()


@pytest.fixture(scope="module")
def batch(session_folder: Path) -> bytes:
    return samples.save(session_folder, "exactly-once.parquet", samples.scored()).read_bytes()


def post(service: Service, path: str, content: bytes, media_type: str = "application/json") -> Response:
    headers = {"Content-Type": media_type, "Idempotency-Key": path.rpartition("/")[2]}
    return service.ask("POST", path, key=Scope.ADMIN, content=content, headers=headers)


def die_after(patch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """Let the process fail when it has stored what was asked for, and its answer: where it would make it once more."""
    real: Callable[..., Any] = getattr(module, name)
    calls: list[None] = []

    def fails_the_second_time(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 2:
            raise RuntimeError("the process dies")
        return real(*arguments)

    patch.setattr(module, name, fails_the_second_time)


def check_stored_once(
    service: Service, path: str, content: bytes, media_type: str, module: Any, name: str, status: int
) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        die_after(patch, module, name)
        check_problem(post(service, path, content, media_type), 500, "internal")
    again = post(service, path, content, media_type)
    assert again.status_code == status, again.text
    assert again.headers[REPLAYED] == "true"
    check_problem(post(service, path, content + b" ", media_type), 422, "idempotency-key-reused")
    told: dict[str, Any] = again.json()
    return told


def fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("the process dies")


def meanwhile(patch: pytest.MonkeyPatch, module: Any, name: str, event: Callable[[], object]) -> None:
    """Have something happen once a step of a request is done, while the request is still being answered."""
    real: Callable[..., Any] = getattr(module, name)

    def done(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        event()
        return result

    patch.setattr(module, name, done)


def count(service: Service, table: str) -> int:
    with connect(service.runtime.engine) as connection:
        found: int = connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
    return found


def running(service: Service) -> Attempt:
    """The attempt at the only request that is being answered."""
    with connect(service.runtime.engine) as connection:
        row = connection.execute(text("SELECT * FROM idempotent_request WHERE status IS NULL")).one()
    return Attempt(row.caller, row.idempotency_key, row.route, row.attempt)


def running_jobs(service: Service) -> list[int]:
    with connect(service.runtime.engine) as connection:
        return list(connection.execute(text("SELECT id FROM job WHERE state = 'running'")).scalars())


def ingest_labelled(service: Service, count: int) -> list[int]:
    """Store labelled points that calibrate; their keys."""
    given = {"split": "mc", "exemplars": rows("late", count, seed=8)}
    content = json.dumps(given).encode()
    assert post(service, f"{OWN}/exemplars", content).json()["new"] == count
    with connect(service.runtime.engine) as connection:
        return list(connection.execute(text("SELECT id FROM exemplar WHERE external_id LIKE 'late-%'")).scalars())


def approximated(service: Service, exemplar_ids: list[int]) -> list[Any]:
    """What is stored of points that were approximated, and by which transactions."""
    stored = text("""
        SELECT neighbours.xmin::text AS listed_by, approximation.xmin::text AS approximated_by, *
        FROM neighbours INNER JOIN approximation USING (exemplar_id)
        WHERE exemplar_id = ANY(:exemplar_ids) ORDER BY exemplar_id
    """)
    with connect(service.runtime.engine) as connection:
        found = list(connection.execute(stored, {"exemplar_ids": exemplar_ids}).all())
    assert len(found) == len(exemplar_ids)
    return found


def other_parameters(service: Service) -> bytes:
    return json.dumps(service.get(PARAMETERS).json() | {"eta": 3.5}).encode()


def no_broker(_: Runtime) -> None:
    raise BrokerError("it is away")


def test_a_classifier_is_registered_once(empty: Service) -> None:
    content = json.dumps(NEW).encode()
    told = check_stored_once(empty, CLASSIFIERS, content, "application/json", classifiers, "created_json", 201)
    assert told["classifier"] == "made"
    assert post(empty, CLASSIFIERS, content).headers["location"] == f"{CLASSIFIERS}/made"


def test_a_generation_is_added_once(service: Service) -> None:
    path, content = f"{OWN}/generations", json.dumps({"extractor": "v2"}).encode()
    told = check_stored_once(service, path, content, "application/json", classifiers, "created_json", 201)
    assert (told["generation"], told["extractor"]) == (2, "v2")
    assert [one["generation"] for one in service.get(path).json()["generations"]] == [1, 2]


def test_exemplars_and_labels_are_told_as_they_were_stored_first(service: Service) -> None:
    columns = samples.exemplars("late", 3, seed=8)
    rows = [
        {
            "external_id": str(columns["external_id"][row]),
            "vector": columns["vector"][row].tolist(),
            "logits": columns["logits"][row].tolist(),
            "label": int(columns["label"][row]),
        }
        for row in range(3)
    ]
    content = json.dumps({"split": "mc", "exemplars": rows}).encode()
    path = f"{OWN}/exemplars"
    told = check_stored_once(service, path, content, "application/json", exemplars, "as_json", 200)
    assert (told["new"], told["already_stored"]) == (3, 0)
    other = (int(columns["label"][0]) + 1) % samples.CLASS_COUNT
    content = json.dumps({"labels": [{"external_id": "late-0", "label": other}]}).encode()
    told = check_stored_once(service, f"{OWN}/labels", content, "application/json", exemplars, "as_json", 200)
    assert told["corrected"] == 1


def test_a_job_is_submitted_once(service: Service, batch: bytes) -> None:
    told = check_stored_once(service, f"{OWN}/jobs", batch, PARQUET, jobs, "_submitted", 202)
    (listed,) = (one for one in service.get(f"{OWN}/jobs").json()["jobs"] if one["kind"] == "score")
    assert listed["job"] == told["job"]


@pytest.mark.parametrize("content", [b"", b"{}"])
def test_a_fit_is_submitted_once(service: Service, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """A body that it does not need makes another request of it, too."""
    monkeypatch.setattr(fits, "require_worker", lambda _: None)
    told = check_stored_once(service, f"{OWN}/fit", content, "application/json", fits, "_submitted", 202)
    (listed,) = (one for one in service.get(f"{OWN}/jobs").json()["jobs"] if one["kind"] == "fit")
    assert (listed["job"], listed["rows"]) == (told["job"], told["rows"])


def test_a_calibration_is_made_once(service: Service) -> None:
    before = count(service, "calibration")
    told = check_stored_once(service, CALIBRATIONS, ASKED, "application/json", calibrations, "_calibrated", 201)
    assert count(service, "calibration") == before + 1
    again = post(service, CALIBRATIONS, ASKED)
    assert again.headers["location"] == f"{CALIBRATIONS}/{told['calibration']}"
    assert service.get(f"{OWN}/calibration").json()["calibration"] == told["calibration"]


@pytest.mark.parametrize("last", ["take_snapshot", "vacuum_changed"])
def test_a_calibration_that_is_published_is_answered(
    service: Service, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Its transaction is over; that which keeps others from calibrating may be under way."""
    before = count(service, "calibration")
    with monkeypatch.context() as patch:
        meanwhile(patch, calibrate, last, fails)
        check_problem(post(service, CALIBRATIONS, ASKED), 500, "internal")
    assert count(service, "calibration") == before + 1
    again = post(service, CALIBRATIONS, ASKED)
    assert again.status_code == 201, again.text
    assert again.headers[REPLAYED] == "true"
    assert again.json()["calibration"] == service.get(f"{OWN}/calibration").json()["calibration"]
    assert count(service, "calibration") == before + 1


def test_what_a_calibration_that_died_had_approximated_is_not_computed_twice(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job goes on without it. The request, sent again, records another, of all that is not approximated by then."""
    engine, runner = service.runtime.engine, service.runtime.chunk_runner("here")
    arrived = ingest_labelled(service, 100)
    with monkeypatch.context() as patch:
        meanwhile(patch, calibrate, "request_approximations", fails)
        check_problem(post(service, CALIBRATIONS, ASKED), 500, "internal")
    (first,) = running_jobs(service)
    monkeypatch.setattr(WaitingForWorkers, "run_job", lambda _, job_id, *__: compute_job(engine, runner, job_id))
    assert post(service, CALIBRATIONS, ASKED).status_code == 201
    with connect(engine) as connection:
        of_jobs = connection.execute(
            text("SELECT job_id, count(*) FROM job_row WHERE exemplar_id = ANY(:arrived) GROUP BY job_id ORDER BY 1"),
            {"arrived": arrived},
        ).all()
    assert list(of_jobs) == [(first, 100), (first + 1, 100)], "100 rows more than without the death"
    assert running_jobs(service) == [first]
    before = approximated(service, arrived)
    compute_job(engine, runner, first)
    assert approximated(service, arrived) == before, "nothing is written again"


def test_a_lease_is_extended_while_a_calibration_is_computed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction does not see that, and keeps the answer nevertheless."""
    engine = service.runtime.engine

    def extend_twice() -> None:
        for _ in range(2):
            idempotency.extend(engine, running(service))
        assert count(service, "idempotent_lease") == 1

    with monkeypatch.context() as patch:
        meanwhile(patch, calibrate, "_calibrate", extend_twice)
        made = post(service, CALIBRATIONS, ASKED)
    assert made.status_code == 201, made.text
    again = post(service, CALIBRATIONS, ASKED)
    assert again.headers[REPLAYED] == "true"
    assert again.content == made.content
    assert again.headers["location"] == made.headers["location"]


def test_parameters_are_adopted_once(service: Service) -> None:
    before = count(service, "knn_parameters")
    told = check_stored_once(service, PARAMETERS, other_parameters(service), "application/json", fits, "_adopted", 201)
    assert count(service, "knn_parameters") == before + 1
    with connect(service.runtime.engine) as connection:
        current = connection.execute(text("SELECT id FROM knn_parameters WHERE is_current")).scalar_one()
    assert current == told["knn_parameters"]


@pytest.mark.parametrize(
    ("path", "table", "module", "step"),
    [
        (CALIBRATIONS, "calibration", calibrate, "request_approximations"),
        (CALIBRATIONS, "calibration", calibrate, "_calibrate"),
        (PARAMETERS, "knn_parameters", approximations, "add_parameters"),
    ],
    ids=["calibration, before its transaction", "calibration, within its transaction", "parameters"],
)
def test_an_attempt_that_lost_its_lease_stores_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, table: str, module: Any, step: str
) -> None:
    """Another attempt at the request has begun, as it does once the lease has ended."""
    engine, others = service.runtime.engine, []

    def take_over() -> None:
        lost = running(service)
        with transaction(engine) as connection:
            connection.execute(text("UPDATE idempotent_request SET leased_until = now()"))
        began = idempotency.begin(engine, lost.caller, lost.name, lost.route, kept_for=timedelta(hours=1))
        assert began is not None
        others.append(began[0])

    content = ASKED if path == CALIBRATIONS else other_parameters(service)
    before = count(service, table)
    with monkeypatch.context() as patch:
        meanwhile(patch, module, step, take_over)
        check_problem(post(service, path, content), 409, "still-running")
    assert count(service, table) == before
    check_problem(post(service, path, content), 409, "still-running")
    idempotency.release(engine, *others)
    made = post(service, path, content)
    assert made.status_code == 201, made.text
    assert REPLAYED not in made.headers
    assert count(service, table) == before + 1


def test_settings_are_changed_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is answered again although the settings are not those any longer that it was about."""
    first = service.get(SETTINGS).json()["settings"][0]["setting"]
    assert post(service, CALIBRATIONS, ASKED).status_code == 201
    body = json.dumps({"classifier": "other"}).encode()
    for method, path, content in (("DELETE", f"{SETTINGS}/{first}", None), ("PATCH", SETTINGS, body)):
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": method,
            "If-Match": service.get(SETTINGS).headers["etag"],
        }
        with monkeypatch.context() as patch:
            patch.setattr(settings, "_answer", fails)
            died = service.ask(method, path, key=Scope.ADMIN, content=content, headers=headers)
            check_problem(died, 500, "internal")
        again = service.ask(method, path, key=Scope.ADMIN, content=content, headers=headers)
        assert again.status_code == 200, again.text
        assert again.headers[REPLAYED] == "true"
        now = service.get(again.headers.get("location", SETTINGS))
        assert (again.json(), again.headers["etag"]) == (now.json(), now.headers["etag"])
    assert again.json()["classifier"] == "other"
    assert [one["retired_at"] is None for one in again.json()["settings"]] == [True, False]


@pytest.mark.parametrize(
    ("route", "body", "step"),
    [
        ("generations/current", {"generation": 1}, "_switched"),
        ("extractor", {"extractor": "v1"}, "created_json"),
    ],
)
def test_a_generation_is_changed_once(
    service: Service, monkeypatch: pytest.MonkeyPatch, route: str, body: dict[str, object], step: str
) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": route}

    def put() -> Response:
        return service.ask("PUT", f"{OWN}/{route}", key=Scope.ADMIN, content=json.dumps(body).encode(), headers=headers)

    with monkeypatch.context() as patch:
        die_after(patch, classifiers, step)
        check_problem(put(), 500, "internal")
    again = put()
    assert again.status_code == 200, again.text
    assert again.headers[REPLAYED] == "true"
    assert service.get(OWN).json()["extractor"] == body.get("extractor")


def test_a_job_that_cannot_be_sent_is_submitted_anew(
    service: Service, batch: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the broker it is cancelled; the same request succeeds once the broker is back."""
    with monkeypatch.context() as patch:
        patch.setattr(Runtime, "broker", property(no_broker))
        check_problem(post(service, f"{OWN}/jobs", batch, PARQUET), 503, "broker")
    again = post(service, f"{OWN}/jobs", batch, PARQUET)
    assert again.status_code == 202, again.text
    states = [one["state"] for one in service.get(f"{OWN}/jobs").json()["jobs"] if one["kind"] == "score"]
    assert states == ["running", "cancelled"]


def test_a_job_of_which_workers_know_is_submitted(
    service: Service, batch: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker fails after some messages: the sweeper sends the others."""

    def send_some(runtime: Runtime, job_id: int) -> None:
        real(runtime, job_id)
        raise BrokerError("it is gone")

    real = Runtime.send
    monkeypatch.setattr(Runtime, "send", send_some)
    answer = post(service, f"{OWN}/jobs", batch, PARQUET)
    assert answer.status_code == 202, answer.text
    assert post(service, f"{OWN}/jobs", batch, PARQUET).json() == answer.json()


def test_what_an_attempt_stores_that_lost_its_lease_is_taken_back(
    empty: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(idempotency, "record_with_effect", lambda *_, **__: False)
        check_problem(post(empty, CLASSIFIERS, json.dumps(NEW).encode()), 409, "still-running")
    assert empty.get(CLASSIFIERS).json()["classifiers"] == []
    assert post(empty, CLASSIFIERS, json.dumps(NEW).encode()).status_code == 201
