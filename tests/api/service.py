"""Requests to the application, and what an error must look like."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.testclient import TestClient
from httpx2 import Response

from tests.cli.samples import NAME
from venn_admit.api.models.common import ProblemAnswer
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope

OWN = f"/v1/classifiers/{NAME}"


@dataclass(frozen=True, slots=True)
class Service:
    """The application, what it works with, and a key of each scope."""

    client: TestClient
    runtime: Runtime
    keys: Mapping[Scope, str]

    def get(self, path: str, *, key: Scope = Scope.READ, **options: Any) -> Response:
        return self.ask("GET", path, key=key, **options)

    def post(self, path: str, body: object, *, key: Scope = Scope.ADMIN) -> Response:
        """Send a body as JSON in ASCII, which can hold any text; none if it is None."""
        content = None if body is None else json.dumps(body)
        return self.ask("POST", path, key=key, content=content, headers={"Content-Type": "application/json"})

    def ask(self, method: str, path: str, *, key: Scope, **options: Any) -> Response:
        headers = {"Authorization": f"Bearer {self.keys[key]}", **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)


def check_problem(answer: Response, status: int, code: str, saying: str = "") -> ProblemAnswer:
    """See that an answer is an error of this kind, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = ProblemAnswer.model_validate(answer.json())
    assert (problem.status, problem.code) == (status, code)
    assert problem.type.endswith(code)
    assert saying in problem.detail, problem.detail
    return problem
