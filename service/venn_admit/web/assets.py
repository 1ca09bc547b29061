"""The style sheet and the script of the page, which browsers may keep: their address changes with their content."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from math import inf
from urllib.parse import unquote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader

from venn_admit.core.calibrators.arguments import setting_text
from venn_admit.layer.contributions import contributions_in, sum_rows, without_contributions
from venn_admit.report.calibration.sections import labels_text
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.pages.environment import page_environment
from venn_admit.report.wording import share_text, time_text

PACKAGE = "venn_admit.web"
# The pages of a classifier: the parts of the address that follow its name, and what the link says.
TABS = (
    ((), "Overview"),
    (("data",), "Data"),
    (("report",), "Report"),
    (("methods",), "Methods"),
    (("decisions",), "Decisions"),
    (("labels",), "Labels"),
    (("jobs",), "Jobs"),
    (("try",), "Try a point"),
)
LARGEST = 300_000
"""Characters of an image that is stored in an attribute, at most; a table of exemplars has many of them."""
# Raster images only: stored in the attribute, or at a path of this host without parameters.
_STORED = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_BESIDE = re.compile(r"/[\w.~%-][\w./~%-]*\.(png|jpe?g|gif|webp)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page. tag: of its content."""

    name: str
    content: bytes
    media_type: str

    @property
    def address(self) -> str:
        """Where it is served, with a tag of its content."""
        return f"/static/{self.name}?v={hashlib.sha256(self.content).hexdigest()[:16]}"


@cache
def environment() -> Environment:
    """Return what renders the templates: those of this room, and those of the reports behind them."""
    made = page_environment()
    assert made.loader is not None, "the reports have templates"
    made.loader = ChoiceLoader([PackageLoader(PACKAGE), made.loader])
    made.globals |= {"assets": assets, "tabs": TABS, "inf": inf}
    made.filters |= {
        "carried": contributions_in,
        "image": image_source,
        "instant": datetime.fromisoformat,
        "interval": interval_text,
        "labels": labels_text,
        "minute": time_text,
        "path": unquote,
        "query": urlencode,
        "setting": setting_text,
        "plain_attributes": without_contributions,
        "sum_rows": sum_rows,
        "share": lambda share: "" if share is None else share_text(share),
    }
    return made


@cache
def assets() -> dict[str, Asset]:
    """Return every asset by its name: the style of the reports comes first, and ours adds to it."""
    style = "\n".join(environment().get_template(name).render() for name in ("style.css.j2", "site.css.j2"))
    icon = files(PACKAGE).joinpath("static/icon.svg").read_bytes()
    script = files(PACKAGE).joinpath("static/htmx.min.js").read_bytes()
    found = (
        Asset("style.css", style.encode(), "text/css"),
        Asset("htmx.min.js", script, "text/javascript"),
        Asset("forms.js", files(PACKAGE).joinpath("static/forms.js").read_bytes(), "text/javascript"),
        Asset("jobs.js", files(PACKAGE).joinpath("static/jobs.js").read_bytes(), "text/javascript"),
        Asset("review.js", files(PACKAGE).joinpath("static/review.js").read_bytes(), "text/javascript"),
        Asset("icon.svg", icon, "image/svg+xml"),
    )
    return {one.name: one for one in found}


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
