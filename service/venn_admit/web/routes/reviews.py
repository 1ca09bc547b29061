"""The page of reviewers: a point at a time, which nobody else gets, and only afterwards what was predicted."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from venn_admit.api.routes.parts import ClassifierName, runtime_of
from venn_admit.core.names import ID_LENGTH_LIMIT, STORABLE
from venn_admit.errors import ConflictError, InvalidInputError, NotFoundError, VennAdmitError
from venn_admit.files.reviews import sheet
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.reviews.claims import claim, holding, queue, release, renew
from venn_admit.flows.reviews.exchange import record
from venn_admit.flows.reviews.labels import disagreements, give, outcome
from venn_admit.http.guards.guard import needs
from venn_admit.http.problems import status_of
from venn_admit.store.access.keys import Scope
from venn_admit.web.forms import form_of, required
from venn_admit.web.rendering import address, page, with_query
from venn_admit.web.visitors import router
from venn_admit_client.reviewer_interface import FILE_LEASE, FILE_POINTS

routes = router()
MOST_BUTTONS = 9
"""A digit stands for each of these; one of more classes is chosen from a list."""
MOST_DISPUTED = 20
# No classifier has as many classes, and no class a name of more digits than Python turns into a number.
_MOST_DIGITS = 9
_Id = Annotated[str, Query(max_length=ID_LENGTH_LIMIT, pattern=STORABLE)]


@routes.get("/classifiers/{classifier}/labels/review", dependencies=[needs(Scope.READ)])
def get_review(
    request: Request, classifier: ClassifierName, labelled: _Id = "", settle: _Id = "", recorded: int | None = None
) -> Response:
    """Show the point that the visitor holds, without what was predicted, and how the queue stands.

    labelled: the point that the visitor labelled just now, of which the prediction is shown. settle: a point about
    which reviewers disagree, to be shown in its place. recorded: how many labels of a sheet were just recorded.
    """
    return _shown(request, classifier, labelled=labelled, settle=settle, recorded=recorded)


def _shown(
    request: Request,
    classifier: str,
    *,
    labelled: str = "",
    settle: str = "",
    recorded: int | None = None,
    pasted: str = "",
    refused: VennAdmitError | None = None,
) -> Response:
    """The page; pasted, refused: a sheet, and why it was refused."""
    engine, reviewer = runtime_of(request).engine, request.state.caller.name
    found = holding(engine, classifier, reviewer)
    disputed = disagreements(engine, classifier, limit=MOST_DISPUTED)
    return page(
        request,
        "review",
        status=200 if refused is None else status_of(refused),
        title=f"{classifier}: review",
        classifier=classifier,
        names=find(engine, classifier).class_names,
        by_button=MOST_BUTTONS,
        queue=queue(engine, classifier),
        held=len(found.points),
        point=found.points[0] if found.points else None,
        disputed=disputed,
        recorded=recorded,
        settled=next((one for one in disputed if one.id == settle), None),
        outcome=outcome(engine, classifier, reviewer, labelled) if labelled else None,
        pasted=pasted,
        refusal=None if refused is None else str(refused),
    )


@routes.post("/classifiers/{classifier}/labels/review", dependencies=[needs(Scope.WRITE)])
def post_review(request: Request, classifier: ClassifierName) -> Response:
    """Claim the next point, label the one that is shown, or pass it over; or do all that by a sheet."""
    form, runtime, reviewer = form_of(request), runtime_of(request), request.state.caller.name
    engine = runtime.engine
    there = address("classifiers", classifier, "labels", "review")
    match form.get("action", "label"):
        case "claim":
            claim(engine, classifier, reviewer, again="again" in form)
        case "pass":
            passed = required(form, "external_id", stripped=False)
            release(engine, classifier, reviewer, [passed], to_others=True)
            claim(engine, classifier, reviewer)
        case "label":
            external_id = required(form, "external_id", stripped=False)
            # The buttons have numbers, which may be the names of other classes.
            given = required(form, "label")
            label = int(given) if given.isdecimal() and len(given) <= _MOST_DIGITS else given
            give(
                engine,
                classifier,
                reviewer,
                {external_id: label},
                resolves="resolves" in form,
                memory_budget=runtime.memory_budget,
            )
            claim(engine, classifier, reviewer)
            return RedirectResponse(with_query(there, labelled=external_id), 303)
        case "sheet":
            held = claim(engine, classifier, reviewer, count=FILE_POINTS, lease_seconds=FILE_LEASE)
            return Response(
                sheet.written(held.points, reviewer),
                media_type="text/csv; charset=utf-8",
                headers={"content-disposition": 'attachment; filename="review.csv"'},
            )
        case "filled":
            try:
                count = _record_sheet(request, classifier, required(form, "sheet"))
            except (ConflictError, InvalidInputError, NotFoundError) as error:
                return _shown(request, classifier, pasted=form.get("sheet", ""), refused=error)
            return RedirectResponse(with_query(there, recorded=str(count)), 303)
        case other:
            raise InvalidInputError(f"action: expected claim, label, pass, sheet or filled, got {other!a}")
    return RedirectResponse(there, 303)


def _record_sheet(request: Request, classifier: str, text: str) -> int:
    """Record the labels of a sheet, and return how many they are."""
    found, runtime, reviewer = sheet.labels_in("sheet", text), runtime_of(request), request.state.caller.name
    if not found:
        raise InvalidInputError("sheet: expected at least one label, got none; fill in the column label")
    budget = runtime.memory_budget
    return sum(
        one.rows for one in record(runtime.engine, classifier, "sheet", found, reviewer=reviewer, memory_budget=budget)
    )


@routes.post("/classifiers/{classifier}/labels/review/renewals", dependencies=[needs(Scope.WRITE)])
def post_renewals(request: Request, classifier: ClassifierName) -> Response:
    """Extend the visitor's claims, as a page that stays open asks now and then."""
    renew(runtime_of(request).engine, classifier, request.state.caller.name)
    return Response(status_code=204)
