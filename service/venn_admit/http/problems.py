"""Errors as answers: application/problem+json (RFC 9457), with the codes and the wording of the command line."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from venn_admit.errors import Code, VennAdmitError
from venn_admit.http.advice import advised
from venn_admit_client.codes import Problem

MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger()


STATUS: Mapping[str, int] = {
    Code.FAILED: 500,
    Code.INVALID_INPUT: 422,
    Code.CONFLICT: 409,
    Code.NOT_FOUND: 404,
    Code.NOT_READY: 409,
    Code.OUTDATED: 409,
    Code.DATABASE: 503,
    Code.JOB: 503,
    Code.ALARM: 409,
    Code.BROKER: 503,
    # These differ from the rest of their families: only the service's operator can do something about them,
    Code.SCHEMA_OUTDATED: 503,
    Code.PROGRAM_OUTDATED: 503,
    # or only the client.
    Code.JOB_NOT_RUNNING: 409,
    Code.JOB_RUNNING: 409,
}
"""The status of an error: that of its code, or else of its family."""

TITLES: Mapping[str, str] = {
    Code.FAILED: "The request failed",
    Code.INVALID_INPUT: "The input is invalid",
    Code.CONFLICT: "The input contradicts what is stored",
    Code.NOT_FOUND: "Not found",
    Code.NOT_READY: "An earlier step is missing",
    Code.OUTDATED: "An earlier step is out of date",
    Code.DATABASE: "The database failed",
    Code.JOB: "The job did not complete",
    Code.ALARM: "An alarm stands",
    Code.BROKER: "The broker failed",
}

# Their messages name hosts and users, which are no business of the client; the log has them.
_HIDDEN: Mapping[str, str] = {
    Code.DATABASE_BUSY: "other requests keep all connections of this process to the database; send it again after as "
    "many seconds as Retry-After says",
    Code.DATABASE: "the database failed or cannot be reached; try again, or ask the service's operator, whose log "
    "says more",
    Code.BROKER: "the broker cannot be reached; try again, or ask the service's operator, whose log says more",
}

_STATUS_PROBLEMS = {404: Problem.NO_SUCH_ROUTE, 405: Problem.METHOD_NOT_ALLOWED, 413: Problem.BODY_TOO_LARGE}


class Refused(Exception):  # noqa: N818 - a request that is refused is no fault
    """A request that is refused for a reason that only HTTP has."""

    def __init__(self, status: int, problem: Problem, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = problem
        self.headers = headers

    def answer(self) -> Response:
        """Return the answer that says so."""
        return problem_answer(self.status, self.problem, self.problem.heading, str(self), headers=self.headers)


def unauthenticated(detail: str, *, known: bool = True) -> Refused:
    """Return the refusal of a request; known: whether it showed a key or token, though no valid one."""
    challenge = 'Bearer error="invalid_token"' if known else "Bearer"
    return Refused(401, Problem.UNAUTHENTICATED, detail, headers={"WWW-Authenticate": challenge})


def forbidden(detail: str) -> Refused:
    """Return the refusal of what a key or token does not allow."""
    return Refused(403, Problem.FORBIDDEN, detail)


def problem_answer(
    status: int,
    code: str,
    title: str,
    detail: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    errors: Sequence[Mapping[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error as an answer.

    Args:
        status: The HTTP status.
        code: What the error is about.
        title: The same for every error of its kind.
        detail: What was expected, what was received, where, and what to do.
        parameters: Those of the code.
        errors: Each value of the request that is invalid.
        headers: Further headers.
    """
    body: dict[str, Any] = {
        "type": f"urn:venn-admit:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "parameters": dict(parameters or {}),
    }
    if errors is not None:
        body["errors"] = errors
    # In ASCII, because a message may quote text that UTF-8 cannot encode.
    return Response(
        json.dumps(body, ensure_ascii=True, allow_nan=False), status, media_type=MEDIA_TYPE, headers=dict(headers or {})
    )


def status_of(error: Exception) -> int:
    """Return the status of the answer to an error, of whatever kind."""
    match error:
        case VennAdmitError():
            return STATUS.get(error.code, STATUS[error.code.family])
        case Refused():
            return error.status
        case RequestValidationError():
            return 422
        case HTTPException():
            return error.status_code
        case ClientDisconnect():
            return 400
    return 500


def answer_to_error(error: VennAdmitError) -> Response:
    """Return an error of the flows as an answer."""
    family = error.code.family
    status = status_of(error)
    if status >= 500:
        log.error("request failed", code=str(error.code), reason=str(error))
    hidden = _HIDDEN.get(error.code, _HIDDEN.get(family))
    return problem_answer(
        status,
        error.code,
        TITLES[family],
        advised(error) if hidden is None else hidden,
        parameters=error.parameters,
        headers={"Retry-After": "5"} if status == 503 else None,
    )


def answer_to_fault() -> Response:
    """Return the answer to a request at which the program failed; the log says how."""
    detail = "this is a fault of the program, whose log says more; report it"
    return problem_answer(500, Problem.INTERNAL, Problem.INTERNAL.heading, detail)


def register_problems(app: FastAPI, methods_at: Callable[[Scope], set[str]]) -> None:
    """Have an application answer every error in this form. methods_at: those that the address of a request takes."""

    def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        methods = methods_at(request.scope)
        if error.status_code == 405 and methods:
            headers["Allow"] = ", ".join(sorted(methods))
        return _answer_to_framework(error, headers)

    app.add_exception_handler(VennAdmitError, _on_error)
    app.add_exception_handler(Refused, _on_refusal)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, on_http)


def _on_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, VennAdmitError)
    return answer_to_error(error)


def _on_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return error.answer()


def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer_to_invalid(error)


def answer_to_invalid(error: RequestValidationError) -> Response:
    """Return the answer that names every value that is invalid, without repeating it: it may be long, or a secret."""
    found: dict[tuple[str | int, ...], list[str]] = {}
    for one in error.errors():
        *holder, last = one["loc"]
        is_there = one["type"] != "missing" or not holder
        at = _place(one["loc"], error.body) if is_there else (*_place(holder, error.body), last)
        found.setdefault(at, []).append(one["msg"])
    errors = [{"at": list(at), "message": _message(said)} for at, said in list(found.items())[:_MOST_ERRORS]]
    first = errors[0]
    where = ".".join(map(str, first["at"]))
    more = f" ({len(found) - 1} more)" if len(found) > 1 else ""
    problem = Problem.INVALID_REQUEST
    return problem_answer(422, problem, problem.heading, f"{where}: {first['message']}{more}", errors=errors)


_MOST_ERRORS = 20


def _place(location: Sequence[str | int], body: object) -> tuple[str | int, ...]:
    """Return where a value is, without names of types: one that may be of several has those in its location, too.

    >>> _place(("body", "label", "constrained-str"), {"label": 1.5}), _place(("query", "limit"), None)
    (('body', 'label'), ('query', 'limit'))
    """
    source, *parts = location
    if source != "body":
        return tuple(location)
    place: list[str | int] = [source]
    for part in parts:
        if isinstance(part, int):
            body = body[part] if isinstance(body, list) and part < len(body) else None
        elif isinstance(body, Mapping) and part in body:
            body = body[part]
        else:
            continue
        place.append(part[:100] if isinstance(part, str) else part)
    return tuple(place)


_SHOULD_BE = "Input should be "


def _message(said: Sequence[str]) -> str:
    """Return one sentence for a value that is of none of the types that it may be of.

    >>> _message(["Input should be a valid integer", "Input should be a valid string"])
    'Input should be a valid integer or a valid string'
    """
    first, *others = dict.fromkeys(said)
    return " or ".join([first, *(one.removeprefix(_SHOULD_BE) for one in others)])


def _answer_to_framework(error: HTTPException, headers: Mapping[str, str]) -> Response:
    """Answer what the framework refuses by itself."""
    status = status_of(error)
    problem = _STATUS_PROBLEMS.get(status, Problem.INVALID_REQUEST)
    details = {
        Problem.NO_SUCH_ROUTE: "there is no such address; /v1/openapi.json lists those that there are",
        Problem.METHOD_NOT_ALLOWED: "the address does not take this method; /v1/openapi.json says which it takes",
    }
    detail = details.get(problem, str(error.detail))
    return problem_answer(status, problem, problem.heading, detail, headers=headers)
