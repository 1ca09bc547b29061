"""What a page asks of its visitor: a session, the scope of its key, and of forms the token of the session."""

import hmac
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from venn_admit.api.routes.parts import runtime_of
from venn_admit.errors import VennAdmitError
from venn_admit.flows.keys.sessions import LIFETIME, caller_of, form_token
from venn_admit.http.guards.guard import Guard, guard_of, stores
from venn_admit.http.guards.ledger import Asked, Ledger
from venn_admit.http.guards.rates import Rates
from venn_admit.http.problems import Refused, answer_to_error, answer_to_invalid, forbidden
from venn_admit.web.failures import page_of_fault, page_of_problem
from venn_admit.web.forms import MOST_BYTES, MOST_BYTES_TO_SIGN_IN, read_form
from venn_admit.web.rendering import root_of

Answer = Callable[[Request], Coroutine[Any, Any, Response]]

COOKIE = "venn_admit_session"
FORM_FIELD, FORM_HEADER = "form_token", "x-form-token"
SIGN_IN = "/sign-in"


class _SignInNeeded(Exception):  # noqa: N818 - a visitor is no fault
    """Nobody has signed in."""


class PageRoute(APIRoute):
    """A route that answers with pages, whatever happens, and checks who asks before anything else is read."""

    def get_route_handler(self) -> Answer:
        """Return what answers a request."""
        answer = self._checked(super().get_route_handler())

        async def guarded(request: Request) -> Response:
            asked_of = request.path_params.get("classifier")
            try:
                return await answer(request)
            except _SignInNeeded:
                return _to_sign_in(request)
            except VennAdmitError as error:
                return page_of_problem(request, answer_to_error(error), classifier=asked_of)
            except Refused as refusal:
                return page_of_problem(request, refusal.answer())
            except RequestValidationError as error:
                if any(one["loc"] == ("path", "classifier") for one in error.errors()):
                    asked_of = None
                return page_of_problem(request, answer_to_invalid(error), classifier=asked_of)
            except (HTTPException, ClientDisconnect):
                raise
            except Exception:
                return page_of_fault(request)

        return guarded

    def _checked(self, answer: Answer) -> Answer:
        """Return what answers those who may ask, and tells the audit ledger if something is stored."""
        guard, is_stored = guard_of(self), stores(self)
        asked = Asked(self.name, f"{'/'.join(sorted(self.methods or ()))} {self.path}")

        async def checked(request: Request) -> Response:
            if guard is not None:
                await _admit(request, guard, asked, is_stored=is_stored)
            if request.method == "POST":
                await _check_form(request, has_session=guard is not None)
            if not is_stored:
                return await answer(request)
            ledger: Ledger = request.app.state.ledger
            return await ledger.noted(request, asked, partial(answer, request))

        return checked


def router() -> APIRouter:
    """Return a router of pages, which are not part of the interface for programs."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def remember(request: Request, answer: Response, token: str) -> None:
    """Have the browser show a session from now on; no script reads it, and no other site has it sent."""
    answer.set_cookie(
        COOKIE,
        token,
        max_age=int(LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
        path=root_of(request) or "/",
    )


def forget(request: Request, answer: Response) -> None:
    """Have the browser forget its session."""
    answer.delete_cookie(
        COOKIE, httponly=True, samesite="strict", secure=_is_encrypted(request), path=root_of(request) or "/"
    )


async def _admit(request: Request, guard: Guard, asked: Asked, *, is_stored: bool) -> None:
    """Put caller and session into the state of a request. Raises _SignInNeeded and Refused."""
    token = request.cookies.get(COOKIE)
    found = None if token is None else await run_in_threadpool(caller_of, runtime_of(request).engine, token)
    if found is None:
        raise _SignInNeeded
    request.state.caller, request.state.session = found, token
    rates: Rates = request.app.state.rates
    ledger: Ledger = request.app.state.ledger
    try:
        rates.check(request, found.identity)
        await guard.check(request, found)
    except Refused as refusal:
        await ledger.note_refusal(request, asked, refusal, stores=is_stored)
        raise


async def _check_form(request: Request, *, has_session: bool) -> None:
    """Refuse a form that another site sends."""
    form = await read_form(request, MOST_BYTES if has_session else MOST_BYTES_TO_SIGN_IN)
    if has_session:
        shown = request.headers.get(FORM_HEADER) or form.get(FORM_FIELD, "")
        is_ours = hmac.compare_digest(shown.encode(), form_token(request.state.session).encode())
    else:
        is_ours = True
    if not is_ours or not _is_from_here(request):
        raise forbidden("the form is not one of this session; reload the page and send it again")


def _is_from_here(request: Request) -> bool:
    """Whether the browser says that no other site sends the request, which it does also before anyone has signed in."""
    headers = request.headers
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    # Over plain HTTP, browsers name the origin alone; programs name none.
    origin, host = headers.get("origin"), headers.get("host")
    return origin in (None, f"http://{host}", f"https://{host}")


def _to_sign_in(request: Request) -> Response:
    wanted = request.url.path if request.method == "GET" else "/"
    if request.method == "GET" and request.url.query:
        wanted += f"?{request.url.query}"
    target = f"{SIGN_IN}?next={quote(wanted, safe='')}"
    if request.headers.get("hx-request"):  # a part of a page: the whole page goes to sign in
        return Response(status_code=401, headers={"hx-redirect": SIGN_IN})
    return RedirectResponse(target, 303)


def _is_encrypted(request: Request) -> bool:
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"
