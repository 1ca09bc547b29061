"""The pages of labels: those to give, the budget of labels, and those that are known and can be retracted."""

import csv
import io
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from venn_admit.api.incoming import label_source
from venn_admit.api.models.common import LARGEST_INTEGER
from venn_admit.api.models.exemplars import NewLabel, NewLabels
from venn_admit.api.routes.parts import ClassifierName, runtime_of
from venn_admit.core.names import ID_LENGTH_LIMIT, STORABLE
from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.flows.data.label import label
from venn_admit.flows.data.label_lists import ChosenPlace, known_label, newest_labels, work_list
from venn_admit.http.guards.guard import needs
from venn_admit.http.problems import answer_to_error
from venn_admit.report.calibration.wording import queries_of_tables
from venn_admit.store.access.keys import Scope
from venn_admit.web.caches import report_cache
from venn_admit.web.forms import checked, form_of, required
from venn_admit.web.rendering import address, page, with_query
from venn_admit.web.steps import on_page
from venn_admit.web.visitors import router

routes = router()
ROWS = 25
NEWEST = 10
# Recent traffic, of which these are a part, is never more.
MOST_ROWS = 10_000
SOURCE = "page"
_Whole = Annotated[int | None, Query(ge=0, le=LARGEST_INTEGER)]


class PlaceOfList(BaseModel):
    """The fields of a form that say in which list its point was."""

    least_q: _Whole = None
    greatest_q: _Whole = None
    predicted: _Whole = None


@routes.get("/classifiers/{classifier}/labels", dependencies=[needs(Scope.READ)])
def get_labels(
    request: Request,
    classifier: ClassifierName,
    recorded: str = "",
    retracted: str = "",
    least_q: _Whole = None,
    greatest_q: _Whole = None,
    predicted: _Whole = None,
) -> Response:
    """List the points to label first: of recent traffic at random, or those of a place.

    recorded, retracted: the exemplar that was labelled just now, or whose label was taken back.
    """
    engine, place = runtime_of(request).engine, _place(least_q, greatest_q, predicted)
    found = work_list(engine, classifier, limit=ROWS, place=place)
    asked = {"least_q": least_q, "greatest_q": greatest_q, "predicted": predicted}
    return page(
        request,
        "labels",
        title=f"{classifier}: labels",
        classifier=classifier,
        work=found,
        chosen=place,
        asked={name: value for name, value in asked.items() if value is not None},
        newest=newest_labels(engine, classifier, limit=NEWEST),
        recorded=recorded[:1000],
        retracted=retracted[:1000],
    )


@routes.post("/classifiers/{classifier}/labels", dependencies=[needs(Scope.WRITE)])
async def post_label(request: Request, classifier: ClassifierName) -> Response:
    """Record a label, and return to the list that its point was taken from, which says how it was chosen."""
    form, runtime = form_of(request), runtime_of(request)
    external_id, number = form.get("external_id", ""), required(form, "label")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInputError(f"label: expected the number of a class, got {number!a}")
    selection = form.get("selection", "random")
    one = checked(NewLabel, external_id=external_id, label=int(number), selection=selection)
    place = {name: form[name] for name in PlaceOfList.model_fields if name in form}
    _place(**checked(PlaceOfList, **place).model_dump())
    given = NewLabels(labels=[one], source=SOURCE)

    def record() -> None:
        source = label_source(given, runtime.memory_budget)
        label(runtime.engine, classifier, source, selection=selection, retract=False)

    await run_in_threadpool(record)
    there = with_query(address("classifiers", classifier, "labels"), recorded=external_id, **place)
    return RedirectResponse(there, 303)


@routes.get("/classifiers/{classifier}/labels/budget", dependencies=[needs(Scope.READ)])
def get_budget(request: Request, classifier: ClassifierName) -> Response:
    """Show what labels would unlock, and which are lacking, as the report does."""
    found = report_cache(request).get(classifier, None)[0].report
    return page(
        request,
        "budget",
        title=f"{classifier}: label budget",
        classifier=classifier,
        unlocks=found.part.unlocks(found),
        section=found.part.budget(found),
        queries=dict(queries_of_tables(found, on_page)),
    )


@routes.get("/classifiers/{classifier}/labels/unlabelled.csv", dependencies=[needs(Scope.READ)])
def get_unlabelled(request: Request, classifier: ClassifierName) -> Response:
    """Return the random sample as a file whose second column `venn-admit label` reads once it is filled in."""
    found = work_list(runtime_of(request).engine, classifier, limit=MOST_ROWS)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("external_id", "label", "selection", "document_id"))
    for one in found.shown:
        known = "" if one.label is None else found.class_names[one.label]
        writer.writerow((one.external_id, known, "random", one.document_id or ""))
    return Response(
        text.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="unlabelled.csv"'},
    )


def _place(least_q: int | None, greatest_q: int | None, predicted: int | None) -> ChosenPlace | None:
    if (least_q is None) != (greatest_q is None) or (least_q or 0) > (greatest_q or 0):
        raise InvalidInputError("expected least_q and greatest_q, the first not greater than the second, or neither")
    if least_q is None and predicted is None:
        return None
    matching = None if least_q is None or greatest_q is None else range(least_q, greatest_q + 1)
    return ChosenPlace(matching, predicted)


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
    external_id = required(form, "external_id", stripped=False)
    one = checked(NewLabel, external_id=external_id, label=None)
    given = NewLabels(labels=[one], retract=True, source=SOURCE)

    def retract() -> None:
        source = label_source(given, runtime.memory_budget)
        label(runtime.engine, classifier, source, selection="random", retract=True)

    await run_in_threadpool(retract)
    return RedirectResponse(with_query(address("classifiers", classifier, "labels"), retracted=external_id), 303)
