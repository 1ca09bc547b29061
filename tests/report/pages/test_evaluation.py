"""The page as a browser and a screen reader meet it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.report.samples import HOSTILE_NAMES
from venn_admit.report.charts.colours import CHART_COLOURS
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.verdicts import answer, class_gap, headline
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.pages.evaluation import render_page, write_report
from venn_admit.report.wording import share_text

VOID = {"meta", "br", "hr", "img", "link", "input"}
FACTS = {"classifier": "<script>alert(1)</script>", "alpha": "0.1", "omega": "0.4385"}
STEPS = ["venn-admit report demo", "Ask more of a class: <thresholds>"]


class Page(HTMLParser):
    """Tags must close in order; keeps every start tag, its attributes and the visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "svg"} & set(self.open):
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def html(sentiment: DatasetReport, hostile: DatasetReport) -> str:
    return render_page("Demo & more", FACTS, [sentiment, hostile], STEPS)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_is_one_document(html: str, page: Page) -> None:
    assert html.lstrip().lower().startswith("<!doctype html>")
    assert page.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.all("meta")
    assert len(page.all("h1")) == len(page.all("main")) == 1


def test_needs_nothing_from_outside(html: str, page: Page) -> None:
    assert not re.search(r"https?:|//[a-z]|src=|@import|<script|<link|<iframe", html)
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
    targets = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = [attributes["href"] or "" for _, attributes in page.tags if "href" in attributes]
    within = [link for link in links if not link.startswith("data:image/png;base64,")]
    assert within
    assert all(link.startswith("#") and link[1:] in targets for link in within)


def test_ids_are_unique_and_labels_refer_to_them(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    labels = [attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes]
    assert labels
    assert set(labels) <= set(ids)


def test_names_are_escaped(html: str, page: Page) -> None:
    assert "<b>" not in html
    assert "<script" not in html
    assert FACTS["classifier"] in page.text
    for name in HOSTILE_NAMES[:6]:
        assert name in page.text
    assert "<i>$set$" in page.text
    assert "<b>$x [red]1 & $2" in page.text


def test_tables_have_captions_and_scopes(page: Page) -> None:
    # One of the two sets has the partitions of the calibration data beside its own.
    assert len(page.all("table")) == len(page.all("caption")) == 2 * 7 + 1
    assert all(attributes.get("scope") in {"col", "row", "colgroup", "rowgroup"} for attributes in page.all("th"))


def test_charts_are_described(page: Page) -> None:
    charts = page.all("svg")
    assert len(charts) == len(page.all("figcaption")) == 10
    assert all(chart["role"] == "img" and len(chart["aria-label"] or "") > 40 for chart in charts)


def test_colour_is_never_the_only_signal(html: str) -> None:
    cells = re.findall(r'<td class="(met|missed|cannot_tell)(?: few)?" title="[^"]*">(.*?)</td>', html, flags=re.DOTALL)
    assert {verdict for verdict, _ in cells} == {"met", "missed", "cannot_tell"}
    marks = {"met": "✓ met", "missed": "✗ missed", "cannot_tell": "? cannot tell"}
    for verdict, content in cells:
        mark, words = marks[verdict].split(" ", 1)
        assert content.startswith(('-<span class="unseen"> none', f'{mark}<span class="unseen"> {words}</span>'))
    for verdict, words in marks.items():
        assert f'<span class="key {verdict}">{words}</span>' in html


def test_shows_the_figures(page: Page, sentiment: DatasetReport, hostile: DatasetReport) -> None:
    for row in sentiment.methods:
        assert row.name in page.text
        for tally in (*row.singletons.per_true_class, row.singletons.overall):
            share, portion = share_text(tally.share), share_text(tally.portion)
            assert f"{share} ({portion}) {interval_text(tally.interval)}" in page.text
        for tally in (*row.coverage.per_true_class, *row.coverage.per_predicted_class, row.coverage.overall):
            assert f"{share_text(tally.share)} {interval_text(tally.interval)}" in page.text
        assert f" {row.mean_size:.2f} " in page.text
    for report in (sentiment, hostile):
        assert answer(report) in page.text
        assert headline(report) in page.text
        assert class_gap(report) in page.text
    assert "6 of 8 classes shown" in page.text
    assert "What to try next" in page.text
    assert "venn-admit report demo" in page.text


@pytest.mark.usefixtures("blank_charts")
def test_all_rows_their_parameters_and_intervals(compared: DatasetReport, of_documents: DatasetReport) -> None:
    text = Page(render_page("Plain", {}, [compared])).text
    for row in compared.methods:
        assert row.name in text
        assert f" {row.mean_size:.2f} " in text
    assert "temperature 0.697; RAPS size k_reg 2, lambda 0.01." in text
    assert "12 rows are left out" in text
    assert text.count("95 % Wilson intervals") == 8
    clustered = Page(render_page("Plain", {}, [of_documents])).text
    assert clustered.count("95 % intervals from 100 resampled documents") == 8
    assert "500 labelled points of 100 documents" in clustered
    assert "under 10 documents" in clustered
    assert "left out" not in clustered


@pytest.mark.usefixtures("blank_charts")
def test_shares_of_few_documents_are_never_coloured_as_good(of_few_documents: DatasetReport) -> None:
    html = render_page("Few", {}, [of_few_documents])
    assert '<td class="cannot_tell few"' in html
    assert '<td class="met' not in html
    assert "This sample cannot judge predictions of" in html
    accuracy = html[html.index("<caption>Accuracy of every prediction, none rejected") : html.index("F0.5 weighs")]
    assert accuracy.count('class="few"') == accuracy.count("<td") > 0


@pytest.mark.usefixtures("blank_charts")
def test_the_verdict_comes_first_then_pictures_then_tables(sentiment: DatasetReport) -> None:
    html = render_page("Plain", {}, [sentiment])
    body = html[html.index("<main>") :]
    parts = [answer(sentiment), "<caption>Predicted classes", headline(sentiment)]
    parts += ["<caption>The methods that matter at a glance", "<svg", '<details class="more">', "<caption>All methods"]
    parts += ["<caption>Share right"]
    places = [body.index(part) for part in (*parts, "How to read this page")]
    assert places == sorted(places)


def test_what_is_wide_scrolls_in_a_box_of_its_own(html: str) -> None:
    boxed = re.findall(r'<div class="(?:picture )?scroll" tabindex="0">\s*(<table|<svg)', html)
    assert boxed.count("<table") == html.count("<table") == 15
    assert boxed.count("<svg") == html.count("<svg") == 10
    assert ".scroll { overflow-x: auto;" in html


def test_partitions_keep_their_order(page: Page) -> None:
    places = [page.text.index(f"{matches} d < median") for matches in ("q = 0", "q = K", "any q")]
    assert places == sorted(places)


def test_follows_the_reader_s_colours_and_width(html: str) -> None:
    assert "prefers-color-scheme: dark" in html
    assert "width=device-width" in html
    assert "@media print" in html


def test_charts_take_the_colours_of_the_page(html: str) -> None:
    """No colour of a series or of paper stands in a chart itself, where dark ground would not change it."""
    charts = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    used = set(re.findall(r"var\(--([a-z-]+)\)", charts))
    assert {"paper", "blue", "orange", "grey"} <= used <= set(CHART_COLOURS)
    fixed = set(re.findall(r": (#[0-9a-f]{6})", charts))
    assert not fixed & {light for light, _ in CHART_COLOURS.values()}
    for name in used:
        assert len(re.findall(rf"--{name}: #[0-9a-f]{{6}};", html)) == 2


@pytest.mark.usefixtures("blank_charts")
def test_the_row_of_the_calibration_stands_out(by_abers: DatasetReport) -> None:
    html = render_page("Own", {}, [by_abers])
    assert html.count('<tr class="own">') == 2
    row = html[html.index('<tr class="own">') :]
    assert re.match(r'<tr class="own">\s*<th class="method" scope="row">Venn-Abers network</th>', row)
    page = Page(html)
    assert len(page.all("table")) == 6
    assert "Partitions of the KNN" not in page.text
    assert headline(by_abers) in page.text
    assert "Venn-ADMIT left out: no band holds kappa = 1,000 points" in page.text


@pytest.mark.usefixtures("blank_charts")
def test_without_facts_or_steps(sentiment: DatasetReport) -> None:
    page = Page(render_page("Plain", {}, [sentiment]))
    assert "What to try next" not in page.text
    assert page.all("dl") == page.all("nav") == []


def test_write_report(tmp_path: Path, hostile: DatasetReport) -> None:
    page, *charts = write_report(tmp_path / "new" / "folder", "Demo", FACTS, [hostile], STEPS)
    assert page.name == "index.html"
    assert [path.name for path in charts] == [
        "i-set-methods.png",
        "i-set-coverage.png",
        "i-set-risk.png",
        "i-set-reliability.png",
        "i-set-heatmap.png",
        "i-set-summary.png",
    ]
    assert page.read_text(encoding="utf-8") == render_page("Demo", FACTS, [hostile], STEPS), "the same each time"
    for path in charts:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(content) > 20_000
