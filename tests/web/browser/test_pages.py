"""Every page in a real browser: usable by everyone, in light and dark, on a desk and on a phone."""

import os
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ViewportSize

from tests.cli.samples import NAME
from tests.web.browser.conftest import PHONE, WIDE, Site, sign_in, visit

pytestmark = pytest.mark.browser

SCREENSHOTS = "VENN_ADMIT_TEST_SCREENSHOTS"
OWN = f"/classifiers/{NAME}"
PAGES = {
    "sign-in": "/sign-in",
    "overview": "/",
    "classifier": OWN,
    "report": f"{OWN}/report",
    "cell": f"{OWN}/calibrations/1/cells/1/1",
    "decisions": f"{OWN}/decisions",
    "decision": f"{OWN}/decisions/1",
    "replay": f"{OWN}/decisions/1/replay",
    "labels": f"{OWN}/labels",
    "jobs": f"{OWN}/jobs",
    "try": f"{OWN}/try",
    "keys": "/keys",
    "missing": "/nowhere",
}
LOOKS: dict[str, tuple[Literal["light", "dark"], ViewportSize]] = {
    "light": ("light", WIDE),
    "dark": ("dark", WIDE),
    "phone": ("light", PHONE),
    "phone-dark": ("dark", PHONE),
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_usable_and_stays_at_home(browser: Browser, site: Site, look: str) -> None:
    scheme, size = LOOKS[look]
    context = browser.new_context(color_scheme=scheme, viewport=size)
    seen = visit(context, site)
    sign_in(seen, site)
    folder = os.environ.get(SCREENSHOTS)
    problems: dict[tuple[str, str], list[object]] = {}
    for name, path in PAGES.items():
        seen.open(path)
        if folder:
            seen.page.screenshot(path=Path(folder) / f"{name}-{look}.png", full_page=True)
        found = Axe().run(seen.page)
        for violation in found.response["violations"]:
            problems[name, violation["id"]] = [node["target"] for node in violation["nodes"]]
        width = seen.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{name} is {width} px wide"
    context.close()
    assert not problems, "\n".join(f"{where}: {found}" for where, found in problems.items())
    # The page that is not there is told of in the console, as it should be.
    assert [said for said in seen.said if "404" not in said] == []
    assert [url for url in seen.asked if not url.startswith((site.url, "data:"))] == []
