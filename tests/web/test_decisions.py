"""The pages of decisions, of cells of the map, of jobs, and the form to try a point."""

import json
import re
from decimal import Decimal
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Program
from tests.web.conftest import IMAGE, visited
from tests.web.visitor import OWN, Visitor
from venn_admit.flows.reports import report as opened_cells
from venn_admit.store.access.keys import Scope
from venn_admit.web.assets import LARGEST, image_source
from venn_admit.web.routes.decisions import ROWS

TRY = f"{OWN}/try"


@pytest.fixture(autouse=True)
def signed_in(shared: Visitor) -> None:
    shared.sign_in(Scope.SCORE)


def numbers(page: str) -> list[int]:
    """The decisions that a page lists."""
    return [int(found) for found in re.findall(rf'href="{OWN}/decisions/(\d+)"', page)]


def test_pages_follow_each_other_until_every_decision_was_seen(shared: Visitor) -> None:
    path, seen = f"{OWN}/decisions", []
    while True:
        page = shared.open(path)
        listed = numbers(page)
        assert 0 < len(listed) <= ROWS
        seen += listed
        follows = re.search(r'rel="next" href="([^"]+)"', page)
        if follows is None:
            break
        path = f"{OWN}/decisions{follows[1].replace('&amp;', '&')}"
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == samples.SCORED_ROWS


@pytest.mark.parametrize("path", [f"{OWN}/decisions", f"{OWN}/decisions/1"])
def test_times_are_those_of_utc(shared: Visitor, path: str) -> None:
    assert re.search(r'<time datetime="[^"]+">\d{4}-\d\d-\d\d \d\d:\d\d UTC</time>', shared.open(path))


def test_filters_leave_what_is_wanted(shared: Visitor) -> None:
    admitted = shared.open(f"{OWN}/decisions?outcome=admitted")
    rejected = shared.open(f"{OWN}/decisions?outcome=rejected&calibration=1")
    assert numbers(admitted)
    assert numbers(rejected)
    assert '<span class="key missed">' not in admitted
    assert '<span class="key met">' not in rejected
    (only,) = numbers(shared.open(f"{OWN}/decisions?external_id=scored-7"))
    assert "Decision" in shared.open(f"{OWN}/decisions/{only}")
    assert "No stored decision matches" in shared.open(f"{OWN}/decisions?external_id=none")
    assert shared.client.get(f"{OWN}/decisions?calibration=x").status_code == 422
    assert shared.client.get(f"{OWN}/decisions?cursor=x").status_code == 422


def test_a_decision_says_why_and_is_the_same_again(shared: Visitor) -> None:
    reasons = set()
    for number in numbers(shared.open(f"{OWN}/decisions?outcome=rejected"))[:12]:
        page = shared.open(f"{OWN}/decisions/{number}")
        said = re.search(r"Rejected: ([^.]+)\.", page)
        assert said is not None
        reasons.add(said[1])
        assert page.count('class="stopped"') >= 1
        assert "train-" in page
    assert len(reasons) > 1
    again = shared.open(f"{OWN}/decisions/{number}/replay")
    assert "the decision is the same in every field" in again
    assert shared.client.get(f"{OWN}/decisions/99999999").status_code == 404


def test_a_replayed_decision_has_the_interval_of_its_category(shared: Visitor) -> None:
    (number, *_) = numbers(shared.open(f"{OWN}/decisions?outcome=admitted"))
    page = shared.open(f"{OWN}/decisions/{number}/replay")
    assert re.search(r"right in the category</dt>\s*<dd>[.\d]+, 95 % interval [.\d]+-[.\d]+</dd>", page)


def test_a_decision_compares_its_probability_with_its_threshold(shared: Visitor) -> None:
    for outcome, comparison in (("admitted", "at least"), ("rejected", "below")):
        pages = [
            shared.open(f"{OWN}/decisions/{n}") for n in numbers(shared.open(f"{OWN}/decisions?outcome={outcome}"))
        ]
        said = [found for page in pages for found in re.findall(rf"(0\.\d+) is {comparison} 0\.8\.", page)]
        assert said
        assert all((float(lower) >= 0.8) == (outcome == "admitted") for lower in said)


@pytest.mark.parametrize(("asked", "what"), [("certified", "certified policy"), ("average", "policy of the average")])
def test_a_policy_is_named_and_its_threshold_compared_with_the_score(
    own_calibrated: Program, tmp_path: Path, asked: str, what: str
) -> None:
    how = ("--certify", "predicted") if asked == "certified" else ("--promise", "average")
    assert own_calibrated("calibrate", samples.NAME, "--alpha", "0.05", *how).code == 0
    path = samples.save(tmp_path, "points.npz", samples.scored())
    assert own_calibrated("score", samples.NAME, path, "--out", tmp_path / "scores.parquet").code == 0
    with visited(own_calibrated) as visitor:
        visitor.sign_in(Scope.SCORE)
        compared = 0
        for outcome, comparison in (("admitted", "at least"), ("rejected", "below")):
            for number in numbers(visitor.open(f"{OWN}/decisions?outcome={outcome}"))[:8]:
                page = " ".join(visitor.open(f"{OWN}/decisions/{number}").split())
                assert f"The {what}" in page
                (score,) = re.findall(r"s = ([\d.]+) ranks the prediction", page)
                found = re.search(rf"([\d.]+) is {comparison} ([\d.]+)\.", page)
                never = "never admits this class." in page
                assert (found is None) == never
                if found is not None:
                    assert float(found[1]) == pytest.approx(float(score), abs=1e-3)
                    assert (float(score) >= float(found[2])) == (outcome == "admitted")
                    compared += 1
        assert compared > 8


def test_neighbours_have_their_text_images_and_attributes(shared: Visitor) -> None:
    page = shared.open(f"{OWN}/decisions/1")
    assert "&lt;b&gt;review&lt;/b&gt; train-" in page
    assert page.count(f'<img src="{IMAGE}" alt="image" loading="lazy">') == samples.K
    assert '<a href="https://images.example/1.png" rel="noreferrer' in page
    assert "One\non another host is a link" in page
    assert "<dd>7</dd>" in page
    answer = shared.client.get(f"{OWN}/decisions/1")
    assert "img-src 'self' data:;" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("page", ["", "/replay"])
def test_what_carries_the_prediction_is_shown_and_adds_up_to_the_margin(shared: Visitor, page: str) -> None:
    (number,) = numbers(shared.open(f"{OWN}/decisions?external_id=scored-7"))
    shown = shared.open(f"{OWN}/decisions/{number}{page}")
    table = shown.partition('id="carried"')[2].partition("</table>")[0]
    figures = [Decimal(found) for found in re.findall(r"<td>([+-][0-9.]+)</td>", table)]
    assert figures[:3] == [Decimal(found) for found in ("1.250", "-0.750", "0.125")]
    logits = samples.scored()["logits"][7]
    behind, ahead = np.argsort(logits)[-2:]
    assert figures[-1] == Decimal(f"{logits[ahead] - logits[behind]:.3f}")
    assert f"margin over {samples.CLASS_NAMES[behind]}" in table
    assert f"speaks for {samples.CLASS_NAMES[ahead]} rather than {samples.CLASS_NAMES[behind]}" in shown
    assert sum(figures[:-1]) == figures[-1]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in table
    assert "1 other token" in table
    assert "<script>alert" not in shown
    # What a token does to the direction of writing must not reach the figures.
    first, last = "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>", "<bdi>##ing</bdi> +0.125"
    neighbours = re.findall(
        r'<span class="given">train-(\d+)</span>.*?<dt>carried by</dt><dd>(.*?) \(over [a-z]+\)</dd>', shown, re.S
    )
    assert len({row for row, _ in neighbours}) == samples.K
    assert neighbours == [(row, f"{first} {1.25 + int(row) / 1000:+.3f}, {last}") for row, _ in neighbours]
    assert shown.count("<dt>carried by</dt>") == samples.K
    assert "<code>venn-admit extract inspect MODEL FILE --id ID --train TRAINING</code>" in shown
    assert "&lt;i&gt;point&lt;/i&gt; 7" in shown  # the exemplar's own text
    assert "rest_count" not in shown


@pytest.mark.parametrize("external_id", ["scored-3", "scored-4", "scored-5"])
@pytest.mark.parametrize("page", ["", "/replay"])
def test_what_is_no_record_of_this_prediction_is_an_attribute_like_others(
    shared: Visitor, external_id: str, page: str
) -> None:
    """It has another form; or it is of another class or logit, as from a network that the classifier does not have."""
    (number,) = numbers(shared.open(f"{OWN}/decisions?external_id={external_id}"))
    shown = shared.open(f"{OWN}/decisions/{number}{page}")
    assert 'id="carried"' not in shown
    assert "extract inspect" not in shown
    assert "<dt>contributions</dt>" in shown
    assert "<b>mine" not in shown


@pytest.mark.parametrize(
    "value",
    [
        "data:image/svg+xml;base64,AAAA",
        "data:text/html;base64,AAAA",
        'data:image/png;base64,AA" onerror="x',
        "/classifiers/a/report?again=true",
        "/\\elsewhere.example/1.png",
        "javascript:1.png",
        IMAGE + "A" * LARGEST,
        None,
    ],
)
def test_what_is_no_image_is_not_shown_as_one(value: object) -> None:
    assert image_source(value) is None


def test_the_exemplars_of_a_cell_follow_page_by_page(shared: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.sign_in(Scope.READ)
    cell = f"{OWN}/calibrations/1/cells/0/3"
    rows = re.compile(r'<th scope="row" class="long"><span class="given">([^<]+)</span></th>.*?</tr>', re.DOTALL)
    whole = shared.open(cell)
    names = rows.findall(whole)
    assert "More exemplars" not in whole
    assert len(names) > 10
    monkeypatch.setattr(opened_cells, "SHOWN_POINTS", 5)
    read, path = [], cell
    while path:
        page = shared.open(path)
        assert ("Splits and true classes" in page) == (path == cell)
        read += rows.findall(page)
        more = re.search(r'rel="next" href="(\?[^"]+)"', page)
        path = cell + unescape(more[1]) if more else ""
    assert read == names


def test_a_cell_has_the_points_that_the_map_counts(shared: Visitor) -> None:
    map_ = shared.open(f"{OWN}/report")
    counted = re.findall(
        rf'href="({OWN}/calibrations/1/cells/\d/\d)">.*?<span>([\d,]+) points?</span>', map_, re.DOTALL
    )
    assert len(counted) == 8
    for path, points in counted:
        page = shared.open(path)
        of_vp = re.findall(r'<td class="row">vp</td><th scope="row">\w+</th><td>([\d,]+)</td>', page)
        assert sum(int(found.replace(",", "")) for found in of_vp) == int(points.replace(",", ""))
    assert "held-out-" in page
    for nowhere in ("9/0", "0/4"):
        assert shared.client.get(f"{OWN}/calibrations/1/cells/{nowhere}").status_code == 404
    assert shared.client.get(f"{OWN}/calibrations/99/cells/0/0").status_code == 404


def test_jobs_ask_for_themselves_again(shared: Visitor) -> None:
    page = shared.open(f"{OWN}/jobs")
    assert 'hx-trigger="advanced, every 3s"' in page
    assert "done" in page
    assert "<progress" in page


def test_a_point_is_decided_on_as_over_http(shared: Visitor) -> None:
    vector = samples.scored()["vector"][7].tolist()
    answer = shared.client.post(
        f"/v1{OWN}/decide",
        json={"points": [{"vector": vector}]},
        headers={"Authorization": f"Bearer {shared.keys[Scope.SCORE]}"},
    ).json()["decisions"][0]
    for fields in (
        {"vector": json.dumps(vector)},
        {"vector": " ".join(map(str, vector))},
        {"external_id": "scored-7"},
    ):
        page = shared.send(TRY, **fields)
        assert page.status_code == 200
        outcome = answer["decided_class"] or answer["reason"]
        assert f"What calibration {answer['calibration']} decides" in page.text
        assert outcome in page.text
        assert all(near["external_id"] in page.text for near in answer["neighbours"])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "fill one of them in"),
        ({"vector": "1, x"}, "expected numbers"),
        ({"vector": '{"a": 1}'}, "expected numbers"),
        ({"vector": "[" * 100}, "expected numbers"),
        ({"vector": "[1, 2"}, "expected numbers"),
        ({"vector": "[true, false]"}, "expected numbers"),
        ({"vector": "1, 2"}, "expected 8 numbers, got 2"),
        ({"vector": "1 " * 8 + "x " * 100}, "expected 8 numbers, got more"),
        ({"logits": json.dumps([0.5] * 100)}, "expected 3 numbers, got more"),
        ({"vector": "nan"}, "finite"),
        ({"external_id": "nobody"}, "has no exemplar"),
        ({"external_id": "scored-1", "logits": "1 2 3"}, "leave the others empty"),
        ({"external_id": '"><script>'}, "&gt;&lt;script&gt;"),
        ({"external_id": "x" * 1001}, "at most 1000 characters"),
    ],
)
def test_what_is_no_point_is_told_beside_the_form(shared: Visitor, fields: dict[str, str], why: str) -> None:
    page = shared.send(TRY, **fields)
    assert page.status_code in (404, 422)
    assert why in page.text
    assert "<script>" not in page.text
