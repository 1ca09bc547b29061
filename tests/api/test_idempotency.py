"""Requests that are sent again under the same Idempotency-Key."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import Connection, text
from sqlalchemy.engine.interfaces import IsolationLevel

from tests.api.service import OWN, Service, check_problem
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.api.routes import exemplars
from venn_admit.errors import DatabaseError
from venn_admit.flows.data.label import label
from venn_admit.flows.keys import idempotency
from venn_admit.http.guards import idempotency as header
from venn_admit.http.guards.idempotency import RETRY_SECONDS
from venn_admit.http.limits import MOST_UNUSED_BYTES
from venn_admit.store.access import idempotency as stored_idempotency
from venn_admit.store.access.idempotency import Attempt, KeptAnswer
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect, transaction

CLASSIFIERS = "/v1/classifiers"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def new(name: str) -> dict[str, Any]:
    return {"classifier": name, "classes": ["a", "b"], "dimension": 3, "seed": 0}


def send(service: Service, name: str, body: object, *, path: str = CLASSIFIERS, key: Scope = Scope.ADMIN) -> Response:
    headers = {"Content-Type": "application/json", "Idempotency-Key": name}
    return service.ask("POST", path, key=key, content=json.dumps(body), headers=headers)


def value(service: Service, query: str) -> Any:
    with connect(service.runtime.engine) as connection:
        return connection.execute(text(query)).scalar_one()


def stored(service: Service) -> int:
    count: int = value(service, "SELECT count(*) FROM idempotent_request")
    return count


def change(service: Service, what: str) -> None:
    with transaction(service.runtime.engine) as connection:
        connection.execute(text(f"UPDATE idempotent_request SET {what}"))


def test_a_request_that_is_sent_again_is_answered_again(empty: Service) -> None:
    first = send(empty, "one", new("made"))
    assert first.status_code == 201, first.text
    assert header.REPLAYED not in first.headers
    for name in ("one", '"one"'):
        again = send(empty, name, new("made"))
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers[header.REPLAYED] == "true"
        assert again.headers["location"] == first.headers["location"]
        assert again.headers["content-type"] == "application/json"
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
    check_problem(send(empty, "two", new("made")), 409, "name-taken")


def test_another_request_under_the_same_name_is_refused(empty: Service) -> None:
    assert send(empty, "one", new("made")).status_code == 201
    check_problem(send(empty, "one", new("other")), 422, "idempotency-key-reused", "use a key of its own")
    check_problem(send(empty, "one", new("made"), path=f"{CLASSIFIERS}?x=1"), 422, "idempotency-key-reused")
    labels = {"labels": [{"external_id": "a", "label": "a"}]}
    check_problem(send(empty, "one", labels, path=f"{CLASSIFIERS}/made/labels"), 422, "idempotency-key-reused")
    assert [one["classifier"] for one in empty.get(CLASSIFIERS).json()["classifiers"]] == ["made"]


def test_names_are_of_one_caller(service: Service) -> None:
    body = {"labels": [{"external_id": "nobody", "label": "0"}]}
    refused = send(service, "one", body, path=f"{OWN}/labels")
    assert refused.status_code >= 400
    none = {"method": "venn-abers", "promise": "pointwise", "alpha": "0.2"}
    made = send(service, "one", none, path=f"{OWN}/calibrations", key=Scope.WRITE)
    assert made.status_code == 201, made.text
    other = send(service, "one", none, path=f"{OWN}/calibrations", key=Scope.ADMIN)
    assert other.json()["calibration"] > made.json()["calibration"]
    again = send(service, "one", none, path=f"{OWN}/calibrations", key=Scope.WRITE)
    assert again.json() == made.json(), "a calibration that was asked for again is not made again"


def test_a_refused_request_may_be_sent_again(empty: Service) -> None:
    check_problem(send(empty, "one", {**new("made"), "classes": ["a"]}), 422, "invalid-request")
    check_problem(send(empty, "one", {}), 422, "invalid-request")
    assert stored(empty) == 0
    assert send(empty, "one", new("made")).status_code == 201
    check_problem(send(empty, "one", {}, key=Scope.READ), 403, "forbidden")


@pytest.mark.parametrize("name", ["", " ", '"', '""', "a b", "é".encode(), "x" * 201])
def test_a_name_has_a_form(shared: Service, name: str | bytes) -> None:
    headers = {
        "Content-Type": "application/json",
        b"Idempotency-Key": name if isinstance(name, bytes) else name.encode(),
    }
    answer = shared.ask("POST", CLASSIFIERS, key=Scope.ADMIN, content=b"{}", headers=headers)
    check_problem(answer, 422, "invalid-request", "Idempotency-Key: expected one of 1 to 200")


def test_two_names_are_refused(shared: Service) -> None:
    authorization = ("Authorization", f"Bearer {shared.keys[Scope.ADMIN]}")
    headers = [authorization, ("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
    answer = shared.client.post(CLASSIFIERS, content=b"{}", headers=headers)
    check_problem(answer, 422, "invalid-request", "Idempotency-Key: expected one of")


def test_while_the_first_is_running_the_second_is_to_wait(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = threading.Event(), threading.Event()
    real = label

    def slow(*args: Any, **options: Any) -> Any:
        began.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return real(*args, **options)

    monkeypatch.setattr(exemplars, "label", slow)
    monkeypatch.setattr(idempotency, "LEASE", timedelta(seconds=3))
    with connect(service.runtime.engine) as connection:
        exemplar = connection.execute(text("SELECT external_id FROM exemplar LIMIT 1")).scalar_one()
    body = {"labels": [{"external_id": exemplar, "label": "0"}]}
    answers: list[Response] = []
    first = threading.Thread(target=lambda: answers.append(send(service, "one", body, path=f"{OWN}/labels")))
    first.start()
    assert began.wait(PATIENCE_SECONDS)
    for is_over in ("true", "now() > leased_until"):  # longer than its first lease, which it has extended
        wait_until(partial(value, service, f"SELECT {is_over} FROM idempotent_request"), "its first lease is over")
        refused = send(service, "one", body, path=f"{OWN}/labels")
        check_problem(refused, 409, "still-running", "send it again later")
        assert refused.headers["retry-after"] == str(RETRY_SECONDS)
    go_on.set()
    first.join()
    assert answers[0].status_code == 200, answers[0].text
    again = send(service, "one", body, path=f"{OWN}/labels")
    assert again.content == answers[0].content
    assert again.headers[header.REPLAYED] == "true"


def test_a_process_that_died_blocks_no_request_for_ever(empty: Service) -> None:
    key = int(empty.keys[Scope.ADMIN].split("_")[1])
    began = idempotency.begin(empty.runtime.engine, f"key {key}", "one", "POST /", kept_for=timedelta(hours=1))
    assert began is not None
    check_problem(send(empty, "one", new("made")), 409, "still-running")
    change(empty, "leased_until = now()")
    assert send(empty, "one", new("made")).status_code == 201
    late, _ = began
    idempotency.release(empty.runtime.engine, late)
    idempotency.record(empty.runtime.engine, late, KeptAnswer(b"0" * 32, 200, {}, b"late"), kept_for=timedelta(hours=1))
    assert send(empty, "one", new("made")).json()["classifier"] == "made", "the attempt that lost its lease is ignored"


def test_an_attempt_that_extends_its_lease_runs_until_that_ends(empty: Service) -> None:
    engine = empty.runtime.engine

    def begin(name: str) -> Attempt | None:
        began = idempotency.begin(engine, "key 1", name, "POST /", kept_for=timedelta(hours=1))
        return None if began is None else began[0]

    def leases() -> list[uuid.UUID]:
        with connect(engine) as connection:
            return list(connection.execute(text("SELECT attempt FROM idempotent_lease")).scalars())

    first = begin("one")
    assert first is not None
    idempotency.extend(engine, first)
    change(empty, "leased_until = now(), expires_at = now()")
    assert begin("one") is None
    assert begin("two") is not None
    assert stored(empty) == 2, "what runs is not swept away"
    with transaction(engine) as connection:
        connection.execute(text("UPDATE idempotent_lease SET leased_until = now()"))
    second = begin("one")
    assert second is not None
    assert second.id != first.id
    idempotency.extend(engine, first)
    idempotency.extend(engine, second)
    assert second.id in leases()
    idempotency.release(engine, second)
    assert leases() == [], "leases go with the request"
    idempotency.extend(engine, second)
    assert leases() == []


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
class TestOvertaken:
    """An attempt whose lease has ended keeps its answer while another one begins: the second waits for the first."""

    HOUR = timedelta(hours=1)
    ANSWER = KeptAnswer(b"0" * 32, 200, {}, b"late")

    @pytest.fixture
    def late(self, empty: Service) -> Attempt:
        began = self.begin(empty)
        assert began is not None
        change(empty, "leased_until = now()")
        return began[0]

    def begin(self, empty: Service) -> tuple[Attempt, KeptAnswer | None] | None:
        return idempotency.begin(empty.runtime.engine, "key 1", "one", "POST /", kept_for=self.HOUR)

    def record(self, effect: Connection, late: Attempt) -> bool:
        return idempotency.record_with_effect(effect, late, self.ANSWER, kept_for=self.HOUR)

    def await_lock(self, empty: Service) -> None:
        def waiting() -> int:
            with connect(empty.runtime.engine) as connection:
                found: int = connection.execute(text(WAITING)).scalar_one()
            return found

        wait_until(waiting, "the other waits")

    @pytest.mark.parametrize("is_stored", [True, False])
    def test_by_one_that_begins_while_the_answer_is_stored(
        self, empty: Service, late: Attempt, level: IsolationLevel, is_stored: bool
    ) -> None:
        with ThreadPoolExecutor(1) as threads, connect(empty.runtime.engine) as effect:
            effect.execution_options(isolation_level=level)
            assert self.record(effect, late)
            beginning = threads.submit(self.begin, empty)
            self.await_lock(empty)
            if is_stored:
                effect.commit()
            else:
                effect.rollback()
            began = beginning.result()
        assert began is not None
        assert began[1] == (self.ANSWER if is_stored else None)

    @pytest.mark.parametrize("has_begun", [True, False])
    def test_by_one_that_has_nearly_begun(
        self, empty: Service, late: Attempt, level: IsolationLevel, has_begun: bool
    ) -> None:
        other = Attempt(late.caller, late.name, late.route, uuid.uuid4())
        with (
            ThreadPoolExecutor(1) as threads,
            connect(empty.runtime.engine) as claiming,
            connect(empty.runtime.engine) as effect,
        ):
            effect.execution_options(isolation_level=level)
            effect.execute(text("SELECT count(*) FROM idempotent_request"))
            assert stored_idempotency.claim(claiming, other, lease=idempotency.LEASE, kept_for=self.HOUR)
            recording = threads.submit(self.record, effect, late)
            self.await_lock(empty)
            if has_begun:
                claiming.commit()
            else:
                claiming.rollback()
            assert recording.result() is not has_begun


def test_an_answer_is_kept_for_a_time(empty: Service) -> None:
    assert send(empty, "one", new("made")).status_code == 201
    hours = empty.runtime.settings.idempotency_hours
    with connect(empty.runtime.engine) as connection:
        kept = connection.execute(text("SELECT expires_at - leased_until FROM idempotent_request")).scalar_one()
    assert kept == timedelta(hours=hours)
    change(empty, "expires_at = now()")
    check_problem(send(empty, "one", new("made")), 409, "name-taken")
    for number in range(15):
        assert send(empty, f"more {number}".replace(" ", "-"), new(f"more {number}")).status_code == 201
    change(empty, "expires_at = now()")
    for number in range(2):
        assert send(empty, f"last-{number}", new(f"last {number}")).status_code == 201
    assert stored(empty) == 2, "each request sweeps away some that are kept no longer"


def test_a_fault_frees_the_name(empty: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from venn_admit.api.routes import classifiers

    for fault in (ValueError("a fault"), DatabaseError("gone")):
        with monkeypatch.context() as patch:
            patch.setattr(classifiers, "create", lambda *_, fault=fault, **__: (_ for _ in ()).throw(fault))
            assert send(empty, "one", new("made")).status_code in (500, 503)
    assert send(empty, "one", new("made")).status_code == 201


def test_a_body_that_is_not_used_is_part_of_the_request(service: Service) -> None:
    path = f"{OWN}/recalibrate"
    first = send(service, "one", {}, path=path)
    assert first.status_code == 200, first.text
    again = send(service, "one", {}, path=path)
    assert (again.content, again.headers[header.REPLAYED]) == (first.content, "true")
    check_problem(send(service, "one", [], path=path), 422, "idempotency-key-reused")
    for headers in ({}, {"Idempotency-Key": "one"}, {"Idempotency-Key": "two"}):
        large = service.ask("POST", path, key=Scope.ADMIN, content=bytes(MOST_UNUSED_BYTES + 1), headers=headers)
        check_problem(large, 413, "body-too-large", "expected no body")


def test_deciding_stores_nothing_and_takes_no_name(shared: Service) -> None:
    before = stored(shared)
    for _ in range(2):
        answer = send(shared, str(uuid.uuid4()), {"points": []}, path=f"{OWN}/decide")
        assert header.REPLAYED not in answer.headers
    assert stored(shared) == before
