"""Fits, which workers compute, their parameters, and recalibrations."""

from functools import partial
from typing import Any

from fastapi import Request, Response

from venn_admit.api.models.fits import (
    AdoptedParameters,
    FittedAnswer,
    NewParameters,
    ParametersAnswer,
    Recalibrations,
    SubmittedFit,
)
from venn_admit.api.routes.jobs import JobNumber, place_of, send_submitted
from venn_admit.api.routes.parts import OF_CLASSIFIER, CalibrationNumber, ClassifierName, Routes, finite, runtime_of
from venn_admit.api.waiting import WaitingForWorkers, require_worker
from venn_admit.errors import NotReadyError
from venn_admit.files.text_files import given_parameters
from venn_admit.flows.calibration.fit import Adopted, FitRequest, adopt_parameters, request_fit, show_fit
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.export import show_parameters
from venn_admit.flows.jobs.listing import show_job
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.guards.running_jobs import refusing_too_many_jobs, requester_of
from venn_admit.results import recalibrated_json
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json

routes = Routes("fits", OF_CLASSIFIER)


@routes.answer("POST", "/fit", Scope.WRITE, SubmittedFit, 409, name="fit", status_code=202)
def post_fit(request: Request, response: Response, classifier: ClassifierName) -> dict[str, Any]:
    """Have workers fit the KNN approximation, the localizer and the reliability score on split knn.

    The answer comes at once; what the job has fitted is current as soon as it is done.
    """
    runtime = runtime_of(request)
    find(runtime.engine, classifier)
    require_worker(runtime)
    with refusing_too_many_jobs():
        fit = request_fit(
            runtime,
            classifier,
            requester=requester_of(runtime, request.state.caller),
            on_stored=keeping(request, _submitted, partial(place_of, classifier)),
        )
    send_submitted(request, fit.job_id)
    response.headers.update(place_of(classifier, fit))
    return _submitted(fit)


def _submitted(fit: FitRequest) -> dict[str, Any]:
    return {"job": fit.job_id, "rows": fit.rows}


@routes.answer("GET", "/jobs/{job}/fit", Scope.READ, FittedAnswer, 409)
def get_fit(request: Request, classifier: ClassifierName, job: JobNumber) -> dict[str, Any]:
    """Show what a job that is done has fitted."""
    engine = runtime_of(request).engine
    show_job(engine, job, name=classifier)
    return finite(as_json(show_fit(engine, job)))


@routes.answer("GET", "/parameters", Scope.READ, ParametersAnswer, 409, response_model_exclude_unset=True)
def get_parameters(
    request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None
) -> dict[str, Any]:
    """Return the parameters of a calibration; before the first, those of the last fit."""
    return finite(show_parameters(runtime_of(request).engine, classifier, calibration))


@routes.answer("POST", "/parameters", Scope.WRITE, AdoptedParameters, name="use_parameters", status_code=201)
def post_parameters(request: Request, classifier: ClassifierName, given: NewParameters) -> dict[str, Any]:
    """Use parameters that were fitted elsewhere, instead of fitting."""
    found = given_parameters("body", given.model_dump())
    adopted = adopt_parameters(
        runtime_of(request).engine,
        classifier,
        found.knn,
        found.eta_loc,
        found.reliability,
        on_stored=keeping(request, _adopted),
    )
    return _adopted(adopted)


def _adopted(adopted: Adopted) -> dict[str, Any]:
    return {"knn_parameters": adopted.parameters.id, "recalibrations_due": adopted.recalibrations}


@routes.answer(
    "POST", "/recalibrate", Scope.WRITE, Recalibrations, 409, name="recalibrate", response_model_exclude_unset=True
)
def post_recalibrate(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """Recalibrate now, under every setting that is not retired, if labels or data have arrived.

    Workers approximate points that arrived since the last calibration, so one must be up if there are any.
    """
    runtime = runtime_of(request)
    served = recalibrate(runtime, classifier, shell=WaitingForWorkers(runtime), by=request.state.caller)
    errors = [step.error for _, step in served if step is not None and step.error is not None]
    if errors:
        raise NotReadyError(f"{len(errors)} of {len(served)} recalibrations failed: {errors[0]}")
    return finite({"recalibrations": [recalibrated_json(due, step) for due, step in served]})
