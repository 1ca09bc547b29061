"""A classifier's name and settings, which a client can change if it has read them as they are."""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Header, Path, Request, Response

from venn_admit.api.models.classifiers import NewName, SettingsAnswer
from venn_admit.api.models.common import LARGEST_INTEGER
from venn_admit.api.routes.parts import OF_CLASSIFIER, ClassifierName, Routes, finite, runtime_of
from venn_admit.flows.data.settings import Check, ClassifierSettings, rename, retire, show_settings
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.paths import classifier_path
from venn_admit.http.problems import Refused
from venn_admit.results import settings_json
from venn_admit.store.access.keys import Scope
from venn_admit_client.codes import Problem

routes = Routes("settings", OF_CLASSIFIER)

SeenTag = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        description="Required: the ETag of the settings as they were last read.",
        examples=['"6f1d8a"'],
    ),
]
_TAG: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Tag of these settings.", "schema": {"type": "string"}}}}
}


@routes.answer("GET", "/settings", Scope.READ, SettingsAnswer, responses=_TAG)
def get_settings(request: Request, response: Response, classifier: ClassifierName) -> dict[str, Any]:
    """Show what can be changed of a classifier; a change must name the ETag in If-Match."""
    return _answer(response, show_settings(runtime_of(request).engine, classifier), _headers)


@routes.answer(
    "PATCH", "/settings", Scope.ADMIN, SettingsAnswer, 409, 412, 428, name="rename_classifier", responses=_TAG
)
def patch_settings(
    request: Request, response: Response, classifier: ClassifierName, given: NewName, if_match: SeenTag = None
) -> dict[str, Any]:
    """Rename a classifier. Everything stored refers to its number, and stays; keys for it are for it as before."""
    renamed = rename(
        runtime_of(request).engine,
        classifier,
        given.classifier,
        check=_unchanged_since(if_match),
        on_stored=keeping(request, _payload, _headers_of_renamed),
    )
    return _answer(response, renamed, _headers_of_renamed)


@routes.answer(
    "DELETE", "/settings/{setting}", Scope.WRITE, SettingsAnswer, 409, 412, 428, name="retire_setting", responses=_TAG
)
def delete_setting(
    request: Request,
    response: Response,
    classifier: ClassifierName,
    setting: Annotated[int, Path(ge=1, le=LARGEST_INTEGER, description="Number of a setting.", examples=[1])],
    if_match: SeenTag = None,
) -> dict[str, Any]:
    """Retire a setting: it is no longer recalibrated. Its calibrations stay, and calibrating brings it back."""
    left = retire(
        runtime_of(request).engine,
        classifier,
        setting,
        check=_unchanged_since(if_match),
        on_stored=keeping(request, _payload, _headers),
    )
    return _answer(response, left, _headers)


def _answer(
    response: Response, found: ClassifierSettings, headers_of: Callable[[ClassifierSettings], dict[str, str]]
) -> dict[str, Any]:
    response.headers.update(headers_of(found))
    return _payload(found)


def _payload(found: ClassifierSettings) -> dict[str, Any]:
    return finite(settings_json(found))


def _headers(found: ClassifierSettings) -> dict[str, str]:
    return {"ETag": _tag(found), "Cache-Control": "private, no-cache"}


def _headers_of_renamed(found: ClassifierSettings) -> dict[str, str]:
    return {"Location": f"{classifier_path(found.classifier.name)}/settings", **_headers(found)}


def _tag(found: ClassifierSettings) -> str:
    return f'"{hashlib.sha256(json.dumps(_payload(found), sort_keys=True).encode()).hexdigest()[:32]}"'


def _unchanged_since(seen: str | None) -> Check:
    if seen is None:
        raise Refused(
            428,
            Problem.PRECONDITION_REQUIRED,
            "expected the header If-Match with the ETag of the settings, got none; GET them first, so that you "
            "change nothing that you have not seen",
        )
    tags = {tag.strip() for tag in seen.split(",")}

    def check(found: ClassifierSettings) -> None:
        if not tags & {"*", _tag(found)}:
            raise Refused(
                412,
                Problem.PRECONDITION_FAILED,
                "the settings have changed since the ETag in If-Match was given; GET them again, and decide then",
            )

    return check
