"""What surrounds every answer: limits, errors, headers, health, figures and the document."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from structlog.testing import capture_logs

from docs.generate.openapi import http_page, openapi_text, references
from tests.api.service import OWN, Service, check_problem
from tests.cli.samples import NAME
from venn_admit.api.application import DOCUMENT, ROUTERS, create_application
from venn_admit.api.models.common import Given
from venn_admit.errors import Code, DatabaseError
from venn_admit.http import problems
from venn_admit.http.bodies import MOST_NESTING
from venn_admit.http.guards.guard import GuardedRoute, guard_of
from venn_admit.http.headers import REQUEST_ID, SECURITY_HEADERS
from venn_admit.http.heads import Heads
from venn_admit.http.limits import MOST_BODY_BYTES
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect
from venn_admit_client.codes import Problem

JSON = {"Content-Type": "application/json"}
PASSWORD = "hunter2hunter2"


@pytest.fixture
def unreachable(tmp_path: Any) -> Iterator[TestClient]:
    """The application without its database."""
    url = f"postgresql://someone:{PASSWORD}@localhost:1/nothing"
    runtime = Runtime.start(Settings(database_url=url, home=tmp_path))
    yield TestClient(create_application(runtime), raise_server_exceptions=False)
    runtime.engine.dispose()


def test_every_family_has_a_status_and_a_title() -> None:
    families = {code.family for code in Code}
    assert families <= set(problems.STATUS)
    assert families == set(problems.TITLES)
    assert not {str(problem) for problem in Problem} & {str(code) for code in Code}


def test_no_route_passes_over_a_parameter_that_it_does_not_know(shared: Service) -> None:
    """A misspelled `dry_run` would have a classifier deleted."""
    asked = [
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, GuardedRoute) and guard_of(route) is not None
        for method in route.methods or ()
    ]
    assert ("DELETE", "/v1/classifiers/{classifier}") in asked
    for method, path in asked:
        filled = re.sub(r"\{\w+\}", "1", path.replace("{classifier}", NAME))
        answer = shared.ask(method, filled, key=Scope.ADMIN, params={"dryrun": "true"})
        problem = check_problem(answer, 422, "invalid-request", "query.dryrun: Extra inputs are not permitted")
        assert [one.at for one in problem.errors or ()] == [["query", "dryrun"]], (method, path)
    assert shared.get(OWN).status_code == 200


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_has_a_limit_whether_or_not_its_length_is_announced(shared: Service, announced: bool) -> None:
    block = b" " * (1 << 20)

    def blocks() -> Iterator[bytes]:
        for _ in range(MOST_BODY_BYTES // len(block) + 1):
            yield block

    content = b"".join(blocks()) if announced else blocks()
    answer = shared.ask("POST", f"{OWN}/decide", key=Scope.ADMIN, content=content, headers=JSON)
    check_problem(answer, 413, "body-too-large", f"at most {MOST_BODY_BYTES:,} bytes")
    within = shared.ask("POST", f"{OWN}/decide", key=Scope.ADMIN, content=block, headers=JSON)
    check_problem(within, 422, "invalid-request", "expected JSON in UTF-8, got something else at line 1")


@pytest.mark.parametrize(
    ("content", "saying"),
    [
        (b"[" * 100_000, f"nested at most {MOST_NESTING} deep"),
        (b'{"points": ' * 40, f"nested at most {MOST_NESTING} deep"),
        (b'{"points": "' + b"[" * 40 + b'"}', "points"),
        (b'{"points": "\\"' + b"[" * 40 + b'"}', "points"),
        (b"{not json", "line 1, column 2: Expecting property name"),
        (b'{"points":\n 1,}', "line 2, column 4"),
        (b"\xff\xfe", "JSON in UTF-8"),
        (b"1" * 5000, "integers of at most 4,300 digits"),
        (b'"' + b"\\" * 100_001, "JSON"),
        (b"", "body"),
        (b"null", "body"),
        (b"[]", "body"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(shared: Service, content: bytes, saying: str) -> None:
    answer = shared.ask("POST", f"{OWN}/decide", key=Scope.ADMIN, content=content, headers=JSON)
    check_problem(answer, 422, "invalid-request", saying)


@pytest.mark.parametrize("kind", ["text/xml", "multipart/form-data; boundary=a", "application/xml", None])
def test_a_body_of_another_type_is_refused(shared: Service, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = shared.ask("POST", f"{OWN}/decide", key=Scope.ADMIN, content=b"{}", headers=headers)
    got = "none" if kind is None else ascii(kind.partition(";")[0])
    check_problem(answer, 415, "unsupported-media-type", f"header Content-Type: expected application/json, got {got};")


def test_a_body_may_have_another_type_of_json(shared: Service) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/vnd.example+json"):
        answer = shared.ask("POST", f"{OWN}/decide", key=Scope.ADMIN, content=b"{}", headers={"Content-Type": kind})
        check_problem(answer, 422, "invalid-request", "body.points")


def test_a_value_of_none_of_its_types_is_one_error_without_names_of_types(shared: Service) -> None:
    given = {"labels": [{"external_id": "one", "label": 1.5}, {"external_id": "two", "label": {}}, {}]}
    errors = shared.post(f"{OWN}/labels", given).json()["errors"]
    neither = "Input should be a valid integer or a valid string"
    assert [(one["at"], one["message"]) for one in errors] == [
        (["body", "labels", 0, "label"], neither),
        (["body", "labels", 1, "label"], neither),
        (["body", "labels", 2, "external_id"], "Field required"),
        (["body", "labels", 2, "label"], "Field required"),
    ]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "no-such-route"),
        ("GET", "/docs", 404, "no-such-route"),
        ("GET", f"{OWN}/", 404, "no-such-route"),
        ("GET", "/v1/../etc/passwd", 404, "no-such-route"),
        ("PATCH", OWN, 405, "method-not-allowed"),
        ("GET", "/v1/classifiers/a%00b", 422, "invalid-request"),
        ("GET", "/v1/classifiers/nobody", 404, "unknown-classifier"),
        ("GET", f"{OWN}/jobs/{2**63}", 422, "invalid-request"),
        ("GET", f"{OWN}/jobs/x", 422, "invalid-request"),
        ("GET", f"{OWN}/jobs/999", 404, "unknown-job"),
    ],
)
def test_errors_have_one_form(shared: Service, method: str, path: str, status: int, code: str) -> None:
    answer = shared.ask(method, path, key=Scope.ADMIN)
    check_problem(answer, status, code)
    assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert len(answer.headers[REQUEST_ID]) == 32


def test_a_method_that_is_not_taken_is_told_which_are(shared: Service) -> None:
    for path, methods in (
        (f"{OWN}/calibrations", "GET, HEAD, POST"),
        (OWN, "DELETE, GET, HEAD"),
        (f"{OWN}/decide", "POST"),
    ):
        assert shared.ask("PATCH", path, key=Scope.ADMIN).headers["allow"] == methods


def test_head_is_answered_as_get_without_the_body(shared: Service) -> None:
    for path, key, status in (
        ("/health/live", None, 200),
        ("/health/ready", None, 200),
        (OWN, Scope.READ, 200),
        (OWN, None, 401),
        ("/v1/audit", Scope.READ, 403),
        (f"{OWN}/decide", Scope.ADMIN, 405),
    ):
        with capture_logs() as entries:
            answer = shared.client.head(path) if key is None else shared.ask("HEAD", path, key=key)
        assert (answer.status_code, answer.content) == (status, b""), path
        assert answer.headers.items() >= SECURITY_HEADERS.items()
        assert {(one["method"], one["route"]) for one in entries if one["event"] == "request"} == {
            ("HEAD", path.replace(NAME, "{classifier}"))
        }


def test_head_does_not_wait_for_the_end_of_a_stream() -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        async def blocks() -> AsyncIterator[bytes]:
            while True:
                yield b"more"
                await asyncio.sleep(0)

        await StreamingResponse(blocks())(scope, receive, send)

    assert TestClient(Heads(endless)).head("/").content == b""


def test_every_answer_has_the_security_headers(shared: Service) -> None:
    for answer in (shared.get(OWN), shared.client.get(DOCUMENT), shared.client.get("/health/live")):
        assert answer.status_code == 200
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert "server" not in answer.headers


def test_a_fault_is_answered_and_logged_without_what_it_brought(
    shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from venn_admit.api.routes import classifiers

    def fail(*_: object) -> None:
        raise ValueError(PASSWORD)

    monkeypatch.setattr(classifiers, "show", fail)
    with capture_logs() as entries:
        answer = shared.get(OWN)
    check_problem(answer, 500, "internal", "a fault of the program")
    assert PASSWORD not in answer.text
    fault, request = entries
    assert (fault["event"], fault["request"]) == ("fault", answer.headers[REQUEST_ID])
    assert (request["status"], request["route"]) == (500, "/v1/classifiers/{classifier}")


def test_requests_are_logged_without_keys_and_texts(shared: Service) -> None:
    with capture_logs() as entries:
        answer = shared.get(f"{OWN}/decisions", params={"external_id": "a secret text"})
    (entry,) = entries
    assert {**entry, "seconds": 0} == {
        "event": "request",
        "log_level": "info",
        "request": answer.headers[REQUEST_ID],
        "method": "GET",
        "route": "/v1/classifiers/{classifier}/decisions",
        "status": 200,
        "seconds": 0,
        "key": int(shared.keys[Scope.READ].split("_")[1]),
    }


def test_without_the_database(unreachable: TestClient) -> None:
    """Health tells, requests are to be tried again, and neither says where the database is."""
    assert unreachable.get("/health/live").json() == {"status": "live"}
    ready = unreachable.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json() == {
        "status": "failed",
        "database": "failed",
        "schema": "failed",
        "broker": "failed",
        "workers": 0,
    }
    with capture_logs() as entries:
        answer = unreachable.get(OWN, headers={"Authorization": f"Bearer va_1_{'0' * 64}"})
    check_problem(answer, 503, "database-unreachable", "the database failed or cannot be reached; try again")
    assert answer.headers["retry-after"] == "5"
    assert not any(word in answer.text for word in ("localhost", "someone", PASSWORD))
    assert PASSWORD not in str(entries)
    assert "localhost:1" in str(entries), "the log says where"


def test_a_service_without_workers_is_ready(shared: Service) -> None:
    answer = shared.client.get("/health/ready")
    told = {"status": "ready", "database": "ready", "schema": "ready", "broker": "ready", "workers": 0}
    assert (answer.status_code, answer.json()) == (200, told)


def test_a_service_without_its_schema_is_not_ready(empty_database: str, tmp_path: Any) -> None:
    runtime = Runtime.start(Settings(database_url=empty_database, home=tmp_path))
    told = TestClient(create_application(runtime)).get("/health/ready")
    runtime.engine.dispose()
    assert (told.status_code, told.json()["database"], told.json()["schema"]) == (503, "ready", "failed")


def test_errors_of_the_database_are_told_apart(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from venn_admit.api.routes import classifiers

    def fail(*_: object) -> None:
        raise DatabaseError(f"the database postgresql://{PASSWORD}@host refused a statement", code=Code.SCHEMA_MISMATCH)

    monkeypatch.setattr(classifiers, "show", fail)
    answer = shared.get(OWN)
    check_problem(answer, 503, "schema-mismatch")
    assert PASSWORD not in answer.text


def test_a_request_for_which_no_connection_becomes_free(
    shared: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is told so, and when to come again; what the answer does not say is in the log."""
    settings = Settings(database_url=shared.runtime.database_url, home=tmp_path, database_pool_size=1)
    runtime = Runtime.start(settings)
    monkeypatch.setattr(runtime.engine.pool, "_timeout", 0.1)
    busy = Service(TestClient(create_application(runtime), raise_server_exceptions=False), runtime, shared.keys)
    with ExitStack() as held, capture_logs() as entries:
        for _ in range(1 + 4):
            held.enter_context(connect(runtime.engine))
        for answer in (busy.get(OWN), busy.post(f"{OWN}/jobs", {})):
            check_problem(answer, 503, "database-busy", "other requests keep all connections")
            assert int(answer.headers["retry-after"]) > 0
            assert "postgresql" not in answer.text
    assert "VENN_ADMIT_DATABASE_POOL_SIZE" in str(entries), "the log says what to do"
    assert busy.get(OWN).status_code == 200
    runtime.engine.dispose()


def test_the_document_is_served_and_complete(shared: Service) -> None:
    document = shared.client.get(DOCUMENT).json()
    assert document == json.loads(openapi_text()), "the site has another"
    schemas = document["components"]["schemas"]
    assert {reference.rpartition("/")[2] for reference in references(document)} <= set(schemas)
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            assert described["description"], (method, path)
            if not path.startswith("/health"):
                (scope,) = described["security"][0]["key"]
                assert scope in set(Scope)
                assert {"401", "403", "503"} <= set(described["responses"])
            for status, answer in described["responses"].items():
                if int(status) >= 400 and not path.startswith("/health"):
                    assert list(answer["content"]) == [problems.MEDIA_TYPE], (path, status)
            for parameter in described.get("parameters", []):
                assert parameter["schema"].get("examples"), (path, parameter["name"])
    without_example = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, described in schema["properties"].items()
        if not described.get("examples") and not nested(described)
    ]
    assert without_example == []
    # What comes in is bounded; what goes out may grow.
    given = [model.__name__ for model in Given.__subclasses__()]
    assert len(given) > 5
    assert all(schemas[name]["additionalProperties"] is False for name in given)
    # A name that a pattern refuses would be one that the document allows.
    by_pattern = [part for part in objects(document) if "patternProperties" in part]
    assert by_pattern
    assert all(part["additionalProperties"] is False for part in by_pattern)


def objects(part: object) -> Iterator[dict[str, Any]]:
    """Every object of a document, with those that it holds."""
    if isinstance(part, dict):
        yield part
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from objects(one)


def nested(described: dict[str, Any]) -> bool:
    """Whether a field is of models, whose fields have examples themselves."""
    return "$ref" in json.dumps(described)


def test_the_reference_lists_every_route_with_its_scope() -> None:
    lines = http_page().splitlines()
    assert "| `POST /v1/classifiers` | `admin`, for all classifiers | Register a classifier. |" in lines
    assert any(line.startswith("| `POST /v1/classifiers/{classifier}/decide` | `score` |") for line in lines)
    assert any(line.startswith("| `not-ready` | 409 |") for line in lines)
