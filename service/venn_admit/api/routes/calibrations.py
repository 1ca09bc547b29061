"""Calibrations: the settings, the snapshots, their policies, and calibrating."""

from functools import partial
from typing import Annotated, Any

from fastapi import Header, Path, Request, Response

from venn_admit.api.models.classifiers import (
    CalibratedAnswer,
    Calibrations,
    CalibrationToUse,
    NewCalibration,
    PolicyAnswer,
    PutInUseAnswer,
    ShownCalibration,
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
from venn_admit.api.waiting import WaitingForWorkers
from venn_admit.errors import NotReadyError
from venn_admit.flows.calibration.calibrate import Calibrated, NearlyNothingUsable, calibrate, settings_for
from venn_admit.flows.calibration.in_use import Used, use
from venn_admit.flows.data.catalogue import find, list_calibrations, show_calibration
from venn_admit.flows.data.export import show_policy
from venn_admit.http.advice import request_for
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.paging import LARGEST_KEY, key_before, page
from venn_admit.http.paths import classifier_path
from venn_admit.results import calibrated_json, calibrations_json, in_use_json, setting_json
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json

routes = Routes("calibrations", OF_CLASSIFIER)

KnownTag = Annotated[
    str | None,
    Header(
        alias="If-None-Match", max_length=1000, description="The ETag of an earlier answer.", examples=['"7-current"']
    ),
]
_TAG: dict[str, Any] = {"headers": {"ETag": {"description": "Tag of this answer.", "schema": {"type": "string"}}}}
_UNCHANGED: dict[int | str, dict[str, Any]] = {
    200: _TAG,
    304: {"description": "It is as it was when the ETag was given.", **_TAG},
}


@routes.answer("GET", "/calibrations", Scope.READ, Calibrations, name="list_calibrations")
def get_calibrations(
    request: Request, classifier: ClassifierName, limit: Limit = FIRST_PAGE, cursor: Cursor = None
) -> dict[str, Any]:
    """List a classifier's calibrations, the newest first, and the settings they were made under."""
    found = list_calibrations(runtime_of(request).engine, classifier, limit=limit + 1, before=key_before(cursor))
    payload = calibrations_json(classifier, found)
    rows, follows = page(payload["calibrations"], limit, lambda row: int(row["calibration"]))
    return finite({**payload, "calibrations": rows, "next_cursor": follows})


@routes.answer("GET", "/calibration", Scope.READ, ShownCalibration, 409, responses=_UNCHANGED)
def get_current_calibration(
    request: Request, response: Response, classifier: ClassifierName, if_none_match: KnownTag = None
) -> Any:
    """Show the calibration that decisions are made by; its ETag changes when another is put in use."""
    return _shown(request, response, classifier, None, if_none_match)


@routes.answer("PUT", "/calibration", Scope.WRITE, PutInUseAnswer, 409, name="use_calibration")
def put_current_calibration(request: Request, classifier: ClassifierName, given: CalibrationToUse) -> dict[str, Any]:
    """Put a stored calibration in use, whatever it admits. Its setting is kept current from now on."""

    def answer(done: Used) -> dict[str, Any]:
        return in_use_json(classifier, done)

    done = use(
        runtime_of(request).engine,
        classifier,
        given.calibration,
        reason=given.reason,
        by=request.state.caller,
        on_stored=keeping(request, answer),
    )
    return answer(done)


@routes.answer("GET", "/calibrations/{calibration}", Scope.READ, ShownCalibration, responses=_UNCHANGED)
def get_calibration(
    request: Request,
    response: Response,
    classifier: ClassifierName,
    calibration: Annotated[int, Path(ge=1, le=LARGEST_KEY, description="Number of a calibration.", examples=[7])],
    if_none_match: KnownTag = None,
) -> Any:
    """Show a calibration."""
    return _shown(request, response, classifier, calibration, if_none_match)


def _shown(request: Request, response: Response, classifier: str, number: int | None, known: str | None) -> Any:
    row, setting = show_calibration(runtime_of(request).engine, classifier, number)
    # A snapshot never changes, except that another becomes current, and that its setting is put to use or retired.
    standing = "current" if row.is_current else "earlier"
    use = "in-use" if setting.is_in_use else "retired" if setting.retired_at else "kept"
    tag = f'"{row.calibration}-{standing}-{use}-{setting.due_for is not None:d}{setting.due_error is not None:d}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if known is not None and (
        known.strip() == "*" or tag in (one.strip().removeprefix("W/") for one in known.split(","))
    ):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return finite({**as_json(row._mapping), "asked": setting_json(setting)})


@routes.answer("GET", "/policy", Scope.READ, PolicyAnswer, 409)
def get_policy(request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None) -> dict[str, Any]:
    """Show the policy of a calibration, certified or on average, and all that was tested."""
    return finite(show_policy(runtime_of(request).engine, classifier, calibration))


@routes.answer("POST", "/calibrations", Scope.WRITE, CalibratedAnswer, 409, name="calibrate", status_code=201)
def post_calibration(
    request: Request, response: Response, classifier: ClassifierName, given: NewCalibration
) -> dict[str, Any]:
    """Compute a calibration from the held-out data and put it in use.

    If it admits less than half of what the one in use does, it is stored and not put in use, unless other settings were
    asked for and it admits something. Workers approximate points that arrived since the last one, so one must be up if
    there are any.
    """
    runtime = runtime_of(request)
    known = find(runtime.engine, classifier)
    asked = given.model_dump()
    dry_run = asked.pop("dry_run")
    settings = settings_for(known, asked.pop("method"), asked)
    done = calibrate(
        runtime,
        known,
        settings,
        shell=WaitingForWorkers(runtime),
        reason="asked for over HTTP",
        even_if_nearly_nothing_is_usable=asked["kappa"] is not None,
        by=request.state.caller,
        dry_run=dry_run,
        on_stored=keeping(request, _calibrated, partial(_headers, classifier)),
    )
    if isinstance(done, NearlyNothingUsable):
        raise NotReadyError(done.refusal(request_for))
    if done.is_stored:
        response.headers.update(_headers(classifier, done))
    return _calibrated(done)


def _headers(classifier: str, done: Calibrated) -> dict[str, str]:
    return {"Location": f"{classifier_path(classifier)}/calibrations/{done.calibration_id}"}


def _calibrated(done: Calibrated) -> dict[str, Any]:
    return finite(calibrated_json(done))
