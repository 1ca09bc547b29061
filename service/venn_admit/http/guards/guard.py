"""What key a route needs, which is checked before anything else of a request is read, and documented."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request, Response, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from venn_admit.flows.keys.keys import KEY_PREFIX, Caller, Refusal, authenticate, is_for
from venn_admit.flows.keys.sessions import caller_of
from venn_admit.http.bodies import JsonRequest
from venn_admit.http.guards.idempotency import LONGEST_KEY, answer_once
from venn_admit.http.guards.ledger import Asked, Ledger
from venn_admit.http.guards.rates import Rates
from venn_admit.http.guards.recent_keys import RecentKeys
from venn_admit.http.limits import skip_unused
from venn_admit.http.problems import Refused, forbidden, unauthenticated
from venn_admit.http.threads import FOR_KEYS
from venn_admit.http.uploads import skip_file, takes_file
from venn_admit.store.access.keys import Scope

if TYPE_CHECKING:
    from venn_admit.http.guards.tokens import Tokens

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
SCHEME = "key"
_SCHEME = {
    "type": "http",
    "description": "A key, made by `venn-admit key create`, or a token of the issuer that the settings name.",
    "scheme": "bearer",
    "bearerFormat": "va_NUMBER_SECRET",
}
_WHY = {
    Refusal.UNKNOWN: "expected a valid key in the header Authorization: Bearer KEY, got another",
    Refusal.EXPIRED: "the key has expired; use another",
    Refusal.REVOKED: "the key was revoked; use another",
}


@dataclass(eq=False)
class Guard:
    """Lets a request through if its key has a scope, and is for the classifier that the path names.

    Attributes:
        scope: The least scope that is needed.
        every_classifier: Whether the key must be for all classifiers, because the route is about none in particular.
        stores: Whether a request stores something, unless its method only reads.
        decides: Whether requests count among those that decide, of which a key may send more.
        remembers: Whether a key that was looked up within the last second is not looked up again before the body is
            read. The route sees for itself that it is still valid, by `remembered_key` or `look_up_again`, before it
            answers. It takes a body and parts of its path, and answers without the framework.
    """

    scope: Scope
    _: KW_ONLY
    every_classifier: bool = False
    stores: bool = True
    decides: bool = False
    remembers: bool = False
    _keys: RecentKeys = field(default_factory=RecentKeys, init=False)

    async def __call__(self) -> None:
        """Do nothing: the route has checked the key before its dependencies are asked."""

    async def caller(self, request: Request) -> Caller:
        """Return whose key or token a request shows, and note whether it was looked up just now. Raises Refused."""
        known = self._keys.get(request) if self.remembers else None
        request.state.is_remembered = known is not None
        if known is not None:
            return known
        found = await FOR_KEYS.run(_caller, request)
        if self.remembers and found.key_id is not None:
            self._keys.add(request, found)
        return found

    async def check(self, request: Request, caller: Caller) -> None:
        """Raise Refused unless a caller may ask for the route."""
        if not caller.scope.includes(self.scope):
            raise forbidden(f"this needs a key with scope {self.scope}, got one with scope {caller.scope}")
        named = request.path_params.get("classifier")
        if caller.classifier is None or (named in (None, caller.classifier) and not self.every_classifier):
            return
        # It may be a generation of the classifier that the key is for.
        engine = request.app.state.runtime.engine
        if self.every_classifier or named is None or not await FOR_KEYS.run(is_for, engine, caller, named):
            raise forbidden(f"the key is for classifier {caller.classifier!r} alone; use another")


def _caller(request: Request) -> Caller:
    """Return whose key or token a request shows. Raises Refused."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    text = text.strip()
    if kind.lower() != "bearer" or not text:
        raise unauthenticated("expected a key in the header Authorization: Bearer KEY, got none", known=False)
    tokens: Tokens | None = request.app.state.tokens
    if tokens is not None and not text.startswith(KEY_PREFIX):
        return tokens.caller(text)
    found = authenticate(request.app.state.runtime.engine, text)
    if isinstance(found, Refusal):
        raise unauthenticated(_WHY[found])
    return found


def remembered_key(request: Request) -> int | None:
    """Return the number of the key of a request if it was looked up for an earlier one alone; None for any other."""
    return request.state.caller.key_id if request.state.is_remembered else None


async def look_up_again(request: Request) -> None:
    """Look the key of a request up if that was done for an earlier one alone. Raises Refused."""
    if request.state.is_remembered:
        request.state.caller = None  # so that a refusal is noted as that of nobody
        request.state.caller = await FOR_KEYS.run(_caller, request)


def is_still_accepted(request: Request) -> bool:
    """Whether the key, token or session that a request has shown is still accepted.

    Raises:
        DatabaseError: The database does not say.
    """
    session: str | None = getattr(request.state, "session", None)
    if session is not None:
        return caller_of(request.app.state.runtime.engine, session) is not None
    try:
        _caller(request)
    except Refused as refusal:
        return refusal.status >= 500  # the issuer does not say
    return True


def needs(
    scope: Scope, *, every_classifier: bool = False, stores: bool = True, decides: bool = False, remembers: bool = False
) -> params.Depends:
    """Return what a route lists among its dependencies, to be reached by keys of a scope alone."""
    guard = Guard(scope, every_classifier=every_classifier, stores=stores, decides=decides, remembers=remembers)
    depends: params.Depends = Depends(guard)
    return depends


def guard_of(route: APIRoute) -> Guard | None:
    """Return what guards a route; None if everyone may ask for it."""
    found = [one.dependency for one in route.dependencies if isinstance(one.dependency, Guard)]
    assert len(found) < 2, f"{route.path} has two guards"
    return found[0] if found else None


def stores(route: APIRoute) -> bool:
    """Whether a request for this route stores something."""
    guard = guard_of(route)
    return guard is not None and guard.stores and not _READING.issuperset(route.methods or ())


def _query_names(route: APIRoute) -> Iterator[str]:
    """The names of the parameters that may be in the query of a request."""
    for part in route.dependant.query_params:
        kind = part.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from kind.model_fields
        else:
            yield part.alias


def _require_known(request: Request, known: frozenset[str] | None) -> None:
    """Refuse a parameter that a route does not know: what a misspelled one asks for would not be done. None: any."""
    unknown = set() if known is None else request.query_params.keys() - known
    if unknown:
        said = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
        raise RequestValidationError([{**said, "loc": ("query", name[:100])} for name in sorted(unknown)])


class GuardedRoute(APIRoute):
    """A route that checks the key before the body is read, and the body before it is parsed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        guard, named = guard_of(self), f"{'/'.join(sorted(self.methods or ()))} {self.path}"
        may_bring_unused = not (self.body_field or takes_file(self) or _READING.issuperset(self.methods or ()))
        remembers = guard is not None and guard.remembers
        known = None if guard is None else frozenset(_query_names(self))

        async def checked(request: Request) -> Response:
            _require_known(request, known)
            if may_bring_unused:
                await skip_unused(request)
            if self.body_field is None:
                return await answer(request)
            asked = JsonRequest(request.scope, request.receive)
            await asked.read()
            values = self._values(asked) if remembers else None
            return await (answer(asked) if values is None else self.endpoint(request=asked, **values))

        async def guarded(request: Request) -> Response:
            if guard is None:
                return await checked(request)
            ledger: Ledger = request.app.state.ledger
            rates: Rates = request.app.state.rates
            asked = Asked(self.name, named)
            try:
                caller = request.state.caller = await guard.caller(request)
                rates.check(request, caller.identity, decides=guard.decides)
                await guard.check(request, caller)
                if guard.remembers:
                    return await checked(request)
            except Refused as refusal:
                await ledger.note_refusal(request, asked, refusal, stores=stores(self))
                raise
            if not stores(self):
                return await checked(request)

            async def once() -> Response:
                return await answer_once(request, named, caller.identity, checked, self._skip)

            return await ledger.noted(request, asked, once)

        return guarded

    def _values(self, request: JsonRequest) -> dict[str, Any] | None:
        """Return what the endpoint takes of a request; None if it is invalid, of which the framework says more."""
        values, given = dict[str, Any](), self.dependant
        asked = [(part, request.path_params[part.alias]) for part in given.path_params]
        asked += [(part, request.parsed) for part in given.body_params]
        for part, value in asked:
            values[part.name], errors = part.validate(value)
            if errors:
                return None
        return values

    async def _skip(self, request: Request) -> None:
        """Read a body that was read before, within the same limits."""
        if takes_file(self):
            await skip_file(request, request.app.state.runtime.settings)
        elif self.body_field is None:
            await skip_unused(request)
        else:
            async for _ in request.stream():
                pass


IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name for this request, such as a random UUID: if it is sent again, it is answered again, and "
    "nothing is done twice.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_KEY + 2,
        "pattern": rf'^("[!#-~]{{1,{LONGEST_KEY}}}"|[!#-~]{{1,{LONGEST_KEY}}})$',
        "title": "Idempotency-Key",
        "examples": ["5e1c7f0a-6f2e-4a9b-9f0d-1a2b3c4d5e6f"],
    },
}


def describe_guards(document: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    """Add to a document what the guards of its routes read, and the scope that each needs, as a role of the key."""
    document["components"]["securitySchemes"] = {SCHEME: _SCHEME}
    for route in (route for router in routers for route in router.routes):
        assert isinstance(route, GuardedRoute)
        guard = guard_of(route)
        for method in route.methods or ():
            described = document["paths"][route.path][method.lower()]
            if guard is not None:
                described["security"] = [{SCHEME: [str(guard.scope)]}]
            if stores(route):
                described.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
