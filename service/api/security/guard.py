"""What a route asks of the key that it is shown; it is checked before anything else of a request is read."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Depends, Request, Response, Security, params
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from venn_admit.service.api.limits import check_nesting
from venn_admit.service.api.problems import Problem, Refused
from venn_admit.service.flows.access.keys import Caller, Refusal, authenticate
from venn_admit.service.store.access.keys import Scope

_SCHEME = HTTPBearer(
    scheme_name="key",
    bearerFormat="va_NUMBER_SECRET",
    description="A key, made by `venn-admit key create`.",
    auto_error=False,
)
_WHY = {
    Refusal.UNKNOWN: "expected a valid key in the header Authorization: Bearer KEY, got another",
    Refusal.EXPIRED: "the key has expired; use another",
    Refusal.REVOKED: "the key was revoked; use another",
}


class Guard:
    """Lets a request through if its key has a scope, and is for the classifier that the path names.

    Attributes:
        scope: The least scope that is needed.
        every_classifier: Whether the key must be for all classifiers, because the route is about none in particular.
    """

    def __init__(self, scope: Scope, *, every_classifier: bool = False) -> None:
        self.scope = scope
        self.every_classifier = every_classifier

    def __call__(
        self,
        request: Request,
        _: HTTPAuthorizationCredentials | None = Security(_SCHEME),  # noqa: B008 - as FastAPI has it, for the document
    ) -> Caller:
        """Return whose key it is, for a route that depends on that; it was checked before."""
        caller: Caller = request.state.caller
        return caller

    def check(self, request: Request) -> Caller:
        """Return whose key a request shows. Raises Refused."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise _unauthenticated("expected a key in the header Authorization: Bearer KEY, got none", known=False)
        found = authenticate(request.app.state.runtime.engine, text.strip())
        if isinstance(found, Refusal):
            raise _unauthenticated(_WHY[found], known=True)
        self.check_caller(request, found)
        return found

    def check_caller(self, request: Request, found: Caller) -> None:
        """Raise Refused unless a valid key may be used for this."""
        if not found.scope.includes(self.scope):
            raise _forbidden(f"this needs a key with scope {self.scope}, got one with scope {found.scope}")
        named = request.path_params.get("classifier")
        if found.classifier is not None and (self.every_classifier or named not in (None, found.classifier)):
            raise _forbidden(f"the key is for classifier {found.classifier!r} alone; use another")


def needs(scope: Scope, *, every_classifier: bool = False) -> params.Depends:
    """Return what a route lists among its dependencies, to be reached by keys of a scope alone."""
    depends: params.Depends = Depends(Guard(scope, every_classifier=every_classifier))
    return depends


def guard_of(route: APIRoute) -> Guard | None:
    """Return what guards a route; None if everyone may ask for it."""
    found = [one.dependency for one in route.dependencies if isinstance(one.dependency, Guard)]
    assert len(found) < 2, f"{route.path} has two guards"
    return found[0] if found else None


class GuardedRoute(APIRoute):
    """A route that checks the key before the body is read, and how deep the body is nested before it is parsed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        guard = guard_of(self)

        async def guarded(request: Request) -> Response:
            if guard is not None:
                request.state.caller = await run_in_threadpool(guard.check, request)
            if self.body_field is not None:
                check_nesting(await request.body())
            return await answer(request)

        return guarded


def _unauthenticated(detail: str, *, known: bool) -> Refused:
    challenge = 'Bearer error="invalid_token"' if known else "Bearer"
    return Refused(401, Problem.UNAUTHENTICATED, detail, headers={"WWW-Authenticate": challenge})


def _forbidden(detail: str) -> Refused:
    return Refused(403, Problem.FORBIDDEN, detail)
