"""Errors as pages, in the words of the other shells."""

from collections.abc import Callable

import structlog
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from venn_admit.api.models.common import ProblemAnswer
from venn_admit.errors import Code
from venn_admit.http.problems import answer_to_fault
from venn_admit.web.rendering import page

log = structlog.get_logger()

# Below these everything is for programs.
_FOR_PROGRAMS = ("/v1", "/health", "/metrics")
# The page has a body of its own.
_OF_BODY = {"content-type", "content-length"}


def page_of_problem(request: Request, problem: Response, *, classifier: str | None = None) -> Response:
    """Return the page that says what an answer to a program says, with its headers, such as when to try again.

    classifier: whose page it is, unless the problem is that there is none of this name.
    """
    said = ProblemAnswer.model_validate_json(bytes(problem.body))
    if said.code == Code.UNKNOWN_CLASSIFIER:
        classifier = None
    answer = page(request, "problem", status=said.status, title=said.title, problem=said, classifier=classifier)
    answer.headers.update({name: value for name, value in problem.headers.items() if name not in _OF_BODY})
    return answer


def page_of_fault(request: Request) -> Response:
    """Log the exception that is being handled, a fault of the program, and return the page that says so."""
    log.exception("fault", method=request.method, path=request.url.path)
    return page_of_problem(request, answer_to_fault())


def register_failures(app: FastAPI, methods_at: Callable[[Scope], set[str]]) -> None:
    """Have an application answer with a page where no program asks: also if there is no such page.

    methods_at: those that the address of a request takes.
    """
    for_programs = app.exception_handlers[HTTPException]

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if request.url.path.startswith(_FOR_PROGRAMS):
            answered = for_programs(request, error)
            assert isinstance(answered, Response), "the API answers at once"
            return answered
        title = {404: "There is no such page", 405: "The page does not take this"}.get(error.status_code, "Refused")
        refused = page(request, "problem", status=error.status_code, title=title, problem=None, classifier=None)
        refused.headers.update(error.headers or {})
        if error.status_code == 405:
            refused.headers["Allow"] = ", ".join(sorted(methods_at(request.scope)))
        return refused

    app.add_exception_handler(HTTPException, answer)
