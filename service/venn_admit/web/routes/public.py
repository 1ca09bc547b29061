"""What anyone may have: the style sheet and the script of the page, and the interface for programs, without scripts."""

from collections import defaultdict
from typing import Any

from fastapi import HTTPException, Request, Response

from venn_admit.web.assets import assets
from venn_admit.web.rendering import page
from venn_admit.web.visitors import router

routes = router()

# Their address changes with their content.
_KEPT = {"cache-control": "public, max-age=31536000, immutable"}


@routes.get("/static/{name}")
def get_asset(name: str) -> Response:
    """Return an asset; anyone may have it."""
    found = assets().get(name)
    if found is None:
        raise HTTPException(404)
    return Response(found.content, media_type=found.media_type, headers=_KEPT)


@routes.get("/docs")
def get_docs(request: Request) -> Response:
    """Show every route with what it takes and answers; anyone may read it, as the document."""
    document = request.app.openapi()
    by_tag = defaultdict[str, list[tuple[str, str, Any]]](list)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append((method.upper(), path, operation))
    return page(request, "interface", title="HTTP interface", document=document, by_tag=by_tag)
