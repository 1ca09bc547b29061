"""What every page has: its policy, its errors, its assets; and the first page."""

import hashlib
import re
from dataclasses import replace
from html import unescape
from importlib import resources
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from tests.cli import samples
from tests.cli.samples import NAME
from tests.holding import hold_training
from tests.running import workspace
from tests.web.visitor import OWN, Visitor
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.keys.keys import create
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.report import report
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect
from venn_admit.web.assets import assets
from venn_admit.web.site import create_site

# The digest of dist/htmx.min.js in the npm package htmx.org 2.0.8.
HTMX = "22283ef68cb7545914f0a88a1bdedc7256a703d1d580c1d255217d0a50d31313"


def test_htmx_is_the_one_that_was_published() -> None:
    published = resources.files("venn_admit.web").joinpath("static", "htmx.min.js").read_bytes()
    assert hashlib.sha256(published).hexdigest() == HTMX


def test_nothing_is_run_or_styled_from_within_a_page(shared: Visitor) -> None:
    shared.sign_in()
    for path in ("/", OWN, "/sign-in", "/nowhere"):
        answer = shared.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", answer.text), path


def test_the_data_are_shown_in_numbers(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    page = shared.open(f"{OWN}/data")
    train, held_out = samples.train()["label"].tolist(), samples.held_out()["label"].tolist()
    assert f'<th scope="row">train</th><td>{len(train)}</td><td>{len(train)}</td>' in page
    count = train.count(0)
    assert f"<td>{count} <small>{count / len(train):.3f}</small></td>".replace("<small>0.", "<small>.") in page
    (said,) = re.findall(r"Right on the ([\d,]+) labelled points of mc and vp: the network \d+\.\d%, the KNN", page)
    assert 0 < int(said.replace(",", "")) < len(held_out)


def test_programs_and_people_are_told_of_errors_in_their_own_form(shared: Visitor) -> None:
    shared.sign_in()
    for path, status in (("/nowhere", 404), ("/classifiers/unknown", 404), ("/sign-out", 405)):
        answer = shared.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert "<h1>" in answer.text
    for path, status in (("/v1/nowhere", 404), (f"/v1{OWN}/decide", 405), ("/v1/classifiers", 401)):
        answer = shared.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_an_error_of_a_classifier_has_its_tabs(own: Visitor) -> None:
    create_classifier(own.runtime.engine, "bare", ("a", "b"), seed=0, dimension=2)
    own.sign_in()
    tabs = '<nav class="tabs"'
    for part, status in (("", 200), ("/report", 409), ("/decisions/7", 404)):
        answer = own.client.get(f"/classifiers/bare{part}")
        assert (answer.status_code, answer.text.count(tabs), answer.text.count("<h1>")) == (status, 1, 1), part
    for elsewhere in ("/classifiers/unknown/report", "/nowhere"):
        assert tabs not in own.client.get(elsewhere).text


def test_a_step_that_an_error_advises_is_set_as_code(shared: Visitor) -> None:
    shared.sign_in()
    said = shared.client.get(f"{OWN}/report?calibration=999999").text
    assert f"<code>GET /v1{OWN}/calibrations</code> lists the newest" in said
    assert "`" not in said


def test_a_refusal_says_when_to_try_again(shared: Visitor) -> None:
    settings = replace(shared.runtime.settings, requests_per_minute=1, requests_burst=1)
    client = TestClient(create_site(replace(shared.runtime, settings=settings)), follow_redirects=False)
    limited = replace(shared, client=client)
    limited.sign_in()
    limited.open("/")
    answer = client.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_head_is_answered_as_get_without_the_body(shared: Visitor) -> None:
    shared.client.cookies.clear()
    assert shared.client.head("/").headers["location"] == "/sign-in?next=%2F"
    shared.sign_in()
    for path, status in (("/", 200), (f"{OWN}/jobs", 200), ("/classifiers/unknown", 404), ("/sign-out", 405)):
        head, get = shared.client.head(path), shared.client.get(path)
        assert (head.status_code, get.status_code, head.content) == (status, status, b""), path
        assert head.headers["content-length"] == get.headers["content-length"]


def test_a_refused_method_is_told_which_there_are(shared: Visitor) -> None:
    for path, methods in (("/sign-in", "GET, HEAD, POST"), ("/sign-out", "POST"), (f"{OWN}/decisions", "GET, HEAD")):
        answer = shared.client.delete(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)


def test_assets_are_kept_until_they_change(shared: Visitor) -> None:
    shared.sign_in()
    page = shared.open(f"{OWN}/jobs") + shared.open(f"{OWN}/labels/review")
    shared.client.cookies.clear()
    for asset in assets().values():
        assert asset.address in page
        answer = shared.client.get(asset.address)
        assert answer.content == asset.content
        assert "immutable" in answer.headers["cache-control"]
    assert shared.client.get("/static/README.md").status_code == 404


def test_the_first_page_lists_what_the_key_is_for(shared: Visitor) -> None:
    engine = shared.runtime.engine
    create_classifier(engine, "<b>other", ("a", "b"), seed=0, dimension=2)
    shared.sign_in(Scope.READ)
    page = shared.open("/")
    assert f'<a href="{OWN}"><span class="given">{NAME}</span></a>' in page
    assert "&lt;b&gt;other" in page
    assert "not calibrated yet" in page
    own = create(engine, "own", scope=Scope.READ, classifier=NAME).text
    shared.sign_in(key=own)
    page = shared.open("/")
    assert NAME in page
    assert "other" not in page
    assert shared.client.get("/classifiers/other").status_code == 403


def test_a_service_without_classifiers_says_how_to_make_one(empty: Visitor) -> None:
    empty.sign_in()
    assert "There is no classifier yet" in empty.open("/")


def test_a_classifier_shows_its_report_when_it_has_been_drawn(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    page = shared.open(OWN)
    assert f'hx-get="{OWN}/report" hx-trigger="load" hx-select="#summary"' in page
    drawn = shared.open(f"{OWN}/report", headers={"HX-Request": "true"})
    for part in (
        "What to do next",
        "History of calibrations",
        "Lamps of the monitor",
        "SQL of this table",
        "1 - alpha",
    ):
        assert part in drawn, part
    assert f'href="{OWN}/calibrations/1/cells/0/0"' in drawn
    summary = drawn.partition('id="summary"')[2].partition('class="map"')[0]
    assert 'aria-label="The last 30 days in UTC: the share of the decisions that was admitted' in summary
    assert "200 in all" in summary
    assert "<svg" in drawn
    assert not re.search(r"<style|\sstyle=", drawn)
    assert shared.client.get(f"{OWN}/report?calibration=99").status_code == 404
    assert shared.client.get(f"{OWN}/report?calibration=x").status_code == 422


ADDRESSES = re.compile(r'(?:href|src|hx-get)="(/[^"]*)"')
FORMS = re.compile(r'(?:action|hx-post|data-events)="(/[^"]*)"')


def test_below_the_path_of_a_proxy_every_address_leads_back_to_it(below: Visitor) -> None:
    """Pages, scripts, forms, redirects and the session: whatever pages name is found there, from the first on."""
    root = below.runtime.settings.root_path
    to_sign_in = below.client.get(f"{OWN}/labels?predicted=1")
    assert to_sign_in.headers["location"].startswith(f"{root}/sign-in?next=%2Fclassifiers%2F")
    part = below.client.get(f"{OWN}/report", headers={"HX-Request": "true"})
    assert part.headers["hx-redirect"] == f"{root}/sign-in"
    assert below.sign_in().headers["location"] == f"{root}/"
    assert {cookie.path for cookie in below.client.cookies.jar} == {root}
    left, kinds, forms = {f"{root}/"}, {f"{root}/"}, set[str]()
    while left:
        address = left.pop()
        assert address.startswith(f"{root}/"), address
        page = below.open(address.removeprefix(root)) if "/static/" not in address else ""
        assert below.client.get(address.removeprefix(root)).status_code == 200, address
        forms |= set(FORMS.findall(page))
        for one in map(unescape, ADDRESSES.findall(page)):
            kind = re.sub(r"\d+|[?].*", "", one)
            # One of each kind; files and the document of programs are no pages.
            if kind not in kinds and not kind.endswith((".png", ".csv", ".json")):
                kinds.add(kind)
                left.add(one)
    pages = (OWN, f"{OWN}/report", f"{OWN}/decisions/", f"{OWN}/labels/known", "/keys", "/docs", "/static/forms.js")
    assert {f"{root}{one}" for one in pages} <= kinds
    assert {f"{root}/keys", f"{root}/sign-out", f"{root}{OWN}/labels"} <= forms
    assert [one for one in forms if not one.startswith(f"{root}/")] == []
    assert below.client.get("/v1/openapi.json").json()["servers"] == [{"url": root}]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("labels?predicted=zz", "query.predicted: Input should be a valid integer"),
        ("report?calibration=x", "query.calibration: Input should be a valid integer"),
        ("decisions?outcome=any", "query.outcome: Input should be &#39;&#39;, &#39;admitted&#39; or"),
        ("decisions/x", "path.decision: Input should be a valid integer"),
    ],
)
def test_an_address_that_is_invalid_says_where(shared: Visitor, address: str, said: str) -> None:
    """On a page of the classifier, from which one can go on."""
    shared.sign_in(Scope.READ)
    answer = shared.client.get(f"{OWN}/{address}")
    assert (answer.status_code, answer.history) == (422, [])
    assert said in answer.text
    assert f'<a href="{OWN}/decisions"' in answer.text


def test_days_have_what_was_decided_and_labelled(shared: Visitor) -> None:
    engine = shared.runtime.engine
    days = report(workspace(engine, shared.runtime.cache), NAME, calibration_id=None).days
    assert len(days) == 30
    with connect(engine) as connection:
        decided = connection.execute(
            text(
                "SELECT (finished_at AT TIME ZONE 'UTC')::date, count(*), count(decision) FROM decision"
                " JOIN job_row USING (exemplar_id) JOIN job ON job.id = job_id GROUP BY 1"
            )
        ).all()
        labelled = connection.execute(
            text(
                "SELECT (label_event.created_at AT TIME ZONE 'UTC')::date, count(*) FROM label_event"
                " JOIN exemplar ON exemplar.id = exemplar_id WHERE split <> 'train' GROUP BY 1"
            )
        ).all()
    # Midnight may have passed in between, so the dates are those of the database.
    assert [(day.day, day.decided, day.admitted) for day in days if day.decisions] == sorted(map(tuple, decided))
    assert [(day.day, day.labels) for day in days if day.labels] == sorted(map(tuple, labelled))
    assert 0 < sum(day.admitted for day in days) < sum(day.decided for day in days)


@pytest.mark.usefixtures("blank_charts")
def test_a_classifier_says_how_many_training_exemplars_wait(own: Visitor, tmp_path: Path) -> None:
    own.sign_in(Scope.READ)
    said = "2 training exemplars wait until a calibration or fit that has begun is over, for ten minutes at most."
    assert said not in own.open(OWN) + own.open(f"{OWN}/report")
    engine = own.runtime.engine
    hold_training(engine.url.render_as_string(hide_password=False))
    path = samples.save(tmp_path, "two.npz", samples.exemplars("two", 2, seed=7))
    assert ingest(engine, NAME, FileSource(path), "train").training_waiting == 2
    assert said in own.open(OWN)
    assert said in own.open(f"{OWN}/report")


def test_the_lamps_of_a_monitor_are_on_the_first_page(own: Visitor) -> None:
    own.sign_in(Scope.READ)
    assert "not watched" in own.open("/")
    update_monitor(own.runtime.engine, NAME)
    page = own.open("/")
    lit, _, explained = page.partition("What the lamps mean")
    assert "not watched" not in lit
    assert "no alarm" in lit
    assert "labels wait" not in page
    for meaning in ("are right less often than 1 - alpha", "labelled points are no random sample", "No monitor was"):
        assert meaning in explained
        assert meaning in own.open(OWN)
    own.sign_in(Scope.WRITE)
    assert own.send(f"{OWN}/labels", external_id="scored-1", label="0").status_code == 303
    assert "labels wait" in own.open("/")
