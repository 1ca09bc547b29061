"""Every form in a real browser, as people fill it in: also by the keyboard alone, and without scripts."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy import text

from tests.cli import samples
from tests.web.browser.conftest import FAR, LOGITS_ONLY, WIDE, Site, Visit, sign_in, visit
from venn_admit.flows.keys.keys import NewKey, create
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit.web.routes import keys

pytestmark = pytest.mark.browser

OWN = f"/classifiers/{samples.NAME}"

RUNNING = """
INSERT INTO job (classifier_id, kind, state, calibration_id, weighted, require_full_match, row_count)
SELECT classifier_id, kind, 'running', calibration_id, weighted, require_full_match, 10
FROM job WHERE kind = 'score' ORDER BY id LIMIT 1 RETURNING id
"""
CHUNKS = "INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, state) VALUES (:job, 0, 0, 10, 'pending')"


def test_a_wrong_key_is_told_beside_its_field(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, site)
    seen.open("/sign-in")
    seen.page.get_by_label("Key").fill("va_1_wrong")
    seen.page.keyboard.press("Enter")
    expect(seen.page.get_by_role("alert")).to_contain_text("no valid key")
    expect(seen.page.get_by_label("Key")).to_be_focused()
    seen.check()
    context.close()


def test_forms_are_taken_over_plain_http(browser: Browser, site: Site) -> None:
    """Where a browser sends no Sec-Fetch-Site, and an origin only if the policy on referrers lets it."""
    far = replace(site, url=site.url.replace("127.0.0.1", FAR))
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, far)
    shown: list[dict[str, str]] = []
    seen.page.on("request", lambda asked: shown.append(asked.all_headers()) if asked.method == "POST" else None)
    sign_in(seen, far)
    seen.page.get_by_role("button", name="Sign out").click()
    expect(seen.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert [headers.get("origin") for headers in shown] == [far.url] * 2
    assert not any("sec-fetch-site" in headers for headers in shown)
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
        expect(page.locator("#work").get_by_role("status")).to_contain_text(f"The label of {name} was recorded")
        expect(page.locator("#work li").first.locator("select")).to_be_focused()
        visiting.check()
    assert page.url == f"{visiting.url}{OWN}/labels"


def test_points_are_reviewed_by_single_keys(visiting: Visit) -> None:
    """What is pressed in a field stays there, and the point that was passed over comes again in the end."""
    visiting.open(f"{OWN}/labels/review")
    page = visiting.page
    heading = page.locator("#point-title")
    first = heading.inner_text()
    page.keyboard.press("p")
    expect(heading).not_to_have_text(first)
    expect(heading).to_have_text(re.compile("^What is scored-"))
    page.keyboard.press("2")
    expect(page.get_by_role("status")).to_contain_text("the label is green, the network says")
    visiting.check()
    seen = [heading.inner_text()]
    while seen[-1] != first:
        page.keyboard.press("p")
        expect(heading).not_to_have_text(seen[-1])
        seen.append(heading.inner_text())
    assert len(set(seen)) == len(seen)
    page.keyboard.press("9")
    expect(heading).to_have_text(first)


def test_a_point_is_reviewed_without_scripts_too(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)
    seen = visit(context, site)
    seen.page.goto(site.url + "/sign-in")
    seen.page.get_by_label("Key").fill(site.key)
    seen.page.get_by_role("button", name="Sign in").click()
    seen.page.goto(f"{site.url}{OWN}/labels/review")
    seen.page.get_by_role("button", name="3 blue").click()
    expect(seen.page.get_by_role("status")).to_contain_text("the label is blue")
    context.close()


def test_a_label_is_taken_back(visiting: Visit) -> None:
    visiting.open(f"{OWN}/labels")
    page = visiting.page
    first = page.locator("#work li").first
    name = first.locator(".name").inner_text()
    first.locator("select").select_option("blue")
    first.get_by_role("button").click()
    page.locator("#work").get_by_role("link", name="Take it back").click()
    expect(page.get_by_role("heading", name="What taking it back changes")).to_be_visible()
    visiting.check()
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_role("status")).to_have_text(f"The label of {name} was taken back.")
    visiting.check()
    page.get_by_role("search", name="Labels").get_by_label("Exemplar").fill("train-1")
    page.get_by_role("button", name="Show its label").click()
    expect(page.get_by_role("heading", name="The label of train-1")).to_be_visible()


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
    assert waited.value.path().read_text().startswith("external_id,label,selection,document_id")


def test_a_point_is_tried(visiting: Visit) -> None:
    visiting.open(f"{OWN}/try")
    page = visiting.page
    page.get_by_label("Vector").fill(", ".join(map(str, samples.scored()["vector"][3])))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("heading", name="Why, step by step")).to_be_visible()
    assert page.locator("ol.steps li").count() > 2
    visiting.check()
    page.get_by_label("Vector").fill("")
    page.get_by_label("A stored exemplar").fill("scored-3")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("admitted|rejected"))
    # What carries its logit is stored with a training exemplar, and so are its pictures.
    expect(page.get_by_text("carried by").first).to_be_visible()
    visiting.check()


def test_a_point_that_is_refused_is_told_above_the_form(browser: Browser, site: Site) -> None:
    """The answer has status 422, which the console tells of."""
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, site)
    sign_in(seen, site)
    seen.open(f"{OWN}/try")
    seen.page.get_by_label("Vector").fill("1, 2, three")
    seen.page.get_by_role("button", name="Decide").click()
    expect(seen.page.get_by_role("alert")).to_contain_text("vector: expected numbers")
    expect(seen.page.get_by_label("Vector")).to_have_value("1, 2, three")
    seen.check()
    context.close()


def test_a_point_of_logits_alone_is_tried(visiting: Visit) -> None:
    visiting.open(f"/classifiers/{LOGITS_ONLY}/try")
    page = visiting.page
    expect(page.get_by_label("Vector")).to_have_count(0)
    page.get_by_label("Logits").fill(", ".join(map(str, samples.scored()["logits"][3])))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("admitted|rejected"))
    expect(page.get_by_text("None: the classifier has logits only.")).to_be_visible()
    visiting.check()


def test_a_key_is_made_and_revoked(visiting: Visit) -> None:
    visiting.open("/keys")
    page = visiting.page
    page.get_by_label("What it is for").fill("a dashboard")
    page.get_by_label("Scope").select_option("read")
    page.get_by_role("button", name="Make it").click()
    made = re.search(r"va_(\d+)_", page.get_by_role("status").inner_text())
    assert made is not None
    visiting.check()
    revoke = page.get_by_role("button", name=f"Revoke key {made[1]}")
    page.once("dialog", lambda dialog: dialog.dismiss())
    revoke.click()
    expect(revoke).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    revoke.click()
    expect(page.get_by_role("row", name="a dashboard")).to_contain_text("revoked")
    visiting.check()


def test_a_double_click_makes_one_key(visiting: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Barrier(2)

    def slowly(*given: Any, **more: Any) -> NewKey:
        with suppress(BrokenBarrierError):  # nobody asks again meanwhile
            asked.wait(timeout=2)
        return create(*given, **more)

    monkeypatch.setattr(keys, "create", slowly)
    visiting.open("/keys")
    page = visiting.page
    page.get_by_label("What it is for").fill("a hasty hand")
    # The browser shows the form until the answer comes.
    twice = "button => { button.click(); setTimeout(() => button.click(), 100); }"
    page.get_by_role("button", name="Make it").evaluate(twice)
    expect(page.get_by_role("status")).to_contain_text("was made")
    visiting.open("/keys")
    expect(page.get_by_role("row", name="a hasty hand")).to_have_count(1)


def test_a_key_that_is_refused_is_told_above_the_form(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, site)
    sign_in(seen, site)
    seen.open("/keys")
    seen.page.get_by_label("What it is for").fill("a dashboard")
    seen.page.get_by_label("Expires after days").fill("soon")
    seen.page.get_by_role("button", name="Make it").click()
    expect(seen.page.get_by_role("alert")).to_contain_text("days")
    expect(seen.page.get_by_label("What it is for")).to_have_value("a dashboard")
    seen.check()
    context.close()


def test_decisions_are_filtered(visiting: Visit) -> None:
    visiting.open(f"{OWN}/decisions")
    page = visiting.page
    rows = page.get_by_role("region", name="Decisions").locator("tbody tr")
    assert rows.count() > 1
    page.get_by_label("Outcome").select_option("rejected")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("outcome=rejected"))
    expect(page.get_by_label("Outcome")).to_have_value("rejected")
    assert rows.count() > 1
    expect(rows.filter(has_text="rejected")).to_have_count(rows.count())
    visiting.check()
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Exemplar").fill("scored-3")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("scored-3")
    page.get_by_label("Exemplar").fill("nobody")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No stored decision matches this filter.")).to_be_visible()
    visiting.check()


def test_a_decision_is_computed_again(visiting: Visit) -> None:
    visiting.open(f"{OWN}/decisions/1")
    page = visiting.page
    page.get_by_role("link", name="Compute it again").click()
    expect(page.get_by_text("the decision is the same in every field.")).to_be_visible()
    expect(page.get_by_role("heading", name="Decision 1 on scored-0, computed again")).to_be_visible()
    visiting.check()
    page.get_by_role("link", name="The decision as it is stored").click()
    page.wait_for_url(f"{visiting.url}{OWN}/decisions/1")


def test_a_report_is_computed_anew_in_its_place(visiting: Visit) -> None:
    visiting.open(f"{OWN}/report")
    page = visiting.page
    when = page.locator("#report .as-of time")
    before = when.get_attribute("datetime")
    assert before is not None
    page.get_by_role("link", name="Compute it again").click()
    expect(when).not_to_have_attribute("datetime", before)
    expect(page.locator("#report")).to_have_count(1)
    expect(page.get_by_role("link", name="Compute it again")).to_be_focused()
    assert page.url == f"{visiting.url}{OWN}/report"
    visiting.check()


def test_a_cell_of_the_map_is_opened_from_the_report(visiting: Visit) -> None:
    visiting.open(f"{OWN}/report")
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


@contextmanager
def running_job(site: Site) -> Iterator[tuple[int, Callable[[], None]]]:
    """A job that runs: its number, and what completes it as a worker would."""
    engine = create_engine(site.database_url)
    with transaction(engine) as connection:
        job = connection.execute(text(RUNNING)).scalar_one()
        connection.execute(text(CHUNKS), {"job": job})

    def complete() -> None:
        with transaction(engine) as connection:
            connection.execute(text("UPDATE job_chunk SET state = 'done' WHERE job_id = :job"), {"job": job})
            connection.execute(text("UPDATE job SET state = 'done', finished_at = now() WHERE id = :job"), {"job": job})
            connection.execute(text("SELECT pg_notify('venn_admit_job', :job)"), {"job": str(job)})

    try:
        yield job, complete
    finally:
        engine.dispose()


def row_of(page: Page, job: int) -> Locator:
    return page.get_by_role("row").filter(has_text=re.compile(rf"^\s*{job}\s"))


def test_jobs_are_followed_as_they_advance(visiting: Visit, site: Site) -> None:
    with running_job(site) as (job, complete):
        visiting.open(f"{OWN}/jobs")
        row = row_of(visiting.page, job)
        expect(row).to_contain_text("running")
        complete()
        # Before the page would ask by itself, 15 seconds after it was opened.
        expect(row).to_contain_text("done", timeout=8_000)
        expect(visiting.page.locator("[data-events]")).to_have_count(0)


def test_a_running_job_is_shown_without_scripts(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)
    page = context.new_page()
    page.goto(site.url + "/sign-in")
    page.get_by_label("Key").fill(site.key)
    page.get_by_role("button", name="Sign in").click()
    with running_job(site) as (job, complete):
        page.goto(f"{site.url}{OWN}/jobs")
        row = row_of(page, job)
        expect(row).to_contain_text("running")
        complete()
        page.get_by_role("link", name="Load the page again").click()
        expect(row).to_contain_text("done")
    context.close()


def test_a_form_that_is_refused_says_so(browser: Browser, site: Site) -> None:
    """Here of a session that ended in another window, where somebody has signed in again."""
    context = browser.new_context(viewport=WIDE)
    seen, other = visit(context, site), visit(context, site)
    sign_in(seen, site)
    seen.open(f"{OWN}/labels")
    other.open("/")
    other.page.get_by_role("button", name="Sign out").click()
    sign_in(other, site)
    row = seen.page.locator("#work li").first
    row.locator("select").select_option("blue")
    row.get_by_role("button").click()
    expect(
        seen.page.get_by_text("the form is not one of this session; reload the page and send it again")
    ).to_be_visible()
    seen.page.go_back()
    expect(seen.page.locator("#work li").first).to_be_visible()
    context.close()


def test_an_ended_session_leads_to_the_form_and_not_into_the_page(browser: Browser, site: Site) -> None:
    context = browser.new_context(viewport=WIDE)
    seen = visit(context, site)
    sign_in(seen, site)
    seen.open(f"{OWN}/jobs")
    context.clear_cookies()
    seen.page.wait_for_url(f"{site.url}/sign-in")
    context.close()
