"""Every step that is advised can be taken in every shell as it says there, or the shell's table says that it cannot."""

import ast
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from itertools import chain
from math import inf
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.routing import Match

import venn_admit
from tests.cli.program import get_command
from venn_admit.advice import ADVICE, NO_WAY, Blank, Render, Step, Verb, advice_on
from venn_admit.api.application import ROUTERS
from venn_admit.cli.advice import COMMANDS, command
from venn_admit.cli.program import app
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.errors import Code, VennAdmitError
from venn_admit.http.advice import REQUESTS, request_for
from venn_admit.interface.advice import CALLS, call
from venn_admit.interface.classifier import Classifier
from venn_admit.interface.connection import Connection
from venn_admit.web.steps import PAGES, on_page

NAME = "my reviews/2024"
TABLES = {"command line": COMMANDS, "HTTP": REQUESTS, "Python": CALLS}
OF_REPORTS = {
    verb: Step(verb, classifier=NAME)
    for verb in (Verb.REPORT, Verb.FIT, Verb.LIST_UNLABELLED, Verb.LABEL, Verb.MONITOR, Verb.RECALIBRATE)
}
SETTINGS = make_settings(2, 5, kappa=100, delta=inf)
BLANKS = {
    "D": 5,
    "CALIBRATION": 1,
    "FOLDER": "folder",
    "GENERATION": 2,
    "VERSION": "sha256:1",
    "NAME": "name",
    "JOB": 7,
}
BODIES: dict[Verb, dict[str, Any]] = {
    Verb.CREATE: {"classifier": "made", "classes": ["a", "b"]},
    Verb.INGEST: {"exemplars": [{"external_id": "a", "label": 1, "logits": [0.0, 1.0], "vector": [1.0]}]},
    Verb.LABEL: {"labels": [{"external_id": "a", "label": None}]},
}
"""What the users send beside what the advice names."""


def steps() -> Iterator[Step]:
    """Every step of the table, of an error with all parameters of its code; then those of reports."""
    known = {"classifier": NAME, "job": 7, "alpha": "0.2", "confidence": "0.9", "score": "reliability"}
    for code, advised in ADVICE.items():
        for _, step in advised:
            about = {name: known[name] for name in code.parameters if name in known}
            yield Step(step.verb, **about, **step.arguments)
    yield from OF_REPORTS.values()
    yield Step(Verb.CALIBRATE, classifier=NAME, settings=SETTINGS, neighbour_count=5)
    yield Step(Verb.ADD_ARGUMENT, kappa=1000)
    yield Step(Verb.USE, classifier=NAME, calibration=1)
    yield Step(Verb.AUDIT_INDEX, classifier=NAME)


def named(step: Step) -> str:
    return f"{step.verb.name} {sorted(step.arguments)}"


EACH = pytest.mark.parametrize("step", list(steps()), ids=named)


ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def test_every_shell_says_of_every_verb_how_or_that_there_is_no_way() -> None:
    for shell, table in TABLES.items():
        assert set(table) == set(Verb), shell
    assert {step.verb for step in steps()} == set(Verb)
    silent = {verb for verb, how in COMMANDS.items() if how == NO_WAY}
    assert silent == {Verb.ADD_ARGUMENT, Verb.NAME_ENCODER}, "whose commands are options alone"


def test_what_reports_advise_is_possible_in_every_shell() -> None:
    for step in (*OF_REPORTS.values(), Step(Verb.CALIBRATE, classifier=NAME, settings=SETTINGS, neighbour_count=5)):
        for render in (command, request_for, call, on_page):
            assert render(step), (step.verb, render)


@pytest.mark.parametrize("code", ADVICE)
@pytest.mark.parametrize(("render", "take"), [(command, "run {}"), (request_for, "send {}"), (call, "call {}")])
def test_advice_is_a_sentence(code: Code, render: Render, take: str) -> None:
    error = VennAdmitError("wrong", code=code, classifier=NAME, job=7)
    said = advice_on(error, render, take=take)
    steps = [step for _, step in ADVICE[code]]
    assert said.count("`") == 2 * sum(bool(render(step)) for step in steps)
    assert "{}" not in said


@EACH
def test_commands_are_parsed(step: Step) -> None:
    root: Any = get_command(app)
    words = [str(BLANKS.get(word, word)) for word in shlex.split(command(step))]
    if words[0].startswith("--"):
        every = [[*one.opts, *one.secondary_opts] for verb in verbs(root) for one in verb.params]
        options = set(chain.from_iterable(every))
        assert words[0] in options
        return
    assert words.pop(0) == "venn-admit"
    found: Any = root
    context = found.make_context("venn-admit", list(words), resilient_parsing=False)
    while hasattr(found, "commands"):
        rest = [*context._protected_args, *context.args]
        _, found, rest = found.resolve_command(context, rest)
        context = found.make_context(found.name, rest, parent=context)
    if "classifier" in step.arguments and "{classifier}" in COMMANDS[step.verb]:
        assert context.params["name"] == NAME


def verbs(group: Any) -> Iterator[Any]:
    for one in group.commands.values():
        yield from verbs(one) if hasattr(one, "commands") else [one]


@EACH
def test_requests_match_routes_and_their_bodies_are_valid(step: Step) -> None:
    said = request_for(step)
    if step.verb is Verb.ADD_ARGUMENT:
        assert set(json.loads(f"{{{filled(said)}}}")) <= members()
        return
    if said == NO_WAY or not re.match("[A-Z]+ /", said):
        assert REQUESTS[step.verb] == NO_WAY or step.verb is Verb.LIST_UNLABELLED
        return
    method, path, *body = said.split(" ", 2)
    asked = {"type": "http", "method": method, "path": path.replace("%2F", "-").replace("%20", " "), "headers": []}
    (route,) = (one for one in ROUTES if one.matches(asked)[0] is Match.FULL)
    given = json.loads(filled(body[0])) if body else {}
    if route.body_field is None:
        assert not given
        return
    model: Any = route.body_field.field_info.annotation
    TypeAdapter(model).validate_json(json.dumps(BODIES.get(step.verb, {}) | given))


def filled(body: str) -> str:
    """Fill in what the users have."""
    return re.sub(r": ([A-Z]+)\b", lambda found: f": {json.dumps(BLANKS[found[1]])}", body)


def members() -> set[str]:
    """Names of the members and query parameters of all requests."""
    models = [one.body_field.field_info.annotation for one in ROUTES if one.body_field is not None]
    fields = chain.from_iterable(getattr(model, "model_fields", {}) for model in models)
    return {*fields, *(one.alias for route in ROUTES for one in route.dependant.query_params)}


@EACH
def test_words_of_the_page_name_the_request(step: Step) -> None:
    if step.verb in PAGES or not re.match("[A-Z]+ /", request_for(step)):
        return
    method, path = request_for(step).split(" ")[:2]
    assert on_page(step).startswith(f"a {method} request to {path}")


@EACH
def test_calls_name_methods_and_their_parameters(step: Step) -> None:
    said = call(step)
    if step.verb is Verb.ADD_ARGUMENT:
        ast.parse(f"f({said})")
        taken = {name for kind in (Classifier, Connection) for _, one in methods(kind) for name in parameters(one)}
        assert {word.partition("=")[0] for word in said.split(", ")} <= taken
        return
    if said == NO_WAY:
        assert CALLS[step.verb] == NO_WAY
        return
    if said.startswith("venn-admit "):  # there is no call
        assert said == command(step)
        return
    made = ast.parse(said, mode="eval").body
    assert isinstance(made, ast.Call)
    assert isinstance(made.func, ast.Attribute)
    assert isinstance(made.func.value, ast.Name)
    holder: Any = {"classifier": Classifier, "connection": Connection, "venn_admit": venn_admit}[made.func.value.id]
    method = getattr(holder, made.func.attr)
    given = [one for one in made.args if not (isinstance(one, ast.Constant) and one.value is ...)]
    keywords = {str(one.arg): None for one in made.keywords}
    own = () if holder is venn_admit else (None,)
    inspect.signature(method).bind_partial(*own, *given, **keywords)
    if len(given) == len(made.args):  # nothing is left out
        inspect.signature(method).bind(*own, *given, **keywords)


def methods(kind: type) -> list[tuple[str, Any]]:
    return inspect.getmembers(kind, inspect.isfunction)


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)


def test_a_blank_is_written_as_it_is() -> None:
    step = Step(Verb.CREATE, dimension=Blank("D"))
    assert command(step).endswith("--dim D")
    assert request_for(step) == 'POST /v1/classifiers {"dimension": D}'
    assert call(step) == "connection.create(..., dimension=D)"


def test_names_are_quoted_as_each_shell_needs() -> None:
    step = Step(Verb.DELETE, classifier='a "b"; c')
    assert command(step) == "venn-admit delete 'a \"b\"; c'"
    assert request_for(step) == "DELETE /v1/classifiers/a%20%22b%22%3B%20c"
    assert call(step) == 'connection.delete("a \\"b\\"; c")'
