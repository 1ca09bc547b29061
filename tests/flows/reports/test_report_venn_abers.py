"""The report on a calibration by Venn-Abers: its counts are those of plain SQL, and its advice follows from them."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tests.core.calibrators.certified.laws import graded_points
from tests.report.pages.test_evaluation import Page
from tests.running import EXAMPLES, Bench
from tests.templates import fresh_bench
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.loss import LossMatrix
from venn_admit.core.calibrators.venn_abers.crossfit import crossfitted_lower, fold_of
from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.core.split_names import Split
from venn_admit.flows.reports.folders import write_calibration_report
from venn_admit.flows.reports.report import report as flow
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.cells.part import CellsPart
from venn_admit.report.calibration.common.coverage import (
    coverage_payload,
    coverage_pictures,
    coverage_section,
    key_figures,
    verdict,
)
from venn_admit.report.calibration.common.partition_map import caption as map_caption
from venn_admit.report.calibration.common.partition_map import map_section
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import TextTable
from venn_admit.report.calibration.traffic_wording import traffic_section
from venn_admit.report.calibration.wording import advice_text, sections, settings_text

NAME = "reviews"
COUNT = 400
MC = """
SELECT point.predicted, point.label, point.score, point.match_count, point.distance, exemplar.external_id,
    exemplar.document_id
FROM calibration_point AS point
INNER JOIN calibrator ON calibrator.id = calibrator_id
INNER JOIN exemplar ON exemplar.id = exemplar_id
WHERE calibrator.method = 'venn-abers' AND valid_until IS NULL
ORDER BY exemplar.id
"""


@pytest.fixture(scope="module")
def reviews(server_url: str, few_reviews_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Calibrated by Venn-Abers with the network's score; tweets without labels are decided on by it."""
    with fresh_bench(server_url, few_reviews_template, tmp_path_factory.mktemp("abers")) as bench:
        bench.calibrate_abers(NAME, score="network")
        with np.load(EXAMPLES / "ood.npz") as ood:
            tweets = {name: ood[name][:COUNT] for name in ("r", "f")} | {"y": np.full(COUNT, -1)}
        bench.score(NAME, bench.write("tweets.npz", tweets), weighted=None)
        yield bench


@pytest.fixture(scope="module")
def found(reviews: Bench) -> CalibrationReport:
    return flow(reviews.workspace(), NAME, calibration_id=None)


def cells(report: CalibrationReport) -> CellsPart:
    assert isinstance(report.part, CellsPart)
    return report.part


def test_cells_are_those_of_plain_sql(reviews: Bench, found: CalibrationReport) -> None:
    rows = reviews.rows(MC)
    predicted, label = np.array([row.predicted for row in rows]), np.array([row.label for row in rows])
    keys = [row.external_id if row.document_id is None else row.document_id for row in rows]
    part = cells(found)
    order = {score: i for i, score in enumerate(sorted({row.score for row in rows}))}
    assert set(part.mc.score.tolist()) == set(order)
    states = {state.predicted: state for state in part.states}
    for c in range(2):
        assert (states[c].points, states[c].right) == ((predicted == c).sum(), ((predicted == c) & (label == c)).sum())
        steps = reviews.rows("SELECT score, lower FROM venn_abers_step WHERE cell = :cell ORDER BY score", cell=c)
        assert states[c].largest == steps[-1].lower
        assert states[c].admits_from == min(row.score for row in steps if row.lower >= 0.9)
        assert states[c].lacking == 0
    points = replace(
        part.mc,
        predicted=predicted,
        match_count=np.array([row.match_count for row in rows]),
        score=np.array([row.score for row in rows]),
    )
    lower = crossfitted_lower(points, predicted == label, fold_of(keys, seed=0), class_count=2)
    assert part.admitted == (lower >= 0.9).sum()


def test_recent_traffic_is_compared_with_mc(reviews: Bench, found: CalibrationReport) -> None:
    assert found.traffic is not None
    comparison = found.traffic.comparison
    assert comparison is not None
    assert (comparison.reference, comparison.points, found.traffic.points) == (Split.MC, COUNT, COUNT)
    mc = reviews.rows(MC)
    decided = reviews.rows("SELECT * FROM decision INNER JOIN abers_evidence ON decision.id = decision_id")
    for name, column in (("score", "score"), ("q", "match_count"), ("d", "distance")):
        ours, theirs = ([getattr(row, column) for row in rows] for rows in (mc, decided))
        assert comparison.shifts[name].test.statistic == pytest.approx(ks_2samp(ours, theirs).statistic)
    admitted = sum(row.decision is not None for row in decided)
    assert comparison.shares["admitted"].recent.count == admitted > 0
    assert comparison.shares["admitted"].calibrated.count == cells(found).admitted
    (outcome,) = found.traffic.outcomes
    assert (outcome.weighted, outcome.admitted) == (False, admitted)
    parts = [part for part in cells(found).parts if part.kind == "score"]
    for c in range(2):
        mine = [part for part in parts if part.predicted == c]
        assert sum(part.recent for part in mine) == sum(row.predicted == c for row in decided)
        assert sum(part.recent_admitted for part in mine) == sum(row.decision == c for row in decided)


def test_what_is_decided_by_the_other_method_is_compared_too(reviews: Bench, found: CalibrationReport) -> None:
    """The score of a point is known whichever method decided on it, as long as the KNN is the same."""
    with np.load(EXAMPLES / "ood.npz") as ood:
        others = {name: ood[name][COUNT : COUNT + 50] for name in ("r", "f")} | {"y": np.full(50, -1)}
    reviews.score(NAME, reviews.write("others.npz", others), calibration_id=1)
    now = flow(reviews.workspace(), NAME, calibration_id=2)
    assert now.traffic is not None
    assert now.traffic.comparison is not None
    assert (now.traffic.decided_by, now.traffic.comparison.points) == ({1: 50, 2: COUNT}, COUNT + 50)
    assert now.snapshot == found.snapshot


def test_labels_in_vp_are_none_of_its_business(found: CalibrationReport) -> None:
    assert found.changes.total == 0
    text = "\n".join(str(part) for section in sections(found, command) for part in section.parts)
    assert "mc holds exactly the points and labels of this calibration." in text
    assert "method venn-abers, alpha 0.1, thresholds 0.9, score network, one bin of q;" in settings_text(found)


def test_advice_names_the_cell_that_admits_nothing(found: CalibrationReport) -> None:
    quiet = replace(found, traffic=None)
    assert advice_text(quiet, command) == ["Nothing: no labels wait to be used."]
    first, second = cells(found).states
    starved = replace(first, largest=0.875, admits_from=None, lacking=2, labels=123.0)
    part = replace(cells(found), states=(starved, second))
    (said,) = advice(replace(quiet, part=part), command)
    assert said.startswith("Nothing predicted as 'class 0' can be admitted: its p0 reaches .875 at most, below 0.9;")
    assert said.endswith("2 more right points with the highest scores would do, about 120 random labels at least.")
    nothing = replace(part, states=tuple(replace(state, admitted=0) for state in (first, second)))
    (all_of_it,) = advice(replace(quiet, part=nothing), command)
    assert all_of_it.startswith("Everything is rejected: .000 of mc would be admitted")
    late = replace(quiet, changes=replace(found.changes, arrived=3))
    assert advice(late, command) == [
        "3 labelled points arrived, changed or left: `venn-admit recalibrate reviews` uses them."
    ]


def test_the_page_is_that_of_every_calibration(found: CalibrationReport, tmp_path: Path) -> None:
    html = write_calibration_report(tmp_path / "report", found, command).read_text(encoding="utf-8")
    page = Page(html)
    assert len(page.all("svg")) == 3
    for title in ("What is stored", "What ranks the predictions", "Predicted classes", "Recent traffic", "Labels"):
        assert title in page.text
    told = calibration_payload(found, command)
    assert told["drift"]["reference"] == "mc"
    assert found.traffic is not None
    apart = replace(found, traffic=replace(found.traffic, comparison=None))
    without = calibration_payload(apart, command)["drift"]
    assert set(without) == set(told["drift"])
    assert [without[name] for name in ("score", "q", "d", "admitted", "unlike_mc")] == [None] * 5
    assert set(told["drift"]["score"]) == {"mc", "decided", "statistic", "p_value", "at_least", "shifted"}
    assert len(told["cells"]) == 2
    assert told["label_budget"] is None


def certified(found: CalibrationReport, loss: LossMatrix | None) -> CalibrationReport:
    """The report as if its calibration had a certificate, by data that are not its own."""
    rng = np.random.default_rng(3)
    points = (graded_points(rng, 3000, sharpness=20.0) for _ in range(2))
    alpha = found.snapshot.alpha
    certificate = certify(*points, class_count=2, alpha=alpha, kinds=["predicted"], loss=loss)
    part = cells(found)
    return replace(found, part=replace(part, certificate=certificate, settings=replace(part.settings, loss=loss)))


def test_the_page_begins_with_what_is_certified(found: CalibrationReport) -> None:
    said, words = verdict(certified(found, None))
    assert said is Verdict.MET
    assert words.startswith("Certified with confidence 0.95: of what is admitted, at least ")
    assert words.endswith(" is right in every predicted class.")
    assert coverage_section(found).parts == coverage_section(certified(found, None)).parts


def test_what_decides_is_named_wherever_shares_stand(found: CalibrationReport) -> None:
    """Nobody reads that plain probabilities or other folds decide where the thresholds of a policy do."""
    usual, of_policy = found, certified(found, None)
    part = cells(of_policy)
    assert part.certificate is not None
    rejecting = replace(of_policy, part=replace(part, certificate=replace(part.certificate, policy=None)))
    for report, by, how in (
        (usual, "plain probabilities", "by the bounds of the other folds"),
        (of_policy, "the policy", "its thresholds rest on points of mc too"),
        (rejecting, "the certificate", "no policy passed its tests"),
    ):
        assert report.map is not None
        assert key_figures(report)[0][1] == f"of the calibration data admitted by {by}"
        assert coverage_section(report).title == f"How much is right in each class by {by}"
        said = [
            *coverage_section(report).notes,
            *map_section(report, report.map).notes,
            map_caption(report, report.map),
            *traffic_section(report).notes,
            *(picture.caption for picture in coverage_pictures(report)),
        ]
        told = [note for note in said if by in note]
        assert len(told) >= 5
        assert sum(how in note for note in told) >= 3
        assert not any("{" in note for note in said)
        if report is not usual:
            assert not [note for note in said if "other folds" in note or "plain bounds" in note]


def test_the_picture_of_cells_says_how_many_classes_it_shows(found: CalibrationReport) -> None:
    def said(report: CalibrationReport) -> str:
        return next(picture.caption for picture in cells(report).pictures(report) if picture.name == "cells")

    many = replace(found, class_names=tuple("abcdefgh"))
    assert said(many).endswith("6 of 8 classes shown: those of which the least is admitted.")
    assert "classes shown" not in said(found)


def test_a_promise_of_a_mean_loss_is_not_judged_by_the_share_right(found: CalibrationReport) -> None:
    costly = certified(found, ((Decimal(0), Decimal(1)), (Decimal(5), Decimal(0))))
    assert "the mean loss of what is admitted is at most" in verdict(costly)[1]
    assert any("(target " in what for _, what in key_figures(found))
    assert not any("(target " in what for _, what in key_figures(costly))
    usual, without = (coverage_section(report).parts[0] for report in (found, costly))
    assert isinstance(usual, TextTable)
    assert isinstance(without, TextTable)
    assert usual.columns[:-1] == without.columns
    assert all(row == of_usual[:-1] for row, of_usual in zip(without.rows, usual.rows, strict=True))
    assert coverage_pictures(found)
    assert not coverage_pictures(costly)
    assert {row["verdict"] for row in coverage_payload(costly)} == {None}


def test_a_promise_of_other_traffic_is_not_judged_by_the_calibration_data(found: CalibrationReport) -> None:
    usual = certified(found, None)
    part = cells(usual)
    settings = replace(part.settings, class_shares=(Decimal("0.5"),) * 2, class_shares_within=Decimal(0))
    other = replace(usual, part=replace(part, settings=settings))
    for report, where in ((usual, "Promised, for traffic like the calibration data: "), (other, "Promised: ")):
        assert coverage_section(report).notes[0] == f"{where}{report.promise_sentence}."
        assert bool(coverage_pictures(report)) == (report is usual)
