"""Requests whose process dies, or whose broker fails, after what they ask for is stored: it is stored once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from tests.api.service import OWN, Service, check_problem
from tests.cli import samples
from venn_admit.service.api.routes import batches, classifiers, exemplars, fits, generations
from venn_admit.service.api.security.idempotency import REPLAYED
from venn_admit.service.api.uploads import PARQUET
from venn_admit.service.errors import BrokerError
from venn_admit.service.flows.access import idempotency
from venn_admit.service.runtime import Runtime
from venn_admit.service.store.access.keys import Scope

CLASSIFIERS = "/v1/classifiers"
NEW = {"classifier": "made", "classes": ["a", "b"], "dimension": 3, "seed": 0}


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


def no_broker(_: Runtime) -> None:
    raise BrokerError("it is away")


def test_a_classifier_is_registered_once(empty: Service) -> None:
    content = json.dumps(NEW).encode()
    told = check_stored_once(empty, CLASSIFIERS, content, "application/json", classifiers, "created_payload", 201)
    assert told["classifier"] == "made"
    assert post(empty, CLASSIFIERS, content).headers["location"] == f"{CLASSIFIERS}/made"


def test_a_generation_is_added_once(service: Service) -> None:
    path, content = f"{OWN}/generations", json.dumps({"extractor": "v2"}).encode()
    told = check_stored_once(service, path, content, "application/json", generations, "created_payload", 201)
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
    told = check_stored_once(service, path, content, "application/json", exemplars, "ingested_payload", 200)
    assert (told["new"], told["already_stored"]) == (3, 0)
    other = (int(columns["label"][0]) + 1) % samples.CLASS_COUNT
    content = json.dumps({"labels": [{"external_id": "late-0", "label": other}]}).encode()
    told = check_stored_once(service, f"{OWN}/labels", content, "application/json", exemplars, "labelled_payload", 200)
    assert told["corrected"] == 1


def test_a_job_is_submitted_once(service: Service, batch: bytes) -> None:
    told = check_stored_once(service, f"{OWN}/jobs", batch, PARQUET, batches, "_submitted_payload", 202)
    (listed,) = (one for one in service.get(f"{OWN}/jobs").json()["jobs"] if one["kind"] == "score")
    assert listed["job"] == told["job"]


def test_a_fit_is_submitted_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "require_worker", lambda _: None)
    told = check_stored_once(service, f"{OWN}/fit", b"", "application/json", fits, "_submitted_payload", 202)
    (listed,) = (one for one in service.get(f"{OWN}/jobs").json()["jobs"] if one["kind"] == "fit")
    assert (listed["job"], listed["rows"]) == (told["job"], told["rows"])


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
