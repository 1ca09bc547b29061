"""The keys of the service, for admins: making them, each shown once, and revoking them."""

from typing import Any

from fastapi import Path, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.models.common import LARGEST_KEY
from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.flows.data.glance import every_classifier
from venn_admit.flows.keys.keys import NewKey, create, list_keys, revoke
from venn_admit.http.guards.guard import needs
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import router
from venn_admit.web.forms import form_of, required
from venn_admit.web.rendering import page, runtime_of

routes = router()

# What became of a key is in the audit ledger by its number, in the transaction that changed it.
_ADMIN = [needs(Scope.ADMIN, every_classifier=True, stores=False)]


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
