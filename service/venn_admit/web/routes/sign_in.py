"""Signing in with a key, and out again."""

import re
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.flows.keys.keys import Refusal
from venn_admit.flows.keys.sessions import begin, end
from venn_admit.http.guards.guard import needs
from venn_admit.http.guards.ledger import Asked, Ledger
from venn_admit.http.problems import Problem, Refused
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import SIGN_IN, forget, remember, router
from venn_admit.web.forms import form_of
from venn_admit.web.rendering import page, runtime_of

routes = router()

_WHY = {
    Refusal.UNKNOWN: "This is no valid key. A key looks like va_7_ followed by 64 digits and letters.",
    Refusal.EXPIRED: "This key has expired. Use another.",
    Refusal.REVOKED: "This key was revoked. Use another.",
}


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
