"""The audit ledger: who did what, and who was refused."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from tests.api.service import OWN, Service, check_problem
from tests.api.test_idempotency import CLASSIFIERS, new, send
from tests.cli.samples import NAME
from venn_admit.api.application import create_application
from venn_admit.errors import DatabaseError
from venn_admit.flows.keys.keys import create, revoke
from venn_admit.http.guards import ledger
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction

AUDIT = "/v1/audit"


def events(service: Service, **params: Any) -> list[dict[str, Any]]:
    answer = service.get(AUDIT, key=Scope.ADMIN, params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["events"]
    return found


def number(service: Service, scope: Scope) -> int:
    return int(service.keys[scope].split("_")[1])


def test_each_request_that_stores_something_is_noted(empty: Service) -> None:
    made = send(empty, "one", new("made"))
    (event, *_) = events(empty)
    assert {**event, "event": 0, "created_at": ""} == {
        "event": 0,
        "created_at": "",
        "origin": "http",
        "key": number(empty, Scope.ADMIN),
        "key_name": "admin",
        "subject": None,
        "action": "create_classifier",
        "route": "POST /v1/classifiers",
        "target": None,
        "status": 201,
        "is_replay": False,
        "request_id": made.headers["x-request-id"],
        "client_address": None,
    }
    send(empty, "one", new("made"))
    assert (events(empty)[0]["status"], events(empty)[0]["is_replay"]) == (201, True)
    send(empty, "two", new("made"))
    assert (events(empty)[0]["status"], events(empty)[0]["is_replay"]) == (409, False)
    send(empty, "three", {})
    assert events(empty)[0]["status"] == 422
    before = len(events(empty))
    empty.get(CLASSIFIERS)
    assert len(events(empty)) == before, "reading is not noted"


def test_the_view_shows_what_the_route_lists_and_no_secret(empty: Service) -> None:
    send(empty, "one", new("made"))
    send(empty, "one", {})
    empty.client.get(CLASSIFIERS, headers={"Authorization": "Bearer va_1_" + "0" * 64})
    listed = events(empty)
    with transaction(empty.runtime.engine) as connection:
        shown = connection.execute(text("SELECT * FROM report.audit_v1 ORDER BY event DESC")).mappings().all()
    assert [row["event"] for row in shown] == [event["event"] for event in listed]
    for row, event in zip(shown, listed, strict=True):
        for name in set(event) - {"created_at", "client_address"}:
            assert row[name] == event[name], name
        assert row["is_done"] == (event["status"] is None or event["status"] < 400)
        assert row["key_scope"] == (None if event["key"] is None else row["key_name"])
    assert {"client_address", "digest"}.isdisjoint(shown[0])
    written = str(shown)
    assert not any(key in written or key.rpartition("_")[2] in written for key in empty.keys.values())


def test_what_a_request_names_is_noted_and_what_it_holds_is_not(shared: Service) -> None:
    labels = {"labels": [{"external_id": "a secret", "label": "a secret"}]}
    shared.post(f"{OWN}/labels", labels)
    shared.post(f"{CLASSIFIERS}/a%00b/labels", labels)
    second, first, *_ = events(shared)
    assert (first["target"], first["status"], first["action"]) == (NAME, 422, "record_labels")
    assert (second["target"], second["status"]) == ("a\\x00b", 422)
    assert "secret" not in str([first, second])


def test_refused_keys_are_noted_within_bounds(empty: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REFUSALS_PER_MINUTE", 3)
    client = type(empty.client)(create_application(empty.runtime), raise_server_exceptions=False)
    before = len(events(empty))
    secret = f"va_1_{'0' * 64}"
    for _ in range(10):
        answer = client.get(CLASSIFIERS, headers={"Authorization": f"Bearer {secret}"})
        check_problem(answer, 401, "unauthenticated")
    noted = events(empty)[:-before]
    assert len(noted) == 3
    assert {(one["action"], one["status"], one["key"], one["route"]) for one in noted} == {
        ("authenticate", 401, None, "GET /v1/classifiers")
    }
    assert secret not in str(noted)


def test_a_scope_that_does_not_suffice_is_noted_for_writing_alone(empty: Service) -> None:
    before = len(events(empty))
    check_problem(empty.get(AUDIT), 403, "forbidden")
    assert len(events(empty)) == before
    check_problem(send(empty, "one", new("made"), key=Scope.WRITE), 403, "forbidden")
    assert (events(empty)[0]["status"], events(empty)[0]["key"]) == (403, number(empty, Scope.WRITE))


def test_no_key_can_fill_the_disk_with_refusals(empty: Service) -> None:
    settings = replace(empty.runtime.settings, requests_per_minute=1, requests_burst=2)
    app = create_application(replace(empty.runtime, settings=settings))
    client = type(empty.client)(app, raise_server_exceptions=False)
    before = len(events(empty))
    key = {"Authorization": f"Bearer {empty.keys[Scope.READ]}"}
    assert [client.post(CLASSIFIERS, headers=key).status_code for _ in range(5)] == [403, 403, 429, 429, 429]
    assert len(events(empty)) == before + 2


def test_changes_of_keys_are_noted(empty: Service) -> None:
    made = create(empty.runtime.engine, "made", scope=Scope.READ)
    revoke(empty.runtime.engine, made.id)
    noted = [(one["origin"], one["action"], one["target"], one["status"]) for one in events(empty)[:2]]
    assert noted == [
        ("command line", "revoke_key", f"key {made.id}", None),
        ("command line", "create_key", f"key {made.id}", None),
    ]
    assert made.text not in str(events(empty))


def test_pages(empty: Service) -> None:
    whole = events(empty)
    first = empty.get(AUDIT, key=Scope.ADMIN, params={"limit": 2}).json()
    rest = events(empty, cursor=first["next_cursor"])
    assert first["events"] + rest == whole
    assert len(whole) == 4, "one for each key"


def test_addresses_are_noted_if_that_is_asked_for(empty: Service) -> None:
    settings = replace(empty.runtime.settings, audit_client_addresses=True)
    app = create_application(replace(empty.runtime, settings=settings))
    client = type(empty.client)(app, raise_server_exceptions=False, client=("192.0.2.7", 50000))
    client.post(CLASSIFIERS)
    assert events(empty)[0]["client_address"] == "192.0.2.7"


def test_nothing_is_answered_as_done_that_is_not_in_the_ledger(empty: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "record", fail)
        check_problem(send(empty, "one", new("made")), 503, "database")
        check_problem(send(empty, "two", {}), 422, "invalid-request")
        check_problem(empty.client.get(CLASSIFIERS), 401, "unauthenticated")
    again = send(empty, "one", new("made"))
    assert again.status_code == 201
    assert (events(empty)[0]["status"], events(empty)[0]["is_replay"]) == (201, True)
