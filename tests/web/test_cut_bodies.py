"""A client that leaves in the middle of a body: whatever it asked for, that is no fault of the program."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from structlog.testing import capture_logs

from tests.cli.samples import NAME
from tests.web.visitor import Visitor
from venn_admit.api import application
from venn_admit.http.uploads import takes_file
from venn_admit.store.access.keys import Scope
from venn_admit.web import site
from venn_admit.web.forms import MEDIA_TYPE as FORM
from venn_admit.web.visitors import COOKIE, PageRoute
from venn_admit_client.bodies import JSON, PARQUET


def with_bodies() -> Iterator[tuple[str, str, str]]:
    """Method, path and media type of everything that may bring a body."""
    for route in (route for router in application.ROUTERS + site.ROUTERS for route in router.routes):
        assert isinstance(route, APIRoute)
        path = re.sub(r"{(\w+)}", lambda found: NAME if found[1] == "classifier" else "1", route.path)
        kind = FORM if isinstance(route, PageRoute) else PARQUET if takes_file(route) else JSON
        for method in sorted(route.methods & {"DELETE", "PATCH", "POST", "PUT"} if route.methods else ()):
            query = "split=train" if path.endswith("exemplars/file") else ""
            yield method, f"{path}?{query}", kind


def leave(visitor: Visitor, method: str, address: str, kind: str) -> int:
    """Send the beginning of a body, leave, and return the status that the log has."""
    path, _, query = address.partition("?")
    headers = {
        "authorization": f"Bearer {visitor.keys[Scope.ADMIN]}",
        "cookie": f"{COOKIE}={visitor.session}",
        "content-type": kind,
        "content-length": "1000",
        "if-match": "*",
    }
    scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "scheme": "http", "method": method, "path": path}
    scope |= {"raw_path": path.encode(), "query_string": query.encode()}
    scope |= {"headers": [(name.encode(), value.encode()) for name, value in headers.items()]}
    messages = iter([{"type": "http.request", "body": b"a", "more_body": True}])

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(_: Any) -> None: ...

    with capture_logs() as entries:
        asyncio.run(visitor.client.app(scope, receive, send))  # type: ignore[arg-type] # an ASGI application
    assert [entry["event"] for entry in entries] == ["request"], entries
    status: int = entries[0]["status"]
    return status


@pytest.mark.parametrize(("method", "address", "kind"), sorted(with_bodies()))
def test_it_is_no_fault(shared: Visitor, method: str, address: str, kind: str) -> None:
    shared.sign_in()
    assert leave(shared, method, address, kind) == 400


def test_there_are_bodies_of_every_kind() -> None:
    assert {kind for _, _, kind in with_bodies()} == {JSON, PARQUET, FORM}
