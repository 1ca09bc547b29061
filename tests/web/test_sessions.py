"""Signing in and out, and what ends a session."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from tests.web.visitor import OWN, Visitor
from venn_admit.flows.keys.keys import create, revoke
from venn_admit.flows.keys.sessions import MOST_SESSIONS, begin, caller_of, form_token
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction
from venn_admit.web.visitors import COOKIE, FORM_FIELD, FORM_HEADER, SIGN_IN


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


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"Origin": "http://testserver"}, 303),
        ({"Origin": "https://testserver"}, 303),  # behind a proxy with TLS
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "http://testserver.elsewhere.example"}, 403),
        ({"Origin": "http://testserver:8470"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://testserver", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://testserver", "Sec-Fetch-Site": "same-site"}, 403),
        # Where a proxy names itself as the host, but browsers say more.
        ({"Origin": "https://public.example", "Sec-Fetch-Site": "same-origin"}, 303),
    ],
    ids=str,
)
def test_another_site_signs_nobody_in(shared: Visitor, headers: dict[str, str], status: int) -> None:
    """Whether or not the browser sends Sec-Fetch-Site, which it does not over plain HTTP."""
    shared.client.cookies.clear()
    answer = shared.client.post(SIGN_IN, data={"key": shared.keys[Scope.READ]}, headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (status, status == 303)
    shared.sign_in()
    token = form_token(shared.session or "")
    assert shared.client.post("/sign-out", data={FORM_FIELD: token}, headers=headers).status_code == status


def test_the_policy_on_referrers_lets_browsers_name_the_origin_of_a_form(shared: Visitor) -> None:
    assert shared.client.get(SIGN_IN).headers["referrer-policy"] == "same-origin"


def test_the_oldest_sessions_of_a_key_end_beyond_the_most(shared: Visitor) -> None:
    """However they are begun: one after the other, or many at a time."""
    engine = shared.runtime.engine
    key, other = (create(engine, name, scope=Scope.READ).text for name in ("many", "other"))
    kept = begin(engine, other)
    tokens = [begin(engine, key) for _ in range(MOST_SESSIONS + 2)]
    valid = [caller_of(engine, str(token)) is not None for token in tokens]
    assert valid == [False, False] + [True] * MOST_SESSIONS
    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(lambda _: begin(engine, key), range(MOST_SESSIONS + 20)))
    assert sum(caller_of(engine, str(token)) is not None for token in tokens) == MOST_SESSIONS
    with transaction(engine) as connection:
        counts = connection.execute(text("SELECT count(*) FROM page_session GROUP BY key_id")).scalars().all()
    assert max(counts) == MOST_SESSIONS
    assert caller_of(engine, str(kept)) is not None, "the sessions of other keys stay"


def test_a_session_opens_no_route_for_programs(shared: Visitor) -> None:
    shared.sign_in()
    assert shared.client.get("/v1/classifiers").status_code == 401


def test_a_key_opens_no_page_without_a_session(shared: Visitor) -> None:
    shared.client.cookies.clear()
    answer = shared.client.get("/", headers={"Authorization": f"Bearer {shared.keys[Scope.ADMIN]}"})
    assert answer.status_code == 303
