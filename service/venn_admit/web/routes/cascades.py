"""The pages of cascades: all of them, and one with its stages, its promise and its certificates."""

from collections.abc import Mapping

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.models.cascades import CascadeSettings
from venn_admit.api.routes.cascades import CascadeName, submit_certificate
from venn_admit.api.routes.parts import runtime_of
from venn_admit.core.calibrators.cascade_settings import DEFAULT_KINDS, DEFAULT_TEST
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, DocumentTest
from venn_admit.core.calibrators.settings import DEFAULT_ALPHA
from venn_admit.errors import VennAdmitError
from venn_admit.flows.cascades import manage
from venn_admit.http.guards.guard import needs
from venn_admit.http.problems import answer_to_error
from venn_admit.report.cascade import CASCADE_COLUMNS, STAGE_COLUMNS, cascade_rows, promise_sentence, stage_rows
from venn_admit.store.access.keys import Scope
from venn_admit.web.forms import checked, form_of
from venn_admit.web.rendering import address, page
from venn_admit.web.visitors import router

routes = router()

_DEFAULTS = {
    "alpha": str(DEFAULT_ALPHA),
    "confidence": str(DEFAULT_CONFIDENCE),
    "test": str(DEFAULT_TEST),
    **{str(kind): "on" for kind in DEFAULT_KINDS},
}


@routes.get("/cascades", dependencies=[needs(Scope.READ, every_classifier=True)])
def get_cascades(request: Request) -> Response:
    """List the cascades."""
    rows = cascade_rows(manage.every(runtime_of(request).engine))
    return page(request, "cascades", title="Cascades", columns=CASCADE_COLUMNS, rows=rows)


@routes.get("/cascades/{cascade}", dependencies=[needs(Scope.READ, every_classifier=True)])
def get_cascade(request: Request, cascade: CascadeName) -> Response:
    """Show what each stage serves, what is promised of it, and the certificates that there are."""
    return _cascade(request, cascade)


@routes.post("/cascades/{cascade}/calibrations", dependencies=[needs(Scope.WRITE, every_classifier=True)])
async def post_calibration(request: Request, cascade: CascadeName) -> Response:
    """Have workers certify a cascade, and go to the page of the job."""
    form = form_of(request)

    def submit() -> str:
        given = {name: form[name].strip() for name in ("alpha", "confidence", "test") if form.get(name, "").strip()}
        kinds = [kind for kind in ClassKind if kind in form]
        return submit_certificate(request, cascade, checked(CascadeSettings, certify=kinds, **given)).classifier

    try:
        classifier = await run_in_threadpool(submit)
    except VennAdmitError as error:
        status = answer_to_error(error).status_code
        return await run_in_threadpool(_cascade, request, cascade, status=status, refusal=str(error), form=form)
    return RedirectResponse(address("classifiers", classifier, "jobs"), 303)


def _cascade(
    request: Request, name: str, *, status: int = 200, refusal: str | None = None, form: Mapping[str, str] | None = None
) -> Response:
    engine = runtime_of(request).engine
    found = manage.show(engine, name)
    return page(
        request,
        "cascade",
        status=status,
        title=name,
        found=found,
        columns=STAGE_COLUMNS,
        rows=stage_rows(found),
        sentences=promise_sentence(found),
        history=manage.history(engine, name),
        kinds=tuple(ClassKind),
        tests=tuple(DocumentTest),
        refusal=refusal,
        form=form or _DEFAULTS,
    )
