"""The first page, with every classifier, and the page of one."""

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.models.classifiers import CalibrationToUse
from venn_admit.api.routes.parts import ClassifierName, runtime_of
from venn_admit.core.split_names import Split
from venn_admit.errors import InvalidInputError
from venn_admit.flows.calibration.in_use import use
from venn_admit.flows.data.catalogue import glance_at, glance_at_classifiers, holdings_of, list_calibrations
from venn_admit.flows.reports.lit_lamps import lit_lamps, lit_lamps_of
from venn_admit.http.guards.guard import needs
from venn_admit.report.wording import held_out_accuracy_text, waiting_text
from venn_admit.results import withheld_in
from venn_admit.store.access.keys import Scope
from venn_admit.web.forms import checked, form_of, required
from venn_admit.web.rendering import address, page
from venn_admit.web.visitors import router
from venn_admit_client.records.certificates import looks_text

routes = router()
CALIBRATIONS = 10
"""How many calibrations, and uses of them, the page of a classifier lists."""
MOST_CLASSES = 50
"""A table of more classes is not read by people."""


@routes.get("/", dependencies=[needs(Scope.READ)])
def get_overview(request: Request) -> Response:
    """List the classifiers that the key is for."""
    engine, own = runtime_of(request).engine, request.state.caller.classifier
    found = [one for one in glance_at_classifiers(engine) if own in (None, one.classifier.shared_name)]
    return page(request, "overview", title="Classifiers", listed=found, lit=lit_lamps(engine))


@routes.get("/classifiers/{classifier}", dependencies=[needs(Scope.READ)])
def get_classifier(request: Request, classifier: ClassifierName) -> Response:
    """Show a classifier."""
    engine = runtime_of(request).engine
    found, stored = glance_at(engine, classifier), list_calibrations(engine, classifier, limit=CALIBRATIONS)
    return page(
        request,
        "classifier",
        title=classifier,
        classifier=classifier,
        kind=found.classifier,
        lit=lit_lamps_of(engine, classifier),
        settings=found.settings,
        in_use=next((setting for setting in found.settings if setting.is_in_use), None),
        waiting=waiting_text(found.waiting) if found.waiting else None,
        stored=stored,
        withheld={row.calibration: str(withheld_in(row)) for row in stored.withheld},
        looks=looks_text(stored.looks[0].looks, stored.looks[0].joint_confidence) if stored.looks else None,
    )


@routes.get("/classifiers/{classifier}/data", dependencies=[needs(Scope.READ)])
def get_data(request: Request, classifier: ClassifierName) -> Response:
    """Show the data of a classifier in numbers."""
    found, holdings = holdings_of(runtime_of(request).engine, classifier)
    right = holdings.accuracy
    return page(
        request,
        "data",
        title=f"{classifier}: data",
        classifier=classifier,
        kind=found,
        splits=tuple(Split),
        holdings=holdings,
        shares={split: holdings.shares(split) for split in Split},
        most_classes=MOST_CLASSES,
        right=None
        if right.network is None
        else held_out_accuracy_text(right.points, right.network, right.knn_points, right.knn),
    )


@routes.post("/classifiers/{classifier}/use", dependencies=[needs(Scope.WRITE)])
async def post_use(request: Request, classifier: ClassifierName) -> Response:
    """Put a calibration in use, and return to the page of the classifier."""
    form, runtime = form_of(request), runtime_of(request)
    number = required(form, "calibration")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise InvalidInputError(f"calibration: expected the number of a calibration, got {number!a}")
    given = checked(CalibrationToUse, calibration=int(number), reason=form.get("reason", "").strip() or None)

    def put() -> None:
        use(runtime.engine, classifier, given.calibration, reason=given.reason, by=request.state.caller)

    await run_in_threadpool(put)
    return RedirectResponse(address("classifiers", classifier), 303)
