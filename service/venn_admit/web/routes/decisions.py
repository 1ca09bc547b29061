"""The pages of decisions: those that were made, how one came about, and a decision on a point that is tried."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response

from venn_admit.api.incoming import given_points
from venn_admit.api.models.decisions import Point
from venn_admit.api.routes.decisions import DecisionNumber
from venn_admit.api.routes.parts import ClassifierName, Cursor, runtime_of
from venn_admit.core.groups import named_texts
from venn_admit.core.names import ID_LENGTH_LIMIT, STORABLE
from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.decisions.listing import applied_rule, find_decision, list_decisions, show_decision, stored_point
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import GivenPoint, as_logits
from venn_admit.http.guards.guard import needs
from venn_admit.http.paging import LARGEST_KEY, key_before
from venn_admit.http.paging import page as page_of
from venn_admit.http.problems import answer_to_error
from venn_admit.layer.contributions import own_contributions
from venn_admit.report.decision import class_table
from venn_admit.results import decided_json, listed_decision_json, replayed_json, shown_decision_json
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.store.decisions.decisions import DecisionFilter
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.web.explanation import NUMBER, bounds_of, facts, steps
from venn_admit.web.forms import checked, form_of
from venn_admit.web.rendering import page
from venn_admit.web.visitors import router

routes = router()
ROWS = 50
_OUTCOMES = {"": None, "admitted": True, "rejected": False}


@routes.get("/classifiers/{classifier}/decisions", dependencies=[needs(Scope.READ)])
def get_decisions(
    request: Request,
    classifier: ClassifierName,
    cursor: Cursor = None,
    calibration: Annotated[str, Query(max_length=20)] = "",
    external_id: Annotated[str, Query(max_length=ID_LENGTH_LIMIT, pattern=STORABLE)] = "",
    outcome: Literal["", "admitted", "rejected"] = "",
) -> Response:
    """List stored decisions, the newest first; an empty field asks for any."""
    wanted = DecisionFilter(_number(calibration), external_id or None, _OUTCOMES[outcome], key_before(cursor))
    found, rows = list_decisions(runtime_of(request).engine, classifier, wanted, limit=ROWS + 1)
    rows, follows = page_of(rows, ROWS, lambda row: int(row.decision))
    asked = {"calibration": calibration, "external_id": external_id, "outcome": outcome}
    return page(
        request,
        "decisions",
        title=f"{classifier}: decisions",
        classifier=classifier,
        rows=[listed_decision_json(row, found.class_names) for row in rows],
        asked=asked,
        follows=follows,
    )


@routes.get("/classifiers/{classifier}/decisions/{decision}", dependencies=[needs(Scope.READ)])
def get_decision(request: Request, classifier: ClassifierName, decision: DecisionNumber) -> Response:
    """Show what was decided, why, and the nearest training exemplars as they are now."""
    runtime = runtime_of(request)
    found = show_decision(runtime.engine, classifier, decision)
    shown = shown_decision_json(found)
    return page(
        request,
        "decision",
        title=f"{classifier}: decision {decision}",
        classifier=classifier,
        shown=shown,
        exemplar=found.attributes,
        carried=own_contributions(found.attributes, found.classifier.class_names, found.network_logits.tolist()),
        **_explained(runtime, classifier, found.row.calibration_id, shown, shown, found.attributes),
    )


@routes.get("/classifiers/{classifier}/decisions/{decision}/replay", dependencies=[needs(Scope.READ)])
def get_replay(request: Request, classifier: ClassifierName, decision: DecisionNumber) -> Response:
    """Compute a decision again from its snapshot, and show what it rests on; nothing is stored."""
    runtime = runtime_of(request)
    find_decision(runtime.engine, classifier, decision)
    found = replay(runtime, decision)
    again = replayed_json(found)
    fields = again["stored"] if again["not_recomputed"] else again["computed"]
    return page(
        request,
        "replay",
        title=f"{classifier}: decision {decision}, again",
        classifier=classifier,
        again=again,
        exemplar=found.attributes,
        carried=own_contributions(found.attributes, found.classifier.class_names, found.network_logits.tolist()),
        **_explained(runtime, classifier, found.row.calibration_id, fields, again, found.attributes),
    )


def _explained(
    runtime: Runtime,
    name: str,
    calibration_id: int,
    fields: Mapping[str, Any],
    answer: Mapping[str, Any],
    attributes: Mapping[str, Any],
) -> dict[str, Any]:
    """What a page says of how a decision came about; fields: those of the decision, in the answer on it."""
    names, counts, bounds = answer["class_names"], answer.get("category_counts"), bounds_of(answer)
    rule = applied_rule(runtime.engine, name, calibration_id, fields["predicted"], attributes)
    return {
        "steps": steps(fields, names, rule),
        "facts": facts(fields, counts, bounds),
        "evidence": class_table(fields, names, counts, NUMBER, bounds),
        "neighbours": answer["neighbours"],
    }


def _number(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= LARGEST_KEY:
        raise InvalidInputError(f"calibration: expected the number of a calibration, got {text!a}")
    return int(text)


@routes.get("/classifiers/{classifier}/try", dependencies=[needs(Scope.SCORE)])
def get_try(request: Request, classifier: ClassifierName, external_id: str = "") -> Response:
    """Ask for a point."""
    return _page(request, classifier, {"external_id": external_id[:1000]})


@routes.post("/classifiers/{classifier}/try", dependencies=[needs(Scope.SCORE, stores=False)])
def post_try(request: Request, classifier: ClassifierName) -> Response:
    """Decide on a point at once, and say why."""
    form, runtime = form_of(request), runtime_of(request)
    try:
        kind = find(runtime.engine, classifier)
        name = kind.address  # for both steps
        point = _point(runtime, kind, form)
        (found,) = runtime.point_scorer.score_each(name, [point], weighted=None, require_full_match="full" in form)
    except VennAdmitError as error:
        status = answer_to_error(error).status_code
        return _page(request, classifier, form, status=status, refusal=str(error))
    request.app.state.metrics.count_decided([found.fields["reason"]])
    decided = decided_json(found)
    shown = _explained(runtime, name, decided["calibration"], decided, decided, point.attributes)
    return _page(request, classifier, form, decided=decided, **shown)


def _point(runtime: Runtime, classifier: Classifier, form: Mapping[str, str]) -> GivenPoint:
    external_id, vector, logits = (form.get(field, "") for field in ("external_id", "vector", "logits"))
    external_id, vector, logits = external_id if external_id.strip() else "", vector.strip(), logits.strip()
    if external_id and (vector or logits):
        raise InvalidInputError("expected either a stored exemplar, or a vector and logits; leave the others empty")
    if not external_id and not vector and not logits:
        raise InvalidInputError("expected a stored exemplar, or a vector and logits; fill one of them in")
    given = checked(
        Point,
        external_id=external_id or None,
        vector=_numbers("vector", vector, classifier.dimension) if vector else None,
        logits=_numbers("logits", logits, classifier.class_count) if logits else None,
        attributes=named_texts(form.get("attributes", "")),
    )
    if given.external_id is not None:
        return stored_point(runtime.engine, classifier.address, given.external_id)
    (point,) = as_logits(given_points([given]), True if "probabilities" in form else None)
    return point


def _numbers(field: str, text: str, most: int) -> list[float]:
    """Return numbers with commas, spaces or line breaks between them, in brackets or not.

    Raises InvalidInputError if they are others, or more than `most`, of which the rest is not looked at.

    >>> [_numbers("vector", text, most=2) for text in ("[1, 2.5]", "1 2.5", "1,2.5")]
    [[1.0, 2.5], [1.0, 2.5], [1.0, 2.5]]
    """
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    parts = inside.replace(",", " ").split(maxsplit=most)
    if len(parts) > most:
        raise InvalidInputError(f"{field}: expected {most:,} numbers, got more")
    try:
        return [float(part) for part in parts]
    except ValueError as error:
        raise InvalidInputError(f"{field}: expected numbers such as 2.5, -1.5 or [2.5, -1.5], got others") from error


def _page(request: Request, classifier: str, form: Mapping[str, str], *, status: int = 200, **shown: Any) -> Response:
    kind = find(runtime_of(request).engine, classifier)
    return page(
        request,
        "try",
        status=status,
        title=f"{classifier}: try a point",
        classifier=classifier,
        form=form,
        kind=kind,
        **{"decided": None, "refusal": None, **shown},
    )
