"""Every page in a real browser: usable by everyone, in light and dark, on a desk and on a phone."""

import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Browser, ViewportSize

from tests.cli.samples import NAME, SCORED_ROWS
from tests.web.browser.conftest import (
    CASCADE,
    DISPUTED,
    LOGITS_ONLY,
    LONG,
    NEW_CASCADE,
    PHONE,
    WIDE,
    Site,
    Visit,
    sign_in,
    visit,
)
from venn_admit.web.site import ROUTERS

SCREENSHOTS = "VENN_ADMIT_TEST_SCREENSHOTS"
OWN, BARE, LONG_NAMES = (f"/classifiers/{quote(name)}" for name in (NAME, LOGITS_ONLY, LONG))
PAGES = {
    "sign-in": "/sign-in",
    "overview": "/",
    "classifier": OWN,
    "data": f"{OWN}/data",
    "report": f"{OWN}/report",
    "methods": f"{OWN}/methods",
    "cell": f"{OWN}/calibrations/1/cells/1/1",
    "decisions": f"{OWN}/decisions",
    "decision": f"{OWN}/decisions/1",
    "replay": f"{OWN}/decisions/1/replay",
    "labels": f"{OWN}/labels",
    "budget": f"{OWN}/labels/budget",
    "chosen": f"{OWN}/labels?least_q=0&greatest_q=2",
    "review": f"{OWN}/labels/review",
    "settle": f"{OWN}/labels/review?settle={quote(DISPUTED)}",
    "bare-review": f"{BARE}/labels/review",
    "known": f"{OWN}/labels/known?external_id=train-1",
    "unknown": f"{OWN}/labels/known?external_id=scored-1",
    "jobs": f"{OWN}/jobs",
    "try": f"{OWN}/try",
    "keys": "/keys",
    "interface": "/docs",
    "missing": "/nowhere",
    "bare-classifier": BARE,
    "bare-data": f"{BARE}/data",
    "bare-report": f"{BARE}/report",
    "bare-methods": f"{BARE}/methods",
    "bare-decision": f"{BARE}/decisions/{SCORED_ROWS + 1}",
    "bare-replay": f"{BARE}/decisions/{SCORED_ROWS + 1}/replay",
    "bare-labels": f"{BARE}/labels",
    "bare-try": f"{BARE}/try",
    "long-classifier": LONG_NAMES,
    "long-decisions": f"{LONG_NAMES}/decisions",
    "long-decision": f"{LONG_NAMES}/decisions/{SCORED_ROWS + 12}",
    "cascades": "/cascades",
    "cascade": f"/cascades/{quote(CASCADE)}",
    "new-cascade": f"/cascades/{quote(NEW_CASCADE)}",
}
# What else the routes of pages answer with: assets, a table, and events.
NO_PAGES = {
    "/static/{name}",
    "/classifiers/{classifier}/labels/unlabelled.csv",
    "/classifiers/{classifier}/jobs/{job}/events",
}
# The address that is not there, and the label that is not known.
REFUSED = {"missing": 404, "unknown": 422}
LOOKS: dict[str, tuple[Literal["light", "dark"], ViewportSize]] = {
    "light": ("light", WIDE),
    "dark": ("dark", WIDE),
    "phone": ("light", PHONE),
    "phone-dark": ("dark", PHONE),
}


def test_every_page_is_listed() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    shown = {route.path for route in routes if "GET" in (route.methods or ())}
    paths = [unquote(path.partition("?")[0]) for path in PAGES.values()]
    listed = {route.path for route in routes if any(route.path_regex.fullmatch(path) for path in paths)}
    assert shown - listed == NO_PAGES


@pytest.mark.browser
@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_usable_and_stays_at_home(browser: Browser, site: Site, look: str) -> None:
    scheme, size = LOOKS[look]
    context = browser.new_context(color_scheme=scheme, viewport=size)
    seen = visit(context, site)
    sign_in(seen, site)
    folder = os.environ.get(SCREENSHOTS)
    problems: dict[tuple[str, str], list[object]] = {}
    for name, path in PAGES.items():
        assert seen.open(path) == REFUSED.get(name, 200), name
        if folder:
            seen.page.screenshot(path=Path(folder) / f"{name}-{look}.png", full_page=True)
        problems |= {(name, rule): found for rule, found in seen.barriers().items()}
        width = seen.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{name} is {width} px wide"
    context.close()
    assert not problems, "\n".join(f"{where}: {found}" for where, found in problems.items())
    # What is refused is told of in the console, as it should be.
    assert [said for said in seen.said if not any(str(status) in said for status in REFUSED.values())] == []
    assert [url for url in seen.asked if not url.startswith((site.url, "data:"))] == []


@pytest.mark.browser
def test_a_part_that_comes_later_leaves_the_title_of_its_page(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    seen = visit(context, site)
    sign_in(seen, site)
    for path, title in ((OWN, NAME), (f"{OWN}/labels", f"{NAME}: labels")):
        seen.open(path)
        assert seen.page.title() == f"{title} - venn-admit"
    context.close()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["overview", "long-classifier", "long-decisions", "report"])
def test_paper_shows_every_column_and_the_colours_of_the_map(visiting: Visit, name: str) -> None:
    """A sheet of A4 without its margins is 703 px wide, and does not scroll."""
    visiting.page.set_viewport_size({"width": 703, "height": 1000})
    visiting.open(PAGES[name])
    visiting.page.emulate_media(media="print")
    cut = visiting.page.evaluate(
        "[...document.querySelectorAll('table')].filter(it => it.getBoundingClientRect().right > innerWidth)"
        ".map(it => it.textContent.slice(0, 50))"
    )
    assert cut == []
    assert visiting.page.evaluate("document.documentElement.scrollWidth") <= 703
    kept = visiting.page.locator(".legend span").evaluate_all(
        "all => all.map(it => getComputedStyle(it).printColorAdjust)"
    )
    assert set(kept) == ({"exact"} if name == "report" else set())
