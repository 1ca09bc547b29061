"""Signing in and out, and what ends a session."""

import pytest
from sqlalchemy import text

from tests.web.visitor import OWN, Visitor
from venn_admit.service.flows.access.keys import create, revoke
from venn_admit.service.store.access.keys import Scope
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.web.access import COOKIE, FORM_HEADER, SIGN_IN


def is_signed_in(visitor: Visitor) -> bool:
    answer = visitor.client.get("/")
    assert answer.status_code in (200, 303)
    return answer.status_code == 200


def test_without_a_session_every_page_asks_for_a_key(shared: Visitor) -> None:
    shared.client.cookies.clear()
    answer = shared.client.get(f"{OWN}?calibration=1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fclassifiers%2Fcolours%3Fcalibration%3D1"
    part = shared.client.get("/", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, SIGN_IN)


def test_a_key_begins_a_session_that_scripts_and_other_sites_cannot_use(shared: Visitor) -> None:
    answer = shared.sign_in(Scope.READ)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie
    assert is_signed_in(shared)
    text_of_key = shared.keys[Scope.READ]
    assert text_of_key not in cookie
    assert text_of_key not in shared.open("/")


def test_behind_tls_the_cookie_is_secure(shared: Visitor) -> None:
    shared.client.cookies.clear()
    answer = shared.client.post(SIGN_IN, data={"key": shared.keys[Scope.READ]}, headers={"X-Forwarded-Proto": "https"})
    assert "secure" in answer.headers["set-cookie"].lower()


def test_what_is_no_valid_key_is_told_why(shared: Visitor) -> None:
    engine = shared.runtime.engine
    revoked = create(engine, "revoked", scope=Scope.ADMIN)
    revoke(engine, revoked.id)
    for key, why in (("va_1_xyz", "no valid key"), ("", "no valid key"), (revoked.text, "was revoked")):
        answer = shared.sign_in(key=key)
        assert answer.status_code == 401
        assert why in answer.text
        assert "set-cookie" not in answer.headers
    assert revoked.text not in answer.text


def test_a_visitor_returns_to_the_page_that_was_asked_for(shared: Visitor) -> None:
    key = shared.keys[Scope.READ]
    for wanted, target in ((OWN, OWN), ("//elsewhere.example", "/"), ("https://elsewhere.example", "/")):
        shared.client.cookies.clear()
        assert shared.client.post(SIGN_IN, data={"key": key, "next": wanted}).headers["location"] == target


def test_signing_out_ends_the_session_for_everyone_who_has_it(shared: Visitor) -> None:
    shared.sign_in()
    session = shared.session
    assert session is not None
    assert shared.send("/sign-out").headers["location"] == SIGN_IN
    assert shared.session is None
    shared.client.cookies.set(COOKIE, session)
    assert not is_signed_in(shared)


def test_a_revoked_key_ends_its_sessions_at_once(shared: Visitor) -> None:
    key = create(shared.runtime.engine, "short", scope=Scope.READ)
    shared.sign_in(key=key.text)
    assert is_signed_in(shared)
    revoke(shared.runtime.engine, key.id)
    assert not is_signed_in(shared)


@pytest.mark.parametrize("table", ["page_session", "api_key"])
def test_a_session_ends_when_it_or_its_key_expires(shared: Visitor, table: str) -> None:
    key = create(shared.runtime.engine, "short", scope=Scope.READ, days=1)
    shared.sign_in(key=key.text)
    assert is_signed_in(shared)
    column = "key_id" if table == "page_session" else "id"
    with transaction(shared.runtime.engine) as connection:
        changed = connection.execute(
            text(f"UPDATE {table} SET expires_at = now() - interval '1 second' WHERE {column} = :id"), {"id": key.id}
        )
    assert changed.rowcount == 1
    assert not is_signed_in(shared)


def test_what_the_browser_shows_is_not_stored(shared: Visitor) -> None:
    shared.sign_in()
    assert shared.session is not None
    with transaction(shared.runtime.engine) as connection:
        stored = connection.execute(text("SELECT digest FROM page_session")).scalars().all()
    assert stored
    assert bytes.fromhex(shared.session) not in [bytes(digest) for digest in stored]


@pytest.mark.parametrize("cookie", ["", "x", "0" * 64, "é" * 64])
def test_an_invented_session_is_none(shared: Visitor, cookie: str) -> None:
    shared.client.cookies.clear()
    answer = shared.client.get("/", headers={b"Cookie": f"{COOKIE}={cookie}".encode()})
    assert answer.status_code == 303


def test_a_form_of_another_site_is_refused(shared: Visitor) -> None:
    shared.sign_in()
    for options in (
        {"data": {"other": "1"}},
        {"data": {"form_token": "0" * 64}},
        {"data": {"other": "1"}, "headers": {FORM_HEADER: "é".encode()}},
    ):
        assert shared.client.post("/sign-out", **options).status_code == 403
    assert is_signed_in(shared)
    assert shared.client.post(SIGN_IN, data={"key": "x"}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert shared.client.post("/sign-out", json={}).status_code == 422
    assert is_signed_in(shared)


def test_a_session_opens_no_route_for_programs(shared: Visitor) -> None:
    shared.sign_in()
    assert shared.client.get("/v1/classifiers").status_code == 401


def test_a_key_opens_no_page_without_a_session(shared: Visitor) -> None:
    shared.client.cookies.clear()
    answer = shared.client.get("/", headers={"Authorization": f"Bearer {shared.keys[Scope.ADMIN]}"})
    assert answer.status_code == 303
