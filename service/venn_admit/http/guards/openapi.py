"""What the OpenAPI document says of the guards, which stand before the routes."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter

from venn_admit.http.guards.guard import SCHEME, GuardedRoute, guard_of, stores
from venn_admit.http.guards.idempotency import LONGEST_KEY

IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name for this request, such as a random UUID: if it is sent again, it is answered again, and "
    "nothing is done twice.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_KEY + 2,
        "pattern": rf'^("[!#-~]{{1,{LONGEST_KEY}}}"|[!#-~]{{1,{LONGEST_KEY}}})$',
        "title": "Idempotency-Key",
        "examples": ["5e1c7f0a-6f2e-4a9b-9f0d-1a2b3c4d5e6f"],
    },
}


def describe_guards(document: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    """Add to a document what the guards of its routes read, and the scope that each needs, as a role of the key."""
    for route in (route for router in routers for route in router.routes):
        assert isinstance(route, GuardedRoute)
        guard = guard_of(route)
        for method in route.methods or ():
            described = document["paths"][route.path][method.lower()]
            if guard is not None:
                described["security"] = [{SCHEME: [str(guard.scope)]}]
            if stores(route):
                described.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
