"""The stored decisions, and why each was made."""

from typing import Annotated, Literal

from fastapi import Query, Request, Response

from venn_admit.api.models.common import LARGEST_KEY
from venn_admit.api.routes.decisions import DecisionNumber
from venn_admit.api.routes.parts import ClassifierName, Cursor
from venn_admit.core.names import ID_LENGTH_LIMIT, STORABLE
from venn_admit.errors import InvalidInputError
from venn_admit.flows.decisions.listing import find_decision, least_admitted, list_decisions, show_decision
from venn_admit.flows.decisions.replay import replay
from venn_admit.http.guards.guard import needs
from venn_admit.http.paging import key_before
from venn_admit.http.paging import page as page_of
from venn_admit.layer.contributions import own_contributions
from venn_admit.payloads.decisions import listed_payload, replay_payload, shown_payload
from venn_admit.store.access.keys import Scope
from venn_admit.store.decisions.decisions import Wanted
from venn_admit.web.access import router
from venn_admit.web.explanation import evidence, steps
from venn_admit.web.rendering import page, runtime_of

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
    wanted = Wanted(_number(calibration), external_id or None, _OUTCOMES[outcome], key_before(cursor))
    found, rows = list_decisions(runtime_of(request).engine, classifier, wanted, limit=ROWS + 1)
    rows, follows = page_of(rows, ROWS, lambda row: int(row.decision))
    asked = {"calibration": calibration, "external_id": external_id, "outcome": outcome}
    return page(
        request,
        "decisions",
        title=f"{classifier}: decisions",
        classifier=classifier,
        rows=[listed_payload(row, found.class_names) for row in rows],
        asked=asked,
        follows=follows,
    )


@routes.get("/classifiers/{classifier}/decisions/{decision}", dependencies=[needs(Scope.READ)])
def get_decision(request: Request, classifier: ClassifierName, decision: DecisionNumber) -> Response:
    """Show what was decided, why, and the nearest training exemplars as they are now."""
    engine = runtime_of(request).engine
    found = show_decision(engine, classifier, decision)
    shown = shown_payload(found)
    least = least_admitted(engine, classifier, found.stored.calibration_id, found.stored.predicted)
    return page(
        request,
        "decision",
        title=f"{classifier}: decision {decision}",
        classifier=classifier,
        shown=shown,
        steps=steps(shown, shown["class_names"], None, least=least),
        evidence=evidence(shown, shown["class_names"], None),
        exemplar=found.attributes,
        carried=own_contributions(found.attributes, found.classifier.class_names, found.network_logits.tolist()),
        neighbours=shown["neighbours"],
    )


@routes.get("/classifiers/{classifier}/decisions/{decision}/replay", dependencies=[needs(Scope.READ)])
def get_replay(request: Request, classifier: ClassifierName, decision: DecisionNumber) -> Response:
    """Compute a decision again from its snapshot, and show what it rests on; nothing is stored."""
    runtime = runtime_of(request)
    find_decision(runtime.engine, classifier, decision)
    found = replay(runtime, decision)
    again = replay_payload(found)
    fields = again["stored"] if again["not_recomputed"] else again["computed"]
    least = least_admitted(runtime.engine, classifier, found.calibration_id, fields["predicted"])
    return page(
        request,
        "replay",
        title=f"{classifier}: decision {decision}, again",
        classifier=classifier,
        again=again,
        steps=steps(fields, again["class_names"], again["policy"], least=least),
        evidence=evidence(fields, again["class_names"], again["category_counts"]),
        exemplar=found.attributes,
        carried=own_contributions(found.attributes, found.classifier.class_names, found.network_logits.tolist()),
        neighbours=again["neighbours"],
    )


def _number(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= LARGEST_KEY:
        raise InvalidInputError(f"calibration: expected the number of a calibration, got {text!a}")
    return int(text)
