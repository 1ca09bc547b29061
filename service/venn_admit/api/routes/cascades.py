"""Cascades: classifiers that are asked one after the other, under one promise.

They are about several classifiers, so a key for one alone does not reach them.
"""

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Request, Response

from venn_admit.api.incoming import given_points
from venn_admit.api.models.cascades import (
    CascadeAnswer,
    CascadesAnswer,
    CascadeSettings,
    NewCascade,
    ScoredStages,
    ServedAnswer,
    StageAnswer,
    StageRequest,
    SubmittedCertificate,
)
from venn_admit.api.models.common import Name
from venn_admit.api.routes.jobs import send_submitted
from venn_admit.api.routes.parts import Routes, finite, runtime_of
from venn_admit.api.waiting import require_worker
from venn_admit.flows.cascades import manage, serve
from venn_admit.flows.cascades.certify import CertificateRequest, cascade_settings_for, request_certificate
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.guards.running_jobs import refusing_too_many_jobs, requester_of
from venn_admit.http.paths import cascade_path, job_path
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json
from venn_admit_client.records.cascades import CascadeReport

routes = Routes("cascades", "/cascades")
answer = partial(routes.answer, every_classifier=True)

CascadeName = Annotated[Name, Path(description="The cascade's name.", examples=["reviews"])]


@answer("GET", "", Scope.READ, CascadesAnswer, name="list_cascades")
def get_cascades(request: Request) -> dict[str, Any]:
    """List all cascades, by name."""
    return finite({"cascades": [as_json(one) for one in manage.every(runtime_of(request).engine)]})


@answer("POST", "", Scope.ADMIN, CascadeAnswer, 404, 409, name="create_cascade", status_code=201)
def post_cascade(request: Request, response: Response, given: NewCascade) -> dict[str, Any]:
    """Create a cascade."""
    created = manage.create(
        runtime_of(request).engine,
        given.cascade,
        [(stage.classifier, stage.cost) for stage in given.stages],
        on_stored=keeping(request, _payload, _headers),
    )
    response.headers.update(_headers(created))
    return _payload(created)


@answer("GET", "/{cascade}", Scope.READ, CascadeAnswer)
def get_cascade(request: Request, cascade: CascadeName) -> dict[str, Any]:
    """Show what each stage serves of the labelled data, how much of it is right, and what that costs."""
    return _payload(manage.show(runtime_of(request).engine, cascade))


@answer("DELETE", "/{cascade}", Scope.ADMIN, CascadeAnswer)
def delete_cascade(request: Request, cascade: CascadeName) -> dict[str, Any]:
    """Delete a cascade with its certificates, and answer what it was; its classifiers stay."""
    return _payload(manage.delete(runtime_of(request).engine, cascade, on_stored=keeping(request, _payload)))


@answer(
    "POST", "/{cascade}/calibrations", Scope.WRITE, SubmittedCertificate, 409, name="calibrate_cascade", status_code=202
)
def post_calibration(
    request: Request, response: Response, cascade: CascadeName, given: CascadeSettings
) -> dict[str, Any]:
    """Have workers certify a cascade on the labels that all of its classifiers hold out.

    The answer comes at once; the cascade serves by the certificate as soon as the job is done.
    """
    submitted = submit_certificate(request, cascade, given)
    response.headers.update(_job_headers(submitted))
    return _submitted(submitted)


def submit_certificate(request: Request, cascade: str, given: CascadeSettings) -> CertificateRequest:
    """Record the job that certifies a cascade, and send it."""
    runtime, settings = runtime_of(request), cascade_settings_for(given.model_dump())
    require_worker(runtime)
    with refusing_too_many_jobs():
        submitted = request_certificate(
            runtime,
            cascade,
            settings,
            requester=requester_of(runtime, request.state.caller),
            on_stored=keeping(request, _submitted, _job_headers),
        )
    send_submitted(request, submitted.job_id)
    return submitted


def _submitted(submitted: CertificateRequest) -> dict[str, Any]:
    return {"job": submitted.job_id, "classifier": submitted.classifier, "rows": submitted.rows}


def _job_headers(submitted: CertificateRequest) -> dict[str, str]:
    return {"Location": job_path(submitted.classifier, submitted.job_id)}


@answer("POST", "/{cascade}/served", Scope.READ, ServedAnswer, 409, name="served_by_cascade", stores=False)
def post_served(request: Request, cascade: CascadeName, given: ScoredStages) -> dict[str, Any]:
    """Say what a cascade serves of points that its first stages have scored in jobs, and which stage is next."""
    return finite(as_json(serve.served(runtime_of(request).engine, cascade, given.jobs)))


@answer("POST", "/{cascade}/decide", Scope.SCORE, StageAnswer, 409, name="decide_by_stage", stores=False, decides=True)
def post_decide(request: Request, cascade: CascadeName, given: StageRequest) -> dict[str, Any]:
    """Ask a stage about a point that all before have rejected: it is served, or the answer names the next stage."""
    runtime = runtime_of(request)
    (point,) = given_points([given.point])
    found = serve.decide(runtime.engine, runtime.point_scorer, cascade, given.stage, point, stated=given.stated)
    return finite(as_json(found))


def _payload(found: CascadeReport) -> dict[str, Any]:
    return finite(as_json(found))


def _headers(found: CascadeReport) -> dict[str, str]:
    return {"Location": cascade_path(found.cascade)}
