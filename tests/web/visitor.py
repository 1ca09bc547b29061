"""A visitor of the page without a browser: what is signed in, and the forms that are sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.testclient import TestClient
from httpx2 import Response

from tests.cli.samples import NAME
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.web.visitors import COOKIE, FORM_FIELD, SIGN_IN

OWN = f"/classifiers/{NAME}"
_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class Visitor:
    """The service, what it works with, and a key of each scope."""

    client: TestClient
    runtime: Runtime
    keys: Mapping[Scope, str]

    def sign_in(self, scope: Scope = Scope.ADMIN, *, key: str | None = None) -> Response:
        """Show a key, and keep the session from then on."""
        self.client.cookies.clear()
        return self.client.post(SIGN_IN, data={"key": self.keys[scope] if key is None else key, "next": "/"})

    def open(self, path: str, **options: Any) -> str:
        """Return the text of a page, which must be there."""
        answer = self.client.get(path, **options)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return answer.text

    def send(self, path: str, **fields: str) -> Response:
        """Send a form with the token of the session."""
        found = _TOKEN.search(self.client.get("/").text)
        assert found is not None, "nobody has signed in"
        return self.client.post(path, data={FORM_FIELD: found[1], **fields})

    @property
    def session(self) -> str | None:
        return self.client.cookies.get(COOKIE)
