"""The interface for programs, for people to read: what the OpenAPI document says, without scripts."""

from collections import defaultdict
from typing import Any

from fastapi import Request, Response

from venn_admit.web.access import router
from venn_admit.web.rendering import page

routes = router()


@routes.get("/docs")
def get_docs(request: Request) -> Response:
    """Show every route with what it takes and answers; anyone may read it, as the document."""
    document = request.app.openapi()
    by_tag = defaultdict[str, list[tuple[str, str, Any]]](list)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append((method.upper(), path, operation))
    return page(request, "interface", title="HTTP interface", document=document, by_tag=by_tag)
