"""Which page a key opens: every route, with keys of every scope and of another classifier.

The matrix is made from the routes themselves, so that a new page without a guard, or with another, shows here.
"""

import re
from dataclasses import dataclass

import pytest
from fastapi.routing import APIRoute

from tests.cli.samples import NAME
from tests.web.visitor import Visitor
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.flows.keys.keys import create
from venn_admit.http.guards.guard import guard_of
from venn_admit.store.access.keys import Scope
from venn_admit.web.site import ROUTERS
from venn_admit.web.visitors import PageRoute

OPEN = {"/static/{name}", "/sign-in", "/docs"}
# These would end the session of the test, or ask for what takes long; their guard is that of the others.
PLACES = {"classifier": NAME, "calibration": "1", "row": "0", "column": "0", "decision": "1", "key": "999999"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A page, and a request for it."""

    method: str
    template: str
    scope: Scope | None
    every_classifier: bool

    @property
    def path(self) -> str:
        return re.sub(r"{(\w+)}", lambda found: PLACES.get(found[1], "x"), self.template)

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def every_page() -> list[Asked]:
    found = []
    for route in (route for router in ROUTERS for route in router.routes):
        assert isinstance(route, APIRoute)
        assert isinstance(route, PageRoute), route.path
        guard = guard_of(route)
        scope, every = (None, False) if guard is None else (guard.scope, guard.every_classifier)
        found += [Asked(method, route.path, scope, every) for method in sorted(route.methods or ())]
    return found


GUARDED = [asked for asked in every_page() if asked.scope is not None]
each_page = pytest.mark.parametrize("asked", GUARDED, ids=str)


@pytest.fixture(scope="module")
def other(shared: Visitor) -> str:
    """A key for everything of another classifier."""
    create_classifier(shared.runtime.engine, "elsewhere", ("a", "b"), seed=0, dimension=2)
    return create(shared.runtime.engine, "elsewhere", scope=Scope.ADMIN, classifier="elsewhere").text


def status(visitor: Visitor, asked: Asked) -> int:
    if asked.method == "POST":
        return visitor.send(asked.path).status_code
    return visitor.client.get(asked.path).status_code


def test_only_assets_signing_in_and_the_interface_are_open() -> None:
    assert {asked.template for asked in every_page() if asked.scope is None} == OPEN
    assert len(GUARDED) > 12


@each_page
def test_a_scope_opens_what_it_includes(shared: Visitor, asked: Asked) -> None:
    """The one that is needed does, and the one just below does not; which is below which, Scope.includes says alone."""
    assert asked.scope is not None
    below = [scope for scope in Scope if not scope.includes(asked.scope)][-1:]
    for scope in (asked.scope, *below):
        shared.sign_in(scope)
        found = status(shared, asked)
        assert (found == 403) == (scope in below), (scope, found)
        assert found < 500


@each_page
def test_a_key_of_another_classifier_opens_nothing_of_this_one(shared: Visitor, other: str, asked: Asked) -> None:
    shared.sign_in(key=other)
    is_about_this = asked.every_classifier or "{classifier}" in asked.template
    assert (status(shared, asked) == 403) == is_about_this


@each_page
def test_without_a_session_nothing_is_told(shared: Visitor, asked: Asked) -> None:
    shared.client.cookies.clear()
    answer = shared.client.request(asked.method, asked.path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=")


@pytest.mark.parametrize("asked", [asked for asked in GUARDED if asked.method == "POST"], ids=str)
def test_no_form_is_taken_without_the_token_of_the_session(shared: Visitor, asked: Asked) -> None:
    shared.sign_in()
    assert shared.client.post(asked.path, data={"other": "1"}).status_code == 403
