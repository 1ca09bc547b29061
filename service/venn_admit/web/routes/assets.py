"""The style sheet and the script of the page."""

from fastapi import HTTPException, Response

from venn_admit.web.access import router
from venn_admit.web.assets import assets

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
