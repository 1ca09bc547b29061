"""Removing what is stored: exemplars that are forgotten, and classifiers that are deleted.

Ids of exemplars may be those of persons. They are in the body, because proxies and servers log paths.
"""

from typing import Annotated, Any

from fastapi import Query, Request

from venn_admit.api.models.exemplars import DeletedClassifier, ExemplarsToForget, ForgottenExemplars
from venn_admit.api.routes.parts import OF_CLASSIFIER, ClassifierName, Routes, runtime_of
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.http.guards.idempotency import keeping
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json

routes = Routes("removal", OF_CLASSIFIER)


@routes.answer("POST", "/exemplars/forget", Scope.ADMIN, ForgottenExemplars, 409, name="forget_exemplars")
def post_forget(request: Request, classifier: ClassifierName, given: ExemplarsToForget) -> dict[str, Any]:
    """Remove all that is stored of exemplars, in every generation, for good; sending it again changes nothing.

    A tombstone stays, by which an id that comes back is refused.
    """
    runtime = runtime_of(request)
    done = forget(
        runtime,
        classifier,
        given.ids,
        given.documents,
        missing_ok=given.missing_ok,
        dry_run=given.dry_run,
        by=request.state.caller,
        on_stored=keeping(request, as_json),
    )
    if done.is_done:
        runtime.remove_abandoned()
    return as_json(done)


@routes.answer("DELETE", "", Scope.ADMIN, DeletedClassifier, 409)
def delete_classifier(
    request: Request,
    classifier: ClassifierName,
    dry_run: Annotated[
        bool, Query(description="Count what would be deleted, and change nothing.", examples=[True])
    ] = False,
) -> dict[str, Any]:
    """Delete a classifier with all that belongs to it, or a generation that is not current, NAME@NUMBER, for good.

    It cannot be used from then on, and keys for it alone are revoked. The answer comes once all is deleted; after an
    interruption, send the request again.
    """
    runtime = runtime_of(request)
    done = delete(runtime, classifier, dry_run=dry_run, by=request.state.caller, on_stored=keeping(request, as_json))
    return as_json(done)
