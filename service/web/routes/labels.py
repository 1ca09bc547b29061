"""The points to label: a work list, labels that are entered in it, and the list as a file."""

import csv
import io
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.service.api.incoming import label_source
from venn_admit.service.api.models.exemplars import NewLabel, NewLabels
from venn_admit.service.api.routes.parts import ClassifierName
from venn_admit.service.api.security.guard import needs
from venn_admit.service.api.steps import REQUESTS
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.flows.exemplars.label import label
from venn_admit.service.flows.exemplars.unlabelled import unlabelled, work_list
from venn_admit.service.flows.reporting.report import report
from venn_admit.service.report.calibration.wording import offered
from venn_admit.service.store.access.keys import Scope
from venn_admit.service.web.access import router
from venn_admit.service.web.forms import checked, form_of, required
from venn_admit.service.web.rendering import address, page, runtime_of

routes = router()

ROWS = 25
# Recent traffic, of which these are a part, is never more.
MOST_ROWS = 10_000
SOURCE = "page"


@routes.get("/classifiers/{classifier}/labels", dependencies=[needs(Scope.READ)])
def get_labels(request: Request, classifier: ClassifierName, recorded: str = "") -> Response:
    """List the points to label first. recorded: the exemplar that was labelled just now."""
    found = work_list(runtime_of(request).engine, classifier, limit=ROWS)
    return page(
        request, "labels", title=f"{classifier}: labels", classifier=classifier, work=found, recorded=recorded[:1000]
    )


@routes.post("/classifiers/{classifier}/labels", dependencies=[needs(Scope.WRITE)])
async def post_label(request: Request, classifier: ClassifierName) -> Response:
    """Record a random label, and return to the list."""
    form, runtime = await form_of(request), runtime_of(request)
    external_id, number = form.get("external_id", ""), required(form, "label")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInputError(f"label: expected the number of a class, got {number!a}")
    one = checked(NewLabel, external_id=external_id, label=int(number))
    given = NewLabels(labels=[one], source=SOURCE)

    def record() -> None:
        source = label_source(given, runtime.memory_budget)
        label(runtime.engine, classifier, source, selection="random", retract=False)

    await run_in_threadpool(record)
    return RedirectResponse(
        f"{address('classifiers', classifier, 'labels')}?recorded={quote(external_id, safe='')}", 303
    )


@routes.get("/classifiers/{classifier}/labels/budget", dependencies=[needs(Scope.READ)])
def get_budget(request: Request, classifier: ClassifierName) -> Response:
    """Show which labels are lacking, as the report does."""
    runtime = runtime_of(request)
    found = report(runtime.engine, classifier, calibration_id=None, memory_budget=runtime.memory_budget)
    return page(
        request,
        "budget",
        title=f"{classifier}: label budget",
        classifier=classifier,
        section=found.part.budget(found),
        queries=dict(offered(found, REQUESTS)),
    )


@routes.get("/classifiers/{classifier}/labels/unlabelled.csv", dependencies=[needs(Scope.READ)])
def get_unlabelled(request: Request, classifier: ClassifierName) -> Response:
    """Return the list as a file whose second column `venn-admit label` reads once it is filled in."""
    rows = unlabelled(runtime_of(request).engine, classifier, limit=MOST_ROWS)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("external_id", "label", "document_id", "predicted_by_network"))
    writer.writerows((row.external_id, "", row.document_id or "", row.network_predicted) for row in rows)
    return Response(
        text.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="unlabelled.csv"'},
    )
