"""What routes have in common: the runtime, parameters, and how errors are documented."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.types import DecoratedCallable

from venn_admit.api.models.common import Name, ProblemAnswer
from venn_admit.files.output.exports import finite_json
from venn_admit.http.guards.guard import GuardedRoute, needs
from venn_admit.http.paging import DEFAULT_PAGE, LARGEST_KEY, LARGEST_PAGE
from venn_admit.http.problems import MEDIA_TYPE
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope

ClassifierName = Annotated[Name, Path(description="The classifier's name.", examples=["reviews"])]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="The most rows of the page.", examples=[100])]
Cursor = Annotated[
    str | None,
    Query(
        max_length=600,  # the longest name, of four bytes a character, is in 542
        pattern=r"^[A-Za-z0-9_-]*$",
        description="The `next_cursor` of the page before; left out for the first page.",
        examples=["YmVmb3JlIDQy"],
    ),
]
CalibrationNumber = Annotated[
    int | None,
    Query(ge=1, le=LARGEST_KEY, description="Number of a calibration; left out: the one in use.", examples=[7]),
]
OF_CLASSIFIER = "/classifiers/{classifier}"
FIRST_PAGE = DEFAULT_PAGE

_DESCRIPTIONS = {
    401: "No key was shown, or one that is not valid.",
    403: "The key does not allow this.",
    404: "Not found.",
    406: "The answer has no such type.",
    408: "The body arrives too slowly.",
    409: "An earlier step is missing or out of date, or the input contradicts what is stored.",
    412: "The settings have changed since the ETag in If-Match was given.",
    413: "The body is too large.",
    415: "The body has another type, or is compressed.",
    422: "The request is invalid.",
    428: "The header If-Match is needed.",
    429: "The key has sent too many requests, or has too many requests, files, jobs or streams at a time; try again "
    "later.",
    503: "The database, the broker or a worker is missing; try again.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how errors of these statuses are documented."""
    schema = {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}
    return {
        status: {"description": _DESCRIPTIONS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


class Routes(APIRouter):
    """Routes that check the key first, and may fail as every guarded route may."""

    def __init__(self, tag: str, below: str = "") -> None:
        """Make routes that the document lists under a tag, and whose paths all begin alike."""
        super().__init__(
            prefix=f"/v1{below}",
            route_class=GuardedRoute,
            tags=[tag],
            responses=problems(401, 403, 422, 429, 503),
            generate_unique_id_function=lambda route: route.name,
        )

    def answer(
        self,
        method: str,
        path: str,
        scope: Scope,
        model: Any,
        *statuses: int,
        every_classifier: bool = False,
        stores: bool = True,
        decides: bool = False,
        remembers: bool = False,
        responses: Mapping[int | str, dict[str, Any]] | None = None,
        **more: Any,
    ) -> Callable[[DecoratedCallable], DecoratedCallable]:
        """Answer requests of keys that the guard of `needs` lets through.

        Args:
            method: The method of the requests.
            path: Their path below that which all begin with.
            scope: As in `needs`, as are `every_classifier`, `stores`, `decides` and `remembers`.
            model: What the answer is; None: it is not JSON.
            statuses: Those of the problems that may arise here, beside those of every route, of every body, and of
                every path with a name or number in it.
            responses: What else the document says of answers, by their status.
            more: What else FastAPI takes.
        """
        more |= {"response_class": Response} if model is None else {"response_model": model}
        guard = needs(scope, every_classifier=every_classifier, stores=stores, decides=decides, remembers=remembers)
        named = (404,) if "{" in self.prefix + path else ()
        documented = {**(responses or {}), **problems(*named, *statuses)}
        return self.api_route(path, methods=[method], dependencies=[guard], responses=documented, **more)


def runtime_of(request: Request) -> Runtime:
    """Return what the application works with."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def finite(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what JSON can hold: NaN and infinities become text."""
    found: dict[str, Any] = finite_json(payload)
    return found
