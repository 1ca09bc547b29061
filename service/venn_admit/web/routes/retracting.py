"""Taking a label back, after the page has said what that changes."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.incoming import label_source
from venn_admit.api.models.exemplars import NewLabel, NewLabels
from venn_admit.api.routes.parts import ClassifierName
from venn_admit.core.names import ID_LENGTH_LIMIT, STORABLE
from venn_admit.errors import VennAdmitError
from venn_admit.flows.data.known_labels import known_label
from venn_admit.flows.data.label import label
from venn_admit.http.guards.guard import needs
from venn_admit.http.problems import answer_to_error
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import router
from venn_admit.web.forms import checked, form_of, required
from venn_admit.web.rendering import address, page, runtime_of, with_query
from venn_admit.web.routes.labels import SOURCE

routes = router()


@routes.get("/classifiers/{classifier}/labels/known", dependencies=[needs(Scope.READ)])
def get_known(
    request: Request,
    classifier: ClassifierName,
    external_id: Annotated[str, Query(max_length=ID_LENGTH_LIMIT, pattern=STORABLE)] = "",
) -> Response:
    """Show the label of an exemplar, and what taking it back changes."""
    try:
        found, refusal, status = known_label(runtime_of(request).engine, classifier, external_id), None, 200
    except VennAdmitError as error:
        found, refusal, status = None, str(error), answer_to_error(error).status_code
    return page(
        request,
        "known",
        status=status,
        title=f"{classifier}: a label",
        classifier=classifier,
        known=found,
        refusal=refusal,
        external_id=external_id,
    )


@routes.post("/classifiers/{classifier}/labels/known", dependencies=[needs(Scope.WRITE)])
async def post_retraction(request: Request, classifier: ClassifierName) -> Response:
    """Take a label back, and return to the list."""
    form, runtime = form_of(request), runtime_of(request)
    external_id = required(form, "external_id")
    one = checked(NewLabel, external_id=external_id, label=None)
    given = NewLabels(labels=[one], retract=True, source=SOURCE)

    def retract() -> None:
        source = label_source(given, runtime.memory_budget)
        label(runtime.engine, classifier, source, selection="random", retract=True)

    await run_in_threadpool(retract)
    return RedirectResponse(with_query(address("classifiers", classifier, "labels"), retracted=external_id), 303)
