"""The pages of keys: signing in with one, signing out, and making and revoking keys."""

import re
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.routes.parts import runtime_of
from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.flows.data.catalogue import every_classifier
from venn_admit.flows.keys.keys import NewKey, Refusal, create, list_keys, revoke
from venn_admit.flows.keys.sessions import begin, end
from venn_admit.http.guards.guard import needs
from venn_admit.http.guards.ledger import Asked, Ledger
from venn_admit.http.paging import LARGEST_KEY
from venn_admit.http.problems import Refused
from venn_admit.store.access.keys import Scope
from venn_admit.web.forms import form_of, required
from venn_admit.web.rendering import page
from venn_admit.web.visitors import SIGN_IN, forget, remember, router
from venn_admit_client.codes import Problem

routes = router()
# What became of a key is in the audit ledger by its number, in the transaction that changed it.
_ADMIN = [needs(Scope.ADMIN, every_classifier=True, stores=False)]
_WHY = {
    Refusal.UNKNOWN: "This is no valid key. A key looks like va_7_ followed by 64 digits and letters.",
    Refusal.EXPIRED: "This key has expired. Use another.",
    Refusal.REVOKED: "This key was revoked. Use another.",
}


@routes.get("/keys", dependencies=_ADMIN)
def get_keys(request: Request) -> Response:
    """List all keys, and offer to make one."""
    return _keys(request)


@routes.post("/keys", dependencies=_ADMIN)
async def post_key(request: Request) -> Response:
    """Make a key, and show it this once."""
    form = form_of(request)
    engine = runtime_of(request).engine

    def make() -> NewKey:
        days = form.get("days", "").strip()
        if days and not (days.isascii() and days.isdigit() and len(days) < 10):
            raise InvalidInputError(f"days: expected a number of days, or nothing, got {days!a}")
        return create(
            engine,
            required(form, "name"),
            scope=required(form, "scope"),
            classifier=form.get("classifier") or None,
            days=int(days) if days else None,
            by=request.state.caller,
        )

    try:
        made = await run_in_threadpool(make)
    except VennAdmitError as error:
        return await run_in_threadpool(_keys, request, status=422, refusal=str(error), form=form)
    return await run_in_threadpool(_keys, request, status=201, made=made)


@routes.post("/keys/{key}/revoke", dependencies=_ADMIN)
def post_revoke(request: Request, key: int = Path(ge=1, le=LARGEST_KEY)) -> Response:
    """Refuse a key from now on, and end its sessions."""
    revoke(runtime_of(request).engine, key, by=request.state.caller)
    return RedirectResponse("/keys", 303)


def _keys(request: Request, *, status: int = 200, **shown: Any) -> Response:
    engine = runtime_of(request).engine
    return page(
        request,
        "keys",
        status=status,
        title="Keys",
        rows=list_keys(engine),
        scopes=list(Scope),
        classifiers=[one.name for one in every_classifier(engine) if one.is_current],
        **{"made": None, "refusal": None, "form": {}, **shown},
    )


@routes.get(SIGN_IN)
def get_sign_in(request: Request, wanted: Annotated[str, Query(alias="next", max_length=2000)] = "/") -> Response:
    """Ask for a key."""
    return page(request, "sign_in", title="Sign in", wanted=_own_place(wanted), refusal=None)


@routes.post(SIGN_IN)
async def post_sign_in(request: Request) -> Response:
    """Begin a session."""
    form = form_of(request)
    wanted = _own_place(form.get("next", "/"))
    found = await run_in_threadpool(begin, runtime_of(request).engine, form.get("key", "").strip())
    if isinstance(found, Refusal):
        ledger: Ledger = request.app.state.ledger
        refusal = Refused(401, Problem.UNAUTHENTICATED, _WHY[found])
        await ledger.note_refusal(request, Asked("sign_in", f"POST {SIGN_IN}"), refusal, stores=False)
        return page(request, "sign_in", status=401, title="Sign in", wanted=wanted, refusal=_WHY[found])
    answer = RedirectResponse(wanted, 303)
    remember(request, answer, found)
    return answer


@routes.post("/sign-out", dependencies=[needs(Scope.READ)])
def post_sign_out(request: Request) -> Response:
    """End the session."""
    end(runtime_of(request).engine, request.state.session)
    answer = RedirectResponse(SIGN_IN, 303)
    forget(request, answer)
    return answer


def _own_place(wanted: str) -> str:
    """Return where to go after signing in, which is a page of this service and nowhere else.

    >>> [_own_place(wanted) for wanted in ("/keys", "//elsewhere.example", "https://elsewhere.example")]
    ['/keys', '/', '/']
    """
    # Browsers read a backslash as a slash.
    is_own = re.match(r"/(?![/\\])", wanted) is not None and wanted.isprintable()
    return wanted if is_own else "/"
