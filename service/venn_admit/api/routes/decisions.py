"""Decisions: made at once, listed, shown, and computed again."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from venn_admit.api.incoming import given_points
from venn_admit.api.models.common import StoredId
from venn_admit.api.models.decisions import (
    DecidedPointsAnswer,
    DecideRequest,
    DecisionsAnswer,
    ReplayedAnswer,
    ShownDecisionAnswer,
)
from venn_admit.api.routes.parts import (
    FIRST_PAGE,
    OF_CLASSIFIER,
    CalibrationNumber,
    ClassifierName,
    Cursor,
    Limit,
    Routes,
    finite,
    runtime_of,
)
from venn_admit.api.together import MOST_POINTS, Together
from venn_admit.core.evidence import UNBOUNDED
from venn_admit.files.output.exports import finite_json
from venn_admit.flows.decisions.listing import find_decision, list_decisions, show_decision
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import AskedPoints, PointDecision
from venn_admit.http.guards.guard import look_up_again, remembered_key
from venn_admit.http.paging import LARGEST_KEY, key_before, page
from venn_admit.results import decided_json, listed_decision_json, replayed_json, shown_decision_json
from venn_admit.store.access.keys import Scope
from venn_admit.store.decisions.decisions import DecisionFilter
from venn_admit_client.bodies import JSON

routes = Routes("decisions", OF_CLASSIFIER)

# What else there is of a decision is finite.
_MAYBE_INFINITE = UNBOUNDED | {"policy"}

DecisionNumber = Annotated[int, Path(ge=1, le=LARGEST_KEY, description="Number of a decision.", examples=[4711])]


@routes.answer(
    "POST",
    "/decide",
    Scope.SCORE,
    DecidedPointsAnswer,
    409,
    name="decide",
    stores=False,
    decides=True,
    remembers=True,
    response_model_exclude_unset=True,
)
async def post_decide(request: Request, classifier: ClassifierName, given: DecideRequest) -> Response:
    """Decide on points at once, all by the calibration in use, and say why; nothing is stored."""
    if len(given.points) <= MOST_POINTS:
        together: Together = request.app.state.together
        decided = await together.decide(classifier, _asked(request, given))
        if decided is not None:
            return _decided(request, decided)
    await look_up_again(request)
    return await run_in_threadpool(_decide_alone, request, classifier, given)


(decide,) = routes.routes


def _decide_alone(request: Request, classifier: str, given: DecideRequest) -> Response:
    return _decided(request, runtime_of(request).point_scorer.score_asked(classifier, _asked(request, given)))


def _asked(request: Request, given: DecideRequest) -> AskedPoints:
    return AskedPoints(
        given_points(given.points),
        weighted=given.weighted,
        require_full_match=given.require_full_match,
        neighbours=given.neighbour_count,
        stated=given.stated,
        key_id=remembered_key(request),
    )


def _decided(request: Request, decided: Sequence[PointDecision]) -> Response:
    request.app.state.metrics.count_decided(one.fields["reason"] for one in decided)
    answer = {"calibration": decided[0].calibration_id, "decisions": list(map(_one_decided, decided))}
    # Not validated against the model, which would take as long as making it.
    return Response(msgspec.json.encode(answer), media_type=JSON)


def _one_decided(decided: PointDecision) -> dict[str, Any]:
    found = decided_json(decided)
    for name in _MAYBE_INFINITE & found.keys():
        found[name] = finite_json(found[name])
    return found


@routes.answer("GET", "/decisions", Scope.READ, DecisionsAnswer, name="list_decisions")
def get_decisions(
    request: Request,
    classifier: ClassifierName,
    limit: Limit = FIRST_PAGE,
    cursor: Cursor = None,
    calibration: CalibrationNumber = None,
    external_id: Annotated[
        StoredId | None, Query(description="Only decisions on this exemplar.", examples=["review-1"])
    ] = None,
    admitted: Annotated[
        bool | None, Query(description="Admitted ones alone, or rejected ones alone.", examples=[True])
    ] = None,
) -> dict[str, Any]:
    """List stored decisions, the newest first."""
    engine, wanted = runtime_of(request).engine, DecisionFilter(calibration, external_id, admitted, key_before(cursor))
    found, rows = list_decisions(engine, classifier, wanted, limit=limit + 1)
    rows, follows = page(rows, limit, lambda row: int(row.decision))
    listed = [listed_decision_json(row, found.class_names) for row in rows]
    return finite({"decisions": listed, "next_cursor": follows})


@routes.answer("GET", "/decisions/{decision}", Scope.READ, ShownDecisionAnswer, response_model_exclude_unset=True)
def get_decision(request: Request, classifier: ClassifierName, decision: DecisionNumber) -> dict[str, Any]:
    """Show a stored decision with its evidence and the nearest training exemplars."""
    return finite(shown_decision_json(show_decision(runtime_of(request).engine, classifier, decision)))


@routes.answer(
    "POST",
    "/decisions/{decision}/replay",
    Scope.READ,
    ReplayedAnswer,
    409,
    name="replay_decision",
    stores=False,
    response_model_exclude_unset=True,
)
def post_replay(request: Request, classifier: ClassifierName, decision: DecisionNumber) -> dict[str, Any]:
    """Compute a stored decision again from its snapshot, and show what it rests on; nothing is stored."""
    runtime = runtime_of(request)
    find_decision(runtime.engine, classifier, decision)
    replayed = replay(runtime, decision)
    return finite(replayed_json(replayed))
