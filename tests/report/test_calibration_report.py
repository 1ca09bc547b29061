"""The report on a calibration as a terminal, a page and a program show it; made of given numbers."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from service.core.bands import BandRadius
from service.core.calibration_partitions import CalibrationPartitions
from service.core.calibrator_settings import make_settings
from service.core.discrepancies import Discrepancies
from service.core.drift import Drift, KolmogorovSmirnov, Outcome, Shift
from service.core.inventory import Inventory, LabelSelection, SnapshotChanges
from service.core.label_budget import label_budget
from service.core.types import Split
from service.files.exports import finite_json
from service.report.calibration import Agreement, CalibrationReport, SnapshotFacts
from service.report.calibration_page import render_calibration, write_calibration_page
from service.report.calibration_payload import calibration_payload
from service.report.calibration_tables import calibration_tables
from tests.report.samples import HOSTILE_NAMES
from tests.report.test_page import Page

NEWEST = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
WIDTHS = (80, 120)


def made_report(class_names: tuple[str, ...], neighbour_count: int = 25) -> CalibrationReport:
    """Of counts of five digits, so that columns are as wide as they get; nothing is amiss."""
    classes = len(class_names)
    shape = (neighbour_count + 1, 4)
    generator = np.random.default_rng(0)
    usable = np.full(shape, 9000)
    mc_count = generator.integers(1000, 2000, (*shape, classes))
    vp_count = generator.integers(9000, 9999, (*shape, classes))
    settings = make_settings(classes, neighbour_count, kappa=1000)
    shift = Shift(np.linspace(1.0, 2.0, 5), np.linspace(1.5, 2.5, 5), KolmogorovSmirnov(0.25, 1e-9))
    return CalibrationReport(
        classifier="made",
        class_names=class_names,
        neighbour_count=neighbour_count,
        mc_share=make_settings(2, 1).alpha,
        snapshot=SnapshotFacts(
            id=7,
            created_at=NEWEST,
            reason="test",
            is_current=True,
            parameters_are_current=True,
            settings=settings,
            radius=BandRadius(0.4, 0.4),
            mc_count=int(mc_count.sum()),
            vp_count=int(vp_count.sum()),
        ),
        inventory=Inventory(
            dict.fromkeys(Split, 99_000),
            dict.fromkeys(Split, 98_000),
            (LabelSelection("random", 98_000, NEWEST, NEWEST),),
        ),
        changes=SnapshotChanges(0, 0, 0),
        partitions=CalibrationPartitions(
            distance_edges=np.array([1.25, 1.5, 1.75]),
            mc_count=mc_count,
            vp_count=vp_count,
            usable=usable,
            singleton=usable // 2,
            right=usable // 3,
        ),
        agreement=Agreement(Discrepancies(20, 800), Discrepancies(400, 14_000), Discrepancies(0, 0)),
        drift=Drift(50_000, shift, shift, (Outcome(True, True, 50_000, 10_000, (20_000, 10_000, 5000, 5000)),)),
        seen_count=0,
        budget=label_budget(
            np.tile([500] * (classes - 1) + [0], (3, 1)), np.array([0, 0, 25]), kappa=1000, label_count=1e5
        ),
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
    console.print(calibration_tables(report))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


@pytest.fixture(scope="module")
def three_classes() -> CalibrationReport:
    return made_report(("red", "green", "blue"))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["two_classes", "three_classes", "hostile"])
def test_every_row_is_whole(width: int, which: str, request: pytest.FixtureRequest) -> None:
    report: CalibrationReport = request.getfixturevalue(which)
    text = shown(report, width)
    assert max(map(len, text.splitlines())) <= width
    assert which == "hostile" or "…" not in text
    vp = report.partitions.vp_count[0].sum(axis=0)  # (C,)
    for count in vp if which == "two_classes" else [vp.sum()]:
        assert f" {count:,} " in text
    # Headings, and the figures of one row of each table, up to its last column.
    for line in (r"single-$", r"tons +right$", r"random +98,000 +2026-03-01 09:30 UTC +2026-03-01 09:30 UTC$"):
        assert re.search(line, text, re.MULTILINE), line
    assert re.search(r"^ ?weighted, q = K +50,000 +.200 +.400 +.200 +.100 +.100$", text, re.MULTILINE)
    assert re.search(r"^ ?d decided on +1.5 +1.75 +2 +2.25 +2.5 +.250 +<.001$", text, re.MULTILINE)
    assert re.search(r"^ ?any +3 .* unknown$", text, re.MULTILINE)


def test_many_classes_say_what_is_left_out(two_classes: CalibrationReport, hostile: CalibrationReport) -> None:
    words = "3 of 8 classes shown: those with the fewest points in mc."
    assert shown(hostile).count(words) == 2
    assert "classes shown" not in shown(two_classes)
    per_class = hostile.partitions.mc_count.sum(axis=(0, 1))
    fewest = HOSTILE_NAMES[int(per_class.argmin())]
    assert f"{fewest[:5]}" in shown(hostile)


def test_names_are_not_read_as_markup() -> None:
    report = made_report(("[red]a", "<b>"))
    assert "[red]a" in shown(report, 120)
    assert "\x1b[31m" not in shown(report, 120, colour=True)


def test_where_nothing_was_decided(two_classes: CalibrationReport) -> None:
    text = shown(replace(two_classes, drift=None, budget=None, seen_count=3))
    assert "Nothing else was decided with this calibration yet." in text
    assert "3 exemplars decided on are left out" in text
    assert "No point was rejected because its band is below kappa." in text


def test_advice(two_classes: CalibrationReport) -> None:
    assert "Nothing: no labels wait" in shown(two_classes)
    grown = Agreement(Discrepancies(20, 800), Discrepancies(900, 14_000), Discrepancies(0, 0))
    due = replace(two_classes, agreement=grown, changes=SnapshotChanges(5, 0, 1))
    text = " ".join(shown(due).split())
    assert "6 labelled points arrived, changed or left: `venn-admit calibrate made`" in text
    assert "`venn-admit fit made`, then calibrate" in text
    given = replace(two_classes, agreement=replace(grown, at_fit=None))
    assert "there is no fit to compare with" in shown(given)
    assert "Nothing: no labels wait to be taken up.\n" in shown(given) + "\n"
    assert given.advice() == []
    retired = replace(due, snapshot=replace(due.snapshot, is_current=False))
    assert retired.advice() == ["This calibration is retired: `venn-admit report made` shows what is current."]


def test_the_page_shows_what_the_terminal_does(two_classes: CalibrationReport, hostile: CalibrationReport) -> None:
    html = render_calibration(two_classes)
    page = Page(html)
    assert len(page.all("table")) == 8
    assert "made: calibration 7, current, of 2026-03-01 09:30 UTC" in page.text
    assert "Nothing: no labels wait" in page.text
    assert not re.search(r"https?:|//[a-z]|src=|@import|<script|<link|<iframe", html)
    assert render_calibration(two_classes) == html
    assert "<b>bold" not in render_calibration(hostile)


def test_commands_stand_apart_on_the_page(two_classes: CalibrationReport) -> None:
    due = replace(two_classes, changes=SnapshotChanges(5, 0, 1))
    assert "<code>venn-admit calibrate made</code>" in render_calibration(due)


def test_the_page_is_written(two_classes: CalibrationReport, tmp_path: Path) -> None:
    page = write_calibration_page(two_classes, tmp_path / "new" / "folder")
    assert page.read_text(encoding="utf-8") == render_calibration(two_classes)


def test_payload_has_every_class_and_partition(hostile: CalibrationReport) -> None:
    payload = json.loads(json.dumps(finite_json(calibration_payload(hostile)), allow_nan=False))
    cells = payload["partitions"]["cells"]
    assert len(cells) == 26 * 4
    for cell in cells:
        assert set(cell["mc"]) == set(cell["vp"]) == set(HOSTILE_NAMES)
    budget = payload["label_budget"]
    assert [(part["q"], part["points"]) for part in budget["per_bin"]] == [("0", 2), ("25", 1)]
    assert budget["all"]["labels"] == "inf"
    assert list(budget["all"]["lacking"].values()) == [500] * 7 + [1000]
    assert payload["discrepancies"]["scored"]["share"] == "nan"
