"""The queue for reviewers: what is to be labelled, by whom, and where labels differ.

Ids of points may be those of persons. They are in bodies, because proxies and servers log paths.
"""

from typing import Annotated, Any

from fastapi import Query, Request

from venn_admit.api.models.common import Name
from venn_admit.api.models.reviews import (
    ClaimRequest,
    ClaimsAnswer,
    Disagreements,
    PointsOfReviewer,
    ReleasedClaims,
    RenewalRequest,
    RenewedClaims,
    ReviewedAnswer,
    ReviewLabels,
    ReviewQueueAnswer,
)
from venn_admit.api.routes.parts import OF_CLASSIFIER, ClassifierName, Routes, finite, runtime_of
from venn_admit.errors import InvalidInputError
from venn_admit.flows.reviews import claims
from venn_admit.flows.reviews.labels import disagreements, give
from venn_admit.http.guards.idempotency import keeping
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json
from venn_admit_client.records.reviews import Claims, Reviewed

routes = Routes("reviewers", f"{OF_CLASSIFIER}/review")


def _name(request: Request, given: str | None) -> str:
    return request.state.caller.name if given is None else given


def _payload(found: Claims | Reviewed) -> dict[str, Any]:
    return finite(as_json(found))


@routes.answer("GET", "", Scope.READ, ReviewQueueAnswer, name="show_review_queue")
def get_queue(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """Show how many points wait for reviewers, who holds some, and about how many they disagree."""
    return as_json(claims.queue(runtime_of(request).engine, classifier))


@routes.answer("GET", "/claims", Scope.READ, ClaimsAnswer, name="show_claims")
def get_claims(
    request: Request,
    classifier: ClassifierName,
    reviewer: Annotated[
        Name | None, Query(description="Who it is; left out: the name of the key.", examples=["anna"])
    ] = None,
) -> dict[str, Any]:
    """Show the points that a reviewer holds; nothing of what was predicted is in the answer."""
    return _payload(claims.holding(runtime_of(request).engine, classifier, _name(request, reviewer)))


@routes.answer("POST", "/claims", Scope.WRITE, ClaimsAnswer, 409, name="claim_points")
def post_claims(request: Request, classifier: ClassifierName, given: ClaimRequest) -> dict[str, Any]:
    """Claim points of the queue, which nobody else gets until a label comes, they are released, or the lease ends.

    Those that the reviewer holds already come first, and are renewed. Nothing of what was predicted is in the answer.
    """
    found = claims.claim(
        runtime_of(request).engine,
        classifier,
        _name(request, given.reviewer),
        count=given.count,
        lease_seconds=given.lease_seconds,
        again=given.again,
        on_stored=keeping(request, _payload),
    )
    return _payload(found)


@routes.answer("POST", "/renewals", Scope.WRITE, RenewedClaims, name="renew_claims")
def post_renewals(request: Request, classifier: ClassifierName, given: RenewalRequest) -> dict[str, Any]:
    """Extend claims that still hold."""
    renewed = claims.renew(
        runtime_of(request).engine,
        classifier,
        _name(request, given.reviewer),
        given.external_ids,
        lease_seconds=given.lease_seconds,
    )
    return {"renewed": renewed}


@routes.answer("POST", "/releases", Scope.WRITE, ReleasedClaims, name="release_claims")
def post_releases(request: Request, classifier: ClassifierName, given: PointsOfReviewer) -> dict[str, Any]:
    """Give claims back, so that others get the points."""
    name = _name(request, given.reviewer)
    return {"released": claims.release(runtime_of(request).engine, classifier, name, given.external_ids)}


@routes.answer("POST", "/labels", Scope.WRITE, ReviewedAnswer, 409, name="record_review_labels")
def post_labels(request: Request, classifier: ClassifierName, given: ReviewLabels) -> dict[str, Any]:
    """Record the labels of a reviewer, and say what was predicted; the claims on the points end.

    A label of a point that another reviewer has labelled is kept beside that, and is the one that counts.
    """
    labels = {one.external_id: one.label for one in given.labels}
    if len(labels) < len(given.labels):
        raise InvalidInputError("labels: expected every external_id once, got one of them twice")
    runtime = runtime_of(request)
    done = give(
        runtime.engine,
        classifier,
        _name(request, given.reviewer),
        labels,
        resolves=given.resolve,
        memory_budget=runtime.memory_budget,
        on_stored=keeping(request, _payload),
    )
    return _payload(done)


@routes.answer("GET", "/disagreements", Scope.READ, Disagreements, name="list_disagreements")
def get_disagreements(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """List points of which the newest labels of two reviewers differ, and no label has resolved it since."""
    return {"disagreements": [as_json(one) for one in disagreements(runtime_of(request).engine, classifier)]}
