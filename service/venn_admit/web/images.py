"""Images among the attributes of exemplars: which of them the page may show."""

import re

LARGEST = 300_000
"""Characters of an image that is stored in an attribute, at most; a table of exemplars has many of them."""

# Raster images only: stored in the attribute, or at a path of this host without parameters.
_STORED = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_BESIDE = re.compile(r"/[\w.~%-][\w./~%-]*\.(png|jpe?g|gif|webp)", re.ASCII | re.IGNORECASE)


def image_source(value: object) -> str | None:
    """Return the address of an image that the page may show; None for anything else, images of other hosts included.

    >>> image_source("/pictures/7.png")
    '/pictures/7.png'
    >>> image_source("https://elsewhere.example/7.png"), image_source("//elsewhere.example/7.png"), image_source(7)
    (None, None, None)
    """
    if not isinstance(value, str) or len(value) > LARGEST:
        return None
    return value if _STORED.fullmatch(value) or _BESIDE.fullmatch(value) else None
