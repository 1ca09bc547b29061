"""The report on a calibration as a terminal, a page and a program show it; made of given numbers."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape
from rich.console import Console

from tests.report.pages.test_evaluation import Page
from tests.report.samples import HOSTILE_NAMES
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.bands import BandRadius
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.evaluation.measures import measure_admission
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.core.monitoring.bands import WeightedShare, label_budget
from venn_admit.core.monitoring.drift import Discrepancies, KolmogorovSmirnov, OutcomeCounts, Shift
from venn_admit.core.monitoring.history import (
    Day,
    Inventory,
    LabelSelection,
    PointChanges,
    SnapshotChange,
)
from venn_admit.core.monitoring.partitions import CalibrationPartitions, PlacedPoints, map_rows, partition_map
from venn_admit.core.monitoring.traffic import Accuracy, Comparison, Share, SharePair, Traffic
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.files.output.exports import finite_json
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.bands.part import BandsPart
from venn_admit.report.calibration.common.coverage import coverage_pictures, key_figures, verdict
from venn_admit.report.calibration.common.history import days_picture
from venn_admit.report.calibration.common.watch import Watch
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.report import Agreement, CalibrationReport, SnapshotFacts
from venn_admit.report.calibration.wording import calibration_tables
from venn_admit.report.evaluation.dataset import ClassCoverage, class_coverage, worst_classes
from venn_admit.report.pages.calibration import render_calibration, write_calibration_page
from venn_admit.store.decisions.reports import table_queries
from venn_admit_client.records.calibrations import Withheld
from venn_admit_client.records.certificates import CertificateLook

NEWEST = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
WIDTHS = (80, 120)


def pair(of_vp: float, recent: float) -> SharePair:
    """Shares of 10,000 points each."""
    return SharePair(*(Share(round(10_000 * share), 10_000, 10_000.0) for share in (of_vp, recent)))


def made_coverage(generator: np.random.Generator, class_count: int) -> ClassCoverage:
    """4,000 points, four of five right; those with a lower probability of 0.9 are admitted."""
    label = generator.integers(0, class_count, 4000)
    predicted = np.where(generator.uniform(size=4000) < 0.8, label, (label + 1) % class_count)
    lower = generator.uniform(size=4000)
    right, everything = (
        measure_admission(label, predicted, chosen, class_count, None).right for chosen in (lower >= 0.9, lower >= 0)
    )
    shown = worst_classes(right, everything, Decimal("0.1"))
    return class_coverage(label, predicted, lower, None, admitted=right, shown=shown)


REJECTED = Counter(
    {Reason.BAND_BELOW_KAPPA: 10_000, Reason.SET_NOT_SINGLETON: 15_000, Reason.PROBABILITY_BELOW_THRESHOLD: 5000}
)


def rejected(starved: int) -> Counter[Reason]:
    """Half as many for their sets, and a quarter for each of the others of Venn-ADMIT."""
    quarter = starved // 4
    of_others = {Reason.PROBABILITY_BELOW_THRESHOLD: quarter, Reason.MATCH_COUNT_BELOW_K: quarter}
    return Counter({Reason.BAND_BELOW_KAPPA: starved, Reason.SET_NOT_SINGLETON: 2 * quarter, **of_others})


def made_report(class_names: tuple[str, ...], neighbour_count: int = 25) -> CalibrationReport:
    """Counts of five digits, so that columns are as wide as they get; nothing is amiss."""
    classes = len(class_names)
    shape = (neighbour_count + 1, 4)
    generator = np.random.default_rng(0)
    usable = np.full(shape, 9000)
    mc_count = generator.integers(1000, 2000, (*shape, classes))
    vp_count = generator.integers(9000, 9999, (*shape, classes))
    settings = make_settings(classes, neighbour_count, kappa=1000)
    match_count, distance = generator.integers(0, neighbour_count + 1, 4000), generator.uniform(1.0, 2.0, 4000)
    shift = Shift(np.linspace(1.0, 2.0, 5), np.linspace(1.5, 2.5, 5), KolmogorovSmirnov(0.25, 1e-9, 0.0))
    return CalibrationReport(
        classifier="made",
        class_names=class_names,
        snapshot=SnapshotFacts(
            id=7,
            created_at=NEWEST,
            reason="test",
            state="current",
            parameters_are_current=True,
            method="venn-admit",
            alpha=settings.alpha,
            mc_count=int(mc_count.sum()),
            vp_count=int(vp_count.sum()),
            forgotten=0,
        ),
        inventory=Inventory(
            dict.fromkeys(Split, 99_000),
            dict.fromkeys(Split, 98_000),
            (LabelSelection("random", 98_000, 49_000, NEWEST, NEWEST),),
            training_waiting=0,
            copies=0,
            copies_apart=0,
            training_copies=0,
            unlikely_logits=0,
        ),
        changes=PointChanges(0, 0, 0),
        agreement=Agreement(Discrepancies(20, 800), Discrepancies(400, 14_000), Discrepancies(0, 0)),
        traffic=Traffic(
            50_000,
            45_000,
            {6: 20_000, 7: 30_000},
            (OutcomeCounts(True, True, 50_000, 10_000, rejected(20_000)),),
            (OutcomeCounts(True, True, 30_000, 6000, rejected(12_000)),),
            Comparison(
                40_000,
                Split.VP,
                {"q": shift, "d": shift},
                {"usable": pair(0.9, 0.85), "admitted": pair(0.4, 0.38)},
            ),
            (),
        ),
        seen_count=0,
        part=BandsPart(
            settings=settings,
            neighbour_count=neighbour_count,
            radius=BandRadius(0.4, 0.4),
            mc_share=make_settings(2, 1).alpha,
            partitions=CalibrationPartitions(
                distance_edges=np.array([1.25, 1.5, 1.75]),
                mc_count=mc_count,
                vp_count=vp_count,
                usable=usable,
                singleton=usable // 2,
                right=usable // 3,
            ),
            admitted_of_vp=int(0.4 * vp_count.sum()),
            divisions=(0.25, 0.5),
            weighted=WeightedShare(points=2000, plain=800, admitted=700, right=690),
            other_settings=None,
            lacking=label_budget(
                np.tile([500] * (classes - 1) + [0], (3, 1)), np.array([0, 0, 25]), kappa=1000, label_count=1e5
            ),
        ),
        map=partition_map(
            PlacedPoints(match_count, distance, match_count > 0, match_count == neighbour_count),
            (match_count[:40], distance[:40]),
            match_edges=map_rows(settings.q_bins, neighbour_count),
            neighbour_count=neighbour_count,
            distance_edges=np.array([1.25, 1.5, 1.75]),
        ),
        coverage=made_coverage(generator, classes),
        history=(
            SnapshotChange(
                7,
                NEWEST,
                "test",
                "venn-admit",
                "current",
                99_000,
                99_000,
                6,
                PointChanges(1200, 3, 1, 99_000),
                False,
                True,
                ("method", "thresholds", "bins of q"),
                0.4,
            ),
            SnapshotChange(
                6,
                NEWEST,
                "asked for by a person",
                "venn-abers",
                "retired",
                98_000,
                0,
                None,
                None,
                False,
                False,
                (),
                None,
            ),
        ),
        days=tuple(
            Day(date(2026, 2, 1) + timedelta(days=n), 100 * n, min(400, 100 * n), min(400, 100 * n) // 2, n)
            for n in range(28)
        ),
        watch=Watch(is_in_use=True, said=None, is_behind=False),
        queries=table_queries("made", 7, 1, "vp", (0, 1, 6), (0, 1, 6)),
        withheld={},
        looks=(),
        current={7: "in use"},
    )


@pytest.fixture(scope="module")
def two_classes() -> CalibrationReport:
    return made_report(("negative", "positive"))


@pytest.fixture(scope="module")
def hostile() -> CalibrationReport:
    return made_report(HOSTILE_NAMES)


def shown(report: CalibrationReport, width: int = 80, *, colour: bool = False) -> str:
    output = StringIO()
    console = Console(file=output, width=width, force_terminal=colour, color_system="standard" if colour else None)
    console.print(calibration_tables(report, command))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


@pytest.fixture(scope="module")
def three_classes() -> CalibrationReport:
    return made_report(("red", "green", "blue"))


def test_classes_with_long_names_can_be_told_apart() -> None:
    text = shown(made_report(("service, billing, refund asked for", "service, billing, refund granted")), 160)
    assert re.findall("(predicted|true) (service, billing, refund .*?)  ", text) == [
        (kind, f"service, billing, refund {name}")
        for kind in ("predicted", "true")
        for name in ("asked for", "granted")
    ]
    assert "serv…for  serv…ted" in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["two_classes", "three_classes", "hostile"])
def test_every_row_is_whole(width: int, which: str, request: pytest.FixtureRequest) -> None:
    report: CalibrationReport = request.getfixturevalue(which)
    text = shown(report, width)
    assert max(map(len, text.splitlines())) <= width
    assert which == "hostile" or "…" not in text
    vp = bands(report).partitions.vp_count[0].sum(axis=0)  # (C,)
    for count in vp if which == "two_classes" else [vp.sum()]:
        assert f" {count:,} " in text
    # Headings, and the figures of one row of each table, up to its last column.
    for line in (r"single-$", r"tons +right$", r"random +98,000 +49,000 +2026-03-01 09:30 UTC +2026-03-01 09:30 UTC$"):
        assert re.search(line, text, re.MULTILINE), line
    assert re.search(r"^ ?weighted, q = K +50,000 +.200 +.400 +.200 +.100 +.100$", text, re.MULTILINE)
    assert re.search(r"^ ?d decided on +1.5 +1.75 +2 +2.25 +2.5 +.250 +<.001$", text, re.MULTILINE)
    words = " ".join(text.split())
    assert "made (UTC)" in words
    assert "6, retired" in words
    assert re.search(r"^ ?any +3 .* unknown$", text, re.MULTILINE)


def test_the_share_of_traffic_says_who_decided(two_classes: CalibrationReport) -> None:
    own = two_classes.snapshot.id
    for deciders, said in (
        ((own,), "of traffic admitted"),
        ((3,), "of traffic admitted, by another calibration"),
        ((3, 4), "of traffic admitted, by other calibrations"),
        ((3, own), "of traffic admitted, in part by another calibration"),
    ):
        report = with_traffic(two_classes, decided_by=dict.fromkeys(deciders, 10))
        assert key_figures(report)[-1][1] == said


def test_labels_by_day_are_those_that_were_counted(two_classes: CalibrationReport) -> None:
    said = days_picture(two_classes.days).caption
    assert f"{sum(day.labels for day in two_classes.days)} among the newest 20,000 labels of all classifiers." in said


def test_a_picture_of_many_classes_says_how_many_it_shows(
    two_classes: CalibrationReport, hostile: CalibrationReport
) -> None:
    words = f"{len(hostile.coverage.shown)} of 8 classes shown: those of which the worst is admitted."
    (picture,) = coverage_pictures(hostile)
    assert picture.caption.endswith(words)
    (picture,) = coverage_pictures(two_classes)
    assert "classes shown" not in picture.caption


def test_many_classes_say_what_is_left_out(two_classes: CalibrationReport, hostile: CalibrationReport) -> None:
    words = "3 of 8 classes shown: those with the fewest points in mc."
    assert shown(hostile).count(words) == 2
    assert "classes shown" not in shown(two_classes)
    per_class = bands(hostile).partitions.mc_count.sum(axis=(0, 1))
    fewest = HOSTILE_NAMES[int(per_class.argmin())]
    assert f"{fewest[:5]}" in shown(hostile)


def test_names_are_not_read_as_markup() -> None:
    report = made_report(("[red]a", "<b>"))
    assert "[red]a" in shown(report, 120)
    assert "\x1b[31m" not in shown(report, 120, colour=True)


def test_where_nothing_was_decided(two_classes: CalibrationReport) -> None:
    text = shown(replace(with_part(two_classes, lacking=None), traffic=None, seen_count=3))
    assert "Nothing else has been decided yet." in text
    assert "3 exemplars that were decided on are left out" in text
    assert "No point was rejected because its band is below kappa." in text
    text = shown(replace(two_classes, traffic=None, seen_count=1))
    assert "1 exemplar that was decided on is left out" in text


def test_advice(two_classes: CalibrationReport) -> None:
    assert "Nothing: no labels wait" in shown(two_classes)
    grown = Agreement(Discrepancies(20, 800), Discrepancies(900, 14_000), Discrepancies(0, 0))
    due = replace(two_classes, agreement=grown, changes=PointChanges(5, 0, 1))
    text = " ".join(shown(due).split())
    assert (
        "6 labelled points arrived, changed or left: `venn-admit calibrate made --method venn-admit --kappa 1000`"
        in text
    )
    assert "`venn-admit fit made` fits them again; calibrate afterwards" in text
    text = " ".join(shown(replace(two_classes, changes=PointChanges(1, 0, 0))).split())
    assert "1 labelled point arrived, changed or left: " in text
    assert " uses it. " in f"{text} "
    assert "Since the calibration, 1 labelled point arrived in mc and vp, 0 changed and 0 left." in text
    given = replace(two_classes, agreement=replace(grown, at_fit=None))
    assert "there is no fit to compare with" in shown(given)
    assert "Nothing: no labels wait to be used and recent traffic is like vp.\n" in shown(given, 120) + "\n"
    assert advice(given, command) == []
    why = Withheld(in_use=7, points=4000, share=0.01, share_in_use=0.4)
    look = CertificateLook(7, 1, "made", NEWEST, Decimal("0.95"), 2, Decimal("0.90"))
    below = replace(two_classes, withheld={8: why, 6: why}, looks=(look,))
    (said,) = [line for line in advice(below, command) if "venn-admit use" in line]
    assert said.startswith(
        "Calibration 8 was not put in use because it would admit 1.0% of 4,000 calibration points and"
    )
    counted = "2 certificates looked at the labels of mc and vp; all hold together with confidence 0.90."
    assert counted in " ".join(shown(below).split())
    older = replace(below, looks=tuple(replace(look, looks=number) for number in range(22, 0, -1)))
    assert "2 older ones are not shown here" in " ".join(shown(older).split())
    itself = replace(below, snapshot=replace(due.snapshot, id=8, state="withheld"))
    assert advice(itself, command) == [said]
    retired = replace(due, snapshot=replace(due.snapshot, state="retired"))
    assert advice(retired, command) == ["This calibration is retired: `venn-admit report made` shows the one in use."]


def bands(report: CalibrationReport) -> BandsPart:
    assert isinstance(report.part, BandsPart)
    return report.part


def with_part(report: CalibrationReport, **changes: Any) -> CalibrationReport:
    return replace(report, part=replace(bands(report), **changes))


def with_traffic(report: CalibrationReport, **changes: Any) -> CalibrationReport:
    assert report.traffic is not None
    return replace(report, traffic=replace(report.traffic, **changes))


def with_comparison(report: CalibrationReport, **changes: Any) -> CalibrationReport:
    assert report.traffic is not None
    assert report.traffic.comparison is not None
    found = report.traffic.comparison
    shifts = {name: changes.get(name, value) for name, value in found.shifts.items()}
    shares = {name: changes.get(name, value) for name, value in found.shares.items()}
    return with_traffic(report, comparison=replace(found, shifts=shifts, shares=shares))


def test_traffic_of_several_calibrations(two_classes: CalibrationReport) -> None:
    text = " ".join(shown(two_classes, 120).split())
    assert "50,000 exemplars were decided on recently, by calibrations 7 (30,000), 6 (20,000);" in text
    many = " ".join(shown(with_traffic(two_classes, decided_by=dict.fromkeys(range(1, 9), 10)), 120).split())
    assert "by calibrations 8 (10), 7 (10), 6 (10), 5 (10), 4 (10) and 3 older;" in many
    assert "10,000 of these are not compared with vp: their q and d were computed with other KNN parameters" in text
    assert "vp 10,000 .900 .400 compared 40,000 .850 .380" in text


@pytest.mark.parametrize("name", ["q", "d"])
def test_a_large_shift_is_advised_upon(two_classes: CalibrationReport, name: str) -> None:
    large = Shift(np.zeros(5), np.ones(5), KolmogorovSmirnov(0.3, 1e-9, 0.25))
    (found,) = advice(with_comparison(two_classes, **{name: large}), command)
    assert f"the distributions of {name} differ by .300 (at least .250 if chance is allowed for)" in found
    assert "label a random sample of recent traffic (`venn-admit export made --what unlabelled" in found


def test_traffic_that_has_its_labels_need_not_be_labelled(two_classes: CalibrationReport) -> None:
    report = with_comparison(with_traffic(two_classes, unlabelled=0), admitted=pair(0.4, 0.1))
    (found,) = advice(report, command)
    assert "every point of recent traffic has a label already" in found
    assert "export" not in found


def test_shares_that_recent_traffic_lost_are_advised_upon(two_classes: CalibrationReport) -> None:
    (found,) = advice(with_comparison(two_classes, usable=pair(0.9, 0.5), admitted=pair(0.4, 0.1)), command)
    assert ".500 of it lie in usable bands, of vp .900; .100 of it would be admitted by plain" in found


def test_errors_come_first(two_classes: CalibrationReport) -> None:
    accuracy = (Accuracy(None, 774, 1000, 0.73, 0.81), Accuracy(1, 95, 100, 0.87, 0.98))
    report = with_comparison(with_traffic(two_classes, accuracy=accuracy), admitted=pair(0.4, 0.1))
    first, second = advice(report, command)
    assert "a share of at least 1 - alpha = 0.9 should be right" in first
    assert "of all, .774 of 1,000 (99 % interval .730 to .810)." in first
    assert second.startswith("Recent traffic is unlike vp")
    assert "`venn-admit export made --what unlabelled" in first
    assert second.endswith("unlike the calibration data; recalibrate with that sample.")
    text = " ".join(shown(report, 120).split())
    assert "Lowest by predicted class: positive, .950 of 100 (99 % interval .870 to .980)." in text
    of_class = (accuracy[1], replace(accuracy[1], high=0.89))
    (found,) = advice(with_traffic(two_classes, accuracy=of_class), command)
    assert "of those predicted 'positive', .950 of 100" in found


def test_where_everything_is_rejected(two_classes: CalibrationReport) -> None:
    (found,) = advice(with_part(two_classes, admitted_of_vp=0), command)
    assert found.startswith("Everything is rejected: ")
    none = (OutcomeCounts(True, False, 30_000, 0, REJECTED),)
    (found,) = advice(with_traffic(two_classes, own_outcomes=none), command)
    assert "were rejected, most of them as 'set not a singleton', though" in found
    assert found.startswith("All points of recent traffic")
    few = (OutcomeCounts(True, False, 3, 0, Counter({Reason.BAND_BELOW_KAPPA: 3})),)
    assert advice(with_traffic(two_classes, own_outcomes=few), command) == []


def test_where_weights_reject_what_plain_probabilities_admit(two_classes: CalibrationReport) -> None:
    """Both figures are said, and what to do, instead of "Nothing"."""
    rejecting = with_part(two_classes, weighted=WeightedShare(points=800, plain=137, admitted=4, right=4))
    (found,) = advice(rejecting, command)
    assert found.startswith("Weights reject most of what plain probabilities would admit: of 800 points of vp")
    assert "would admit 4 (0.5%), plain ones 137 (17.1%)" in found
    assert "Ask for unweighted decisions when you score" in found
    assert "venn-abers" in found
    figures = [f"{figure} {what}" for figure, what in key_figures(rejecting)]
    assert figures[0] == "0.5% of the calibration data admitted with weights, the default"
    assert figures[1] == "100.0% of these right (target 90.0%)"
    assert figures[2].endswith("of the calibration data admitted by plain probabilities")
    weights = calibration_payload(rejecting, command)["weights"]
    assert weights == {"points": 800, "admitted_plain": 137, "admitted_weighted": 4, "right_weighted": 4}
    none = (OutcomeCounts(True, False, 30_000, 0, REJECTED),)
    (found,) = advice(with_traffic(rejecting, own_outcomes=none), command)
    assert found.startswith("Weights reject most"), "a sample of traffic would not change that"
    half = with_part(two_classes, weighted=WeightedShare(points=800, plain=138, admitted=69, right=69))
    assert advice(half, command) == []


def test_what_other_divisions_would_admit(two_classes: CalibrationReport) -> None:
    (said,) = [line for line in shown(two_classes, 400).splitlines() if "other divisions" in line and "vp" in line]
    points = two_classes.snapshot.mc_count + two_classes.snapshot.vp_count
    assert said == (
        f"Plain probabilities would admit .400 of vp. 2 other divisions of the same {points:,} points into mc and vp "
        "admit .375 on average, from .250 to .500."
    )
    assert calibration_payload(two_classes, command)["division_shares"] == [0.25, 0.5]
    unknown = with_part(two_classes, divisions=())
    assert "admit is unknown: they leave too few points, or neighbours of the points" in shown(unknown, 400)
    assert calibration_payload(unknown, command)["division_shares"] == []


def test_where_nearly_everything_is_rejected(two_classes: CalibrationReport) -> None:
    vp = two_classes.snapshot.vp_count
    (found,) = advice(with_part(two_classes, admitted_of_vp=int(0.08 * vp)), command)
    assert found.startswith("Nearly everything is rejected: ")
    assert "but only .080 of its points would be admitted by plain probabilities and .350 with weights" in found
    assert advice(with_part(two_classes, admitted_of_vp=int(0.12 * vp)), command) == []
    for admitted, advised in ((240, True), (3000, False)):
        refused = Counter({Reason.BAND_BELOW_KAPPA: 10_000, Reason.SET_NOT_SINGLETON: 20_000 - admitted})
        own = (OutcomeCounts(True, False, 30_000, admitted, refused),)
        found_now = advice(with_traffic(two_classes, own_outcomes=own), command)
        assert bool(found_now) == advised
        assert not advised or found_now[0].startswith("Nearly all points of recent traffic")


def test_the_page_shows_what_the_terminal_does(two_classes: CalibrationReport, hostile: CalibrationReport) -> None:
    html = render_calibration(two_classes, command)
    page = Page(html)
    assert len(page.all("table")) == 13
    assert "made: calibration 7, in use, of 2026-03-01 09:30 UTC" in page.text
    assert "Nothing: no labels wait" in page.text
    assert not re.search(r"https?:|//[a-z]|src=|@import|<script|<link|<iframe", html)
    assert render_calibration(two_classes, command) == html
    assert "<b>bold" not in render_calibration(hostile, command)


@pytest.mark.usefixtures("blank_charts")
def test_commands_stand_apart_on_the_page(two_classes: CalibrationReport) -> None:
    due = replace(two_classes, changes=PointChanges(5, 0, 1))
    assert "<code>venn-admit calibrate made --method venn-admit --kappa 1000</code>" in render_calibration(due, command)


@pytest.mark.usefixtures("blank_charts")
def test_the_verdict_comes_first_then_the_map_then_tables(two_classes: CalibrationReport) -> None:
    html = render_calibration(two_classes, command)
    body = html[html.index("<main>") :]
    said, words = verdict(two_classes)
    parts = [
        f'<span class="key {said}">',
        str(escape(words)),
        "What to do next",
        'aria-label="The last 28 days',
        '<table class="map">',
        "<table>",
    ]
    places = [body.index(part) for part in parts]
    assert places == sorted(places)


def test_the_verdict_is_that_of_the_predicted_classes(two_classes: CalibrationReport) -> None:
    def told(*shares: tuple[int, int]) -> tuple[Verdict, str]:
        tallies = tuple(Tally(correct, count, 4000) for correct, count in shares)
        coverage = two_classes.coverage
        admitted = replace(coverage.admitted, per_predicted_class=tallies)
        return verdict(replace(two_classes, coverage=replace(coverage, admitted=admitted)))

    assert told((990, 1000), (0, 0)) == (
        Verdict.MET,
        "Every predicted class meets the target of 0.9 by plain probabilities.",
    )
    missed, words = told((800, 1000), (905, 1000))
    assert missed is Verdict.MISSED
    assert words == "Predictions of 'negative' miss the target of 0.9 by plain probabilities."
    unclear, words = told((990, 1000), (905, 1000))
    assert unclear is Verdict.CANNOT_TELL
    assert words == "This sample cannot judge predictions of 'positive' by plain probabilities."
    assert told((0, 0), (0, 0)) == (Verdict.CANNOT_TELL, "Plain probabilities would admit nothing.")


@pytest.mark.usefixtures("blank_charts")
def test_the_page_is_written(two_classes: CalibrationReport, tmp_path: Path) -> None:
    page = write_calibration_page(two_classes, command, tmp_path / "new" / "folder")
    assert page.read_text(encoding="utf-8") == render_calibration(two_classes, command)


def test_payload_has_every_class_and_partition(hostile: CalibrationReport) -> None:
    payload = json.loads(json.dumps(finite_json(calibration_payload(hostile, command)), allow_nan=False))
    cells = payload["partitions"]["cells"]
    assert len(cells) == 26 * 4
    for cell in cells:
        assert set(cell["mc"]) == set(cell["vp"]) == set(HOSTILE_NAMES)
    budget = payload["label_budget"]
    assert [(part["q"], part["points"]) for part in budget["per_bin"]] == [("0", 2), ("25", 1)]
    assert budget["all"]["labels"] == "inf"
    assert list(budget["all"]["lacking"].values()) == [500] * 7 + [1000]
    assert payload["discrepancies"]["scored"]["share"] == "nan"
