"""Who may ask for what: every route, with keys of every scope, of another classifier, and none, bad and old ones.

The matrix is made from the routes themselves, so that a new route without a guard, or with another, shows here.
"""

from dataclasses import dataclass

import pytest
from sqlalchemy import text

from tests.api.service import Service, check_problem
from tests.cli.samples import NAME
from venn_admit.api.application import DOCUMENT, ROUTERS
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.flows.keys.keys import create, revoke
from venn_admit.http.guards.guard import GuardedRoute, guard_of
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction

OPEN = {"/health/live", "/health/ready"}
REFUSED = {401, 403}
# No worker is up here, without which these do nothing.
NEEDS_WORKER = {"/v1/classifiers/{classifier}/fit"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A route, and a request to it that its guard sees before anything else is checked."""

    method: str
    template: str
    scope: Scope | None
    every_classifier: bool
    remembers: bool

    @property
    def path(self) -> str:
        path = self.template.format(classifier=NAME, calibration=1, cascade="all", decision=1, job=1, setting=1)
        # The others need the classifier.
        return f"{path}?dry_run=true" if str(self) == "DELETE /v1/classifiers/{classifier}" else path

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def every_route() -> list[Asked]:
    """Return every route of the application."""
    found = []
    for route in (route for router in ROUTERS for route in router.routes):
        assert isinstance(route, GuardedRoute)
        guard = guard_of(route)
        given = (None, False, False) if guard is None else (guard.scope, guard.every_classifier, guard.remembers)
        found += [Asked(method, route.path, *given) for method in sorted(route.methods or ())]
    return found


ROUTES = every_route()
GUARDED = [asked for asked in ROUTES if asked.scope is not None]
each_route = pytest.mark.parametrize("asked", GUARDED, ids=str)


@pytest.fixture(scope="module")
def other(shared: Service) -> dict[Scope, str]:
    """Keys of every scope, for another classifier alone."""
    engine = shared.runtime.engine
    create_classifier(engine, "other", ("a", "b"), seed=0, dimension=2)
    return {scope: create(engine, f"other {scope}", scope=scope, classifier="other").text for scope in Scope}


def status(service: Service, asked: Asked, authorization: str | None) -> int:
    headers = {} if authorization is None else {"Authorization": authorization}
    return service.client.request(asked.method, asked.path, headers=headers).status_code


def test_these_are_all_routes(shared: Service) -> None:
    document = shared.client.get(DOCUMENT).json()
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert {(asked.method, asked.template) for asked in ROUTES} == told


def test_only_health_is_open() -> None:
    assert {asked.template for asked in ROUTES if asked.scope is None} == OPEN
    assert len(GUARDED) > 15


@each_route
def test_a_scope_opens_what_it_includes(shared: Service, asked: Asked) -> None:
    """The one that is needed does, and the one just below does not; which is below which, Scope.includes says alone."""
    assert asked.scope is not None
    found = status(shared, asked, f"Bearer {shared.keys[asked.scope]}")
    assert found not in REFUSED
    assert found < 500 or (found == 503 and asked.template in NEEDS_WORKER)
    for below in [scope for scope in Scope if not scope.includes(asked.scope)][-1:]:
        assert status(shared, asked, f"Bearer {shared.keys[below]}") == 403


@each_route
def test_a_key_opens_no_other_classifier(shared: Service, other: dict[Scope, str], asked: Asked) -> None:
    found = status(shared, asked, f"Bearer {other[Scope.ADMIN]}")
    lists_own = asked.template == "/v1/classifiers" and asked.method == "GET"
    assert found == (200 if lists_own else 403)


@each_route
def test_a_key_opens_its_own_classifier(shared: Service, asked: Asked) -> None:
    key = create(shared.runtime.engine, "own", scope=Scope.ADMIN, classifier=NAME).text
    found = status(shared, asked, f"Bearer {key}")
    assert (found == 403) == asked.every_classifier


@each_route
def test_without_a_key_nothing_is_told(shared: Service, asked: Asked) -> None:
    answer = shared.client.request(asked.method, asked.path)
    check_problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("remembers", [False, True])
def test_without_a_valid_key_nothing_is_told(shared: Service, *, remembers: bool) -> None:
    """One function decides for every route which keys are valid; remembers: it may be spared for one just seen."""
    asked = next(asked for asked in GUARDED if asked.remembers == remembers)
    engine, good = shared.runtime.engine, shared.keys[Scope.ADMIN]
    number = good.split("_")[1]
    expired, revoked = (create(engine, name, scope=Scope.ADMIN, days=1) for name in ("expired", "revoked"))
    revoke(engine, revoked.id)
    with transaction(engine) as connection:
        connection.execute(
            text("UPDATE api_key SET expires_at = now() - interval '1 second' WHERE id = :id"), {"id": expired.id}
        )
    refused = {
        "none": None,
        "empty": "",
        "no scheme": good,
        "another scheme": f"Basic {good}",
        "no secret": "Bearer ",
        "malformed": "Bearer va_1_xyz",
        "not ascii": "Bearer va_1_é",
        "unknown": f"Bearer va_{10**17}_{'0' * 64}",
        "another secret": f"Bearer va_{number}_{'0' * 64}",
        "expired": f"Bearer {expired.text}",
        "revoked": f"Bearer {revoked.text}",
    }
    for why, authorization in refused.items():
        headers = {} if authorization is None else {b"Authorization": authorization.encode()}
        answer = shared.client.request(asked.method, asked.path, headers=headers)
        problem = check_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer"), why
        for secret in (good, expired.text, revoked.text):
            assert secret not in answer.text
        if why in ("expired", "revoked"):
            assert why in problem.detail


def test_the_key_is_checked_before_the_body_is_read(shared: Service) -> None:
    for path in (asked.path for asked in GUARDED if asked.method == "POST"):
        answer = shared.client.post(path, content=b"{not json", headers={"Content-Type": "application/json"})
        check_problem(answer, 401, "unauthenticated")


def test_a_restricted_key_lists_its_own_classifier_alone(shared: Service, other: dict[Scope, str]) -> None:
    answer = shared.client.get("/v1/classifiers", headers={"Authorization": f"Bearer {other[Scope.READ]}"})
    assert [one["classifier"] for one in answer.json()["classifiers"]] == ["other"]
    assert {one["classifier"] for one in shared.get("/v1/classifiers").json()["classifiers"]} == {NAME, "other"}
