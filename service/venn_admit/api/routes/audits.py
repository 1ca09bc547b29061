"""The rule by which points of a classifier are drawn to be audited when they are decided on."""

from typing import Any

from fastapi import Request

from venn_admit.api.models.classifiers import AuditRuleToState, AuditsAnswer
from venn_admit.api.routes.parts import OF_CLASSIFIER, ClassifierName, Routes, finite, runtime_of
from venn_admit.flows.data.audits import set_audits, show_audits
from venn_admit.http.guards.idempotency import keeping
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json

routes = Routes("audits", OF_CLASSIFIER)


@routes.answer("GET", "/audits", Scope.READ, AuditsAnswer)
def get_audits(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """Show the rule, and how many points were drawn so far."""
    return finite(as_json(show_audits(runtime_of(request).engine, classifier)))


@routes.answer("PUT", "/audits", Scope.ADMIN, AuditsAnswer, 409, name="state_audits")
def put_audits(request: Request, classifier: ClassifierName, given: AuditRuleToState) -> dict[str, Any]:
    """State the rule by which points are drawn that are first decided on from now on; others keep their draw."""
    done = set_audits(
        runtime_of(request).engine,
        classifier,
        rate=given.rate,
        classes=given.classes,
        rejected=given.rejected,
        on_stored=keeping(request, as_json),
    )
    return finite(as_json(done))
