"""Every form in a real browser, as people fill it in: also by the keyboard alone, and without scripts."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.cli import samples
from tests.web.browser.conftest import WIDE, Site, Visit, sign_in, visit

pytestmark = pytest.mark.browser

OWN = f"/classifiers/{samples.NAME}"


def test_a_wrong_key_is_told_beside_its_field(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, site)
    seen.open("/sign-in")
    seen.page.get_by_label("Key").fill("va_1_wrong")
    seen.page.keyboard.press("Enter")
    expect(seen.page.get_by_role("alert")).to_contain_text("no valid key")
    expect(seen.page.get_by_label("Key")).to_be_focused()
    context.close()


def test_signing_out_ends_at_the_form(visiting: Visit) -> None:
    visiting.page.get_by_role("button", name="Sign out").click()
    expect(visiting.page.get_by_role("heading", name="Sign in")).to_be_visible()
    visiting.open(f"{OWN}/jobs")
    assert visiting.page.url.endswith(f"/sign-in?next=%2Fclassifiers%2F{samples.NAME}%2Fjobs")


def test_the_keyboard_reaches_the_content_first(visiting: Visit) -> None:
    visiting.page.keyboard.press("Tab")
    expect(visiting.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    visiting.page.keyboard.press("Enter")
    visiting.page.keyboard.press("Tab")
    focused = visiting.page.evaluate("document.activeElement.closest('main') !== null")
    assert focused


def test_labels_are_entered_one_after_the_other_by_the_keyboard(visiting: Visit) -> None:
    visiting.open(f"{OWN}/labels")
    page = visiting.page
    for _ in range(2):
        first = page.locator("#work li").first
        name = first.locator(".name").inner_text()
        if not first.locator("select").evaluate("it => it === document.activeElement"):
            first.locator("select").focus()
        page.keyboard.press("g")  # green
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text(f"The label of {name} was recorded")
        expect(page.locator("#work li").first.locator("select")).to_be_focused()
    assert page.url == f"{visiting.url}{OWN}/labels"


def test_a_label_is_entered_without_scripts_too(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)
    seen = visit(context, site)
    seen.page.goto(site.url + "/sign-in")
    seen.page.get_by_label("Key").fill(site.key)
    seen.page.get_by_role("button", name="Sign in").click()
    seen.page.goto(f"{site.url}{OWN}/labels")
    row = seen.page.locator("#work li").first
    name = row.locator(".name").inner_text()
    row.locator("select").select_option("blue")
    row.get_by_role("button").click()
    expect(seen.page.get_by_role("status")).to_contain_text(f"The label of {name} was recorded")
    context.close()


def test_the_list_of_points_to_label_is_downloaded(visiting: Visit) -> None:
    visiting.open(f"{OWN}/labels")
    with visiting.page.expect_download() as waited:
        visiting.page.get_by_role("link", name="Download the list").click()
    assert waited.value.suggested_filename == "unlabelled.csv"
    assert waited.value.path().read_text().startswith("external_id,label,document_id,predicted_by_network")


def test_a_point_is_tried(visiting: Visit) -> None:
    visiting.open(f"{OWN}/try")
    page = visiting.page
    page.get_by_label("Vector").fill(", ".join(map(str, samples.scored()["vector"][3])))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("heading", name="Why, step by step")).to_be_visible()
    assert page.locator("ol.steps li").count() > 2
    page.get_by_label("Vector").fill("")
    page.get_by_label("A stored exemplar").fill("scored-3")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("admitted|rejected"))


def test_a_key_is_made_and_revoked(visiting: Visit) -> None:
    visiting.open("/keys")
    page = visiting.page
    page.get_by_label("What it is for").fill("a dashboard")
    page.get_by_label("Scope").select_option("read")
    page.get_by_role("button", name="Make it").click()
    made = re.search(r"va_(\d+)_", page.get_by_role("status").inner_text())
    assert made is not None
    revoke = page.get_by_role("button", name=f"Revoke key {made[1]}")
    page.once("dialog", lambda dialog: dialog.dismiss())
    revoke.click()
    expect(revoke).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    revoke.click()
    expect(page.get_by_role("row", name="a dashboard")).to_contain_text("revoked")


def test_a_cell_of_the_map_is_opened_from_the_page_of_its_classifier(visiting: Visit) -> None:
    visiting.open(OWN)
    visiting.page.locator("table.map a").first.click()
    expect(visiting.page.get_by_role("heading", name="Cell of the partition map")).to_be_visible()


def test_jobs_are_read_again_while_the_page_is_open(visiting: Visit) -> None:
    visiting.open(f"{OWN}/jobs")
    page = visiting.page
    page.locator("#jobs-table").focus()
    with page.expect_response(lambda answer: answer.url.endswith("/jobs")) as waited:
        page.wait_for_timeout(3500)
    assert waited.value.request.headers["hx-request"] == "true"
    expect(page.locator("#jobs-table")).to_be_focused()
    sign_out = page.get_by_role("button", name="Sign out")
    expect(sign_out).to_be_visible()


def test_an_ended_session_leads_to_the_form_and_not_into_the_page(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, site)
    sign_in(seen, site)
    seen.open(f"{OWN}/jobs")
    context.clear_cookies()
    seen.page.wait_for_url(f"{site.url}/sign-in", timeout=10_000)
    context.close()
