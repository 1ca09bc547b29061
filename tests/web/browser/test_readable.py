"""What can be read: words in charts, and what goes on beyond the edge of a narrow screen."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, ViewportSize

from tests.cli import samples
from tests.report.conftest import selective
from tests.web.browser.conftest import PHONE, WIDE, Site, sign_in, visit
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.pages.evaluation import render_page

__all__ = ["selective"]

pytestmark = pytest.mark.browser

LEAST_PIXELS = 11
# Some are turned.
WORDS = """() => [...document.querySelectorAll("svg text")].filter(it => it.getBoundingClientRect().height).map(it => {
    const { a, b } = it.getScreenCTM()
    return { word: it.textContent, size: parseFloat(getComputedStyle(it).fontSize) * Math.hypot(a, b) }
})"""
WIDER = "it => it.scrollWidth > it.clientWidth + 1"


@contextmanager
def static_page(browser: Browser, report: DatasetReport, folder: Path, size: ViewportSize) -> Iterator[Page]:
    """The page that `evaluate --out` writes, opened as a file."""
    path = folder / "index.html"
    path.write_text(render_page("Test", {}, [report]), encoding="utf-8")
    context = browser.new_context(viewport=size)
    page = context.new_page()
    page.goto(path.as_uri())
    yield page
    context.close()


def ink(box: Locator) -> float:
    """How far what stands at the right edge of a box is from the ground, on the average."""
    box.scroll_into_view_if_needed()
    pixels = np.asarray(Image.open(BytesIO(box.screenshot())).convert("L"), dtype=float)
    edge = pixels[:, -4:]
    return float(np.abs(edge - np.median(pixels[:, :4])).mean())


def check_words(page: Page) -> None:
    """See that a page has charts, and that their words are large enough."""
    words = page.evaluate(WORDS)
    assert len(words) > 50
    assert [each for each in words if each["size"] < LEAST_PIXELS] == []


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_words_of_charts_are_large_enough(
    browser: Browser, site: Site, selective: DatasetReport, tmp_path: Path, size: ViewportSize
) -> None:
    with static_page(browser, selective, tmp_path, size) as page:
        check_words(page)
    context = browser.new_context(viewport=size)
    seen = visit(context, site)
    sign_in(seen, site)
    seen.open(f"/classifiers/{samples.NAME}/report")
    check_words(seen.page)
    context.close()


def test_what_would_settle_a_verdict_is_not_cut(browser: Browser, selective: DatasetReport, tmp_path: Path) -> None:
    with static_page(browser, selective, tmp_path, WIDE) as page:
        box = page.locator(".scroll", has_text="what would settle it").first
        assert not box.evaluate(WIDER)


def test_what_goes_on_at_the_side_fades_out_until_it_was_scrolled_to(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=PHONE)
    seen = visit(context, site)
    sign_in(seen, site)
    seen.open(f"/classifiers/{samples.NAME}/report")
    box = seen.page.locator(".scroll:has(table.map)")
    assert box.evaluate(WIDER)
    faded = ink(box)
    box.evaluate("it => it.scrollTo({ left: it.scrollWidth })")
    seen.page.wait_for_timeout(300)
    assert faded < 0.2 * ink(box)
    newest = seen.page.locator(".scroll.ends-now")
    assert newest.evaluate(WIDER)
    assert newest.evaluate("it => it.scrollLeft") == 0  # where the last day stands, because it runs to the left
    last = newest.locator("svg").bounding_box()
    assert last is not None
    assert last["x"] < 0
    context.close()
