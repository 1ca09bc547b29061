"""The queries that a report offers give the figures of its tables, for a role that may read schema `report` alone."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Row

from tests.report.pages.test_evaluation import Page
from tests.running import EXAMPLES, Bench
from tests.templates import CopyOf, Filled, fresh_bench, reviews_of
from venn_admit.cli.advice import command
from venn_admit.core.monitoring.traffic import RECENT
from venn_admit.core.split_names import Split
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.report import report as flow
from venn_admit.report.calibration.bands.part import BandsPart
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import TextTable, group_names, labels_text, ratio_text
from venn_admit.report.calibration.wording import sections
from venn_admit.report.evaluation.evaluated import edge_names
from venn_admit.report.pages.calibration import render_calibration
from venn_admit.report.wording import share_text, time_text
from venn_admit.store.database.engine import connect
from venn_admit.store.database.schema import Group

NAME = "reviews"
SCORED = 500
Rows = list[Row[Any]]
# None for what the page computes.
Cells = list[tuple[str | None, ...]]


def traffic(bench: Bench, rows: slice) -> Path:
    """Reviews that do not calibrate, without their labels."""
    with np.load(EXAMPLES / "valid.npz") as valid:
        arrays = {name: valid[name][6000:][rows] for name in ("r", "f")}
    ids = np.array([f"film-{number}" for number in range(6000, 16_000)][rows])
    return bench.write("traffic.npz", arrays | {"y": np.full(len(ids), -1), "id": ids})


def give_labels(bench: Bench, rows: range) -> None:
    """Labels of some reviews, drawn at random; they calibrate from then on."""
    with np.load(EXAMPLES / "valid.npz") as valid:
        truth = valid["y"][6000:]
    path = bench.folder / "labels.csv"
    lines = ["external_id,label", *(f"film-{6000 + row},{truth[row]}" for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    label(bench.engine, NAME, LabelFile(path), selection="random", retract=False)


@pytest.fixture(scope="module")
def bench(server_url: str, filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Calibration 1 is by bands of each q, 2 by a few bins, 3 to 5 by Venn-Abers: 4 certified, 5 admitting nothing."""
    with fresh_bench(server_url, filled(reviews_of(4000)), tmp_path_factory.mktemp("offered")) as made:
        made.score(NAME, traffic(made, slice(0, SCORED)), weighted=None)
        give_labels(made, range(100))
        made.calibrate(NAME, kappa=100, q_bins=(0, 1, 6, 16, 25), delta=2.0)
        made.score(NAME, traffic(made, slice(SCORED // 2, 2 * SCORED)), weighted=None)
        made.calibrate_abers(NAME, score="network")
        made.score(NAME, traffic(made, slice(SCORED // 2, 2 * SCORED)), weighted=None)
        made.calibrate_abers(NAME, score="network", certify=("predicted",), confidence=Decimal("0.9"))
        made.calibrate_abers(NAME, score="network", alpha=Decimal("0.001"))
        made.score(NAME, traffic(made, slice(SCORED // 2, 2 * SCORED)), weighted=None)
        give_labels(made, range(SCORED, SCORED + 200))
        update_monitor(made.engine, NAME)
        yield made


@pytest.fixture(scope="module", params=[1, 2, 3, 4, 5])
def report(request: pytest.FixtureRequest, bench: Bench) -> CalibrationReport:
    return flow(bench.workspace(), NAME, calibration_id=request.param)


def tables(report: CalibrationReport) -> list[TextTable]:
    return [part for section in sections(report, command) for part in section.parts if isinstance(part, TextTable)]


def asked(bench: Bench, query: str) -> Rows:
    """What a reader gets, who has no right to the tables."""
    with connect(bench.engine) as connection:
        connection.exec_driver_sql(f"SET ROLE {Group.READER}")
        return list(connection.exec_driver_sql(query).all())


def of_map(report: CalibrationReport, rows: Rows) -> Cells:
    assert report.map is not None
    matches, distances = edge_names(report.map.match_edges), group_names(report.map.distance_edges.tolist())
    return [
        (
            matches[row.q_group - 1],
            distances[row.d_quartile - 1],
            f"{row.points:,}",
            share(row.share_right),
            None,
            share(row.share_admitted),
            f"{row.traffic:,}",
            share(row.share_of_traffic),
        )
        for row in rows
    ]


def share(value: float | None) -> str:
    return "-" if value is None else share_text(value)


def of_classes(report: CalibrationReport, rows: Rows) -> Cells:
    """What Venn-Abers admits of mc the page says by the other folds, and its rows are near."""
    own = list(table_of(report, "class_coverage").rows)
    cells: Cells = []
    for row, (name, _, admitted, right, *computed) in zip(rows, own, strict=True):
        near = report.part.reference is Split.MC
        if near:
            assert float(admitted) == pytest.approx(row.share_admitted, abs=0.1)
            assert right == "-" or float(right) == pytest.approx(row.share_right, abs=0.1)
            assert (right == "-") == (row.share_right is None)
        assert name == (row.per if row.per == "all" else f"{row.per} {row.class_name}")
        shares = (admitted, right) if near else (share(row.share_admitted), share(row.share_right))
        cells.append((name, f"{row.points:,}", *shares, *computed))
    return cells


def of_history(report: CalibrationReport, rows: Rows) -> Cells:
    def changed(row: Row[Any]) -> str:
        found = [f"{row.arrived:,} points arrived"] if row.arrived else []
        found += [", ".join(f"method, now {row.method}" if name == "method" else name for name in row.other_settings)]
        return "; ".join(found) if row.previous is not None else "the first that is kept"

    return [
        (
            f"{row.calibration}, {report.current[row.calibration]}",
            f"{row.created_at.astimezone(UTC):%Y-%m-%d %H:%M}",
            row.reason,
            f"{row.mc_count:,}",
            f"{row.vp_count:,}" if row.vp_count else "",
            share(row.admitted),
            changed(row),
        )
        for row in rows
    ]


def of_lamps(report: CalibrationReport, rows: Rows) -> Cells:
    assert report.watch.said is not None
    lamps = {"promise": "predicted", "true_classes": "true", "partitions": "errors of", "mix": "mix of"}
    lamps |= {"labelled_classes": "sample of", "labelled_scores": "scores labelled of"}
    groups = {None: "", "none": ", q 0", "some": ", q 1-24", "all": ", q 25"}
    cells: Cells = [
        (
            f"{lamps[row.lamp]} {row.class_name}{groups[row.matching_neighbours]}",
            f"{row.labels:,}",
            "" if row.share_correct is None else share(row.share_correct),
            "" if row.lower_bound is None else share(row.lower_bound),
            "" if row.largest_e_value is None else f"{row.largest_e_value:.2f}",
            f"{row.needed:,.0f}",
            "not tested" if row.largest_e_value is None else "not lit",
        )
        for row in rows
    ]
    shown = table_of(report, "lamps").rows
    assert len(cells) == len(report.watch.said.readings) >= len(shown)
    # Lamps with equal evidence are in any order, and the page shows the first ones.
    assert [cell[4] for cell in cells[: len(shown)]] == [cell[4] for cell in shown]
    return [cell for cell in shown if cell in cells]


def table_of(report: CalibrationReport, query: str) -> TextTable:
    (found,) = [table for table in tables(report) if table.query == query]
    return found


def of_stored(_report: CalibrationReport, rows: Rows) -> Cells:
    return [(row.split, f"{row.exemplars:,}", f"{row.labelled:,}") for row in rows]


def of_labels(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        (
            row.selection,
            *(f"{count:,}" for count in (row.exemplars, row.calibrating)),
            *map(time_text, (row.first, row.newest)),
        )
        for row in rows
    ]


def of_partitions(names: list[str], by: str, rows: Rows) -> Cells:
    """Each group of q or d with its counts by class, then all of them."""
    groups = [[row for row in rows if getattr(row, by) == key] for key in sorted({getattr(row, by) for row in rows})]
    cells: Cells = []
    for name, group in zip([*names, "any"], [*groups, rows], strict=True):
        counts = [
            f"{sum(getattr(row, split) for row in group if row.label == c):,}" for split in ("mc", "vp") for c in (0, 1)
        ]
        vp, singletons, right = (
            sum(getattr(row, of) for row in group) for of in ("vp", "singletons", "singletons_right")
        )
        cells.append((name, *counts, None, ratio_text(singletons, vp), ratio_text(right, singletons)))
    return cells


def by_q(report: CalibrationReport, rows: Rows) -> Cells:
    assert isinstance(report.part, BandsPart)
    return of_partitions(report.part.bin_names, "q_from", rows)


def by_d(report: CalibrationReport, rows: Rows) -> Cells:
    assert isinstance(report.part, BandsPart)
    return of_partitions(group_names(report.part.partitions.distance_edges.tolist()), "d_quartile", rows)


def of_cells(_report: CalibrationReport, rows: Rows) -> Cells:
    points, correct = sum(row.points for row in rows), sum(row.correct for row in rows)
    return [
        *(
            (
                row.predicted_class,
                f"{row.points:,}",
                ratio_text(row.correct, row.points),
                "never" if row.threshold is None else f"{row.threshold:.5g}",
                share(row.largest),
                "never" if row.admits_from is None else f"{row.admits_from:.4g}",
                None,
            )
            for row in rows
        ),
        ("all", f"{points:,}", ratio_text(correct, points), "", "", "", None),
    ]


def of_cell_budget(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        (
            row.predicted_class,
            f"{row.points:,}",
            f"{row.correct:,}",
            share(row.largest),
            f"{row.threshold:.5g}",
            f"{row.lacking:,.0f}",
            None,
        )
        for row in rows
    ]


def of_quantiles(report: CalibrationReport, rows: Rows) -> Cells:
    assert report.traffic is not None
    assert report.traffic.comparison is not None
    calibrated, recent = rows
    cells: Cells = []
    for name in report.traffic.comparison.shifts:
        own = (f"{value:.4g}" for value in getattr(calibrated, name))
        cells.append((f"{name} of {report.part.reference}", *own, "", ""))
        values = [None] * 5 if name == "score" else [f"{value:.4g}" for value in getattr(recent, name)]
        cells.append((f"{name} decided on", *values, None, None))
    return cells


def of_compared(report: CalibrationReport, rows: Rows) -> Cells:
    (row,) = rows
    computed = [None] * (len(table_of(report, "compared_shares").columns) - 2)
    return [
        (str(report.part.reference), f"{row.calibration_points:,}", *computed),
        ("compared", f"{row.recent_points:,}", *computed),
    ]


def of_outcomes(report: CalibrationReport, rows: Rows) -> Cells:
    """Below what is known of the calibration data."""
    found = table_of(report, "outcomes")
    heads = [" ".join(head.split()) for head in found.columns[2:]]
    cells: Cells = [(None,) * len(found.columns)]
    for (weighted, full), group in groupby(rows, lambda row: (row.weighted, row.require_full_match)):
        of_options = list(group)
        name = ("weighted" if weighted else "plain") + (", q = K" if full else "")
        shares = {row.outcome: row.share for row in of_options}
        points = sum(row.points for row in of_options)
        cells.append((name, f"{points:,}", *(share(shares.get(head, 0.0)) for head in heads)))
    return cells


def of_discrepancies(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        ("scored" if row.is_scored else "mc and vp", f"{row.points:,}", f"{row.differing:,}", share(row.share))
        for row in rows
    ]


def of_certified_cells(report: CalibrationReport, rows: Rows) -> Cells:
    """Scores decide, so nothing is said of p0."""
    return [(*row[:3], *row[5:]) for row in of_cells(report, rows)]


def of_policy_classes(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        (f"{row.kind} {row.class_name}", share(row.admitted), share(row.share_right), share(row.p_value))
        for row in rows
        if row.has_passed
    ]


def of_tests(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        (
            None,
            str(row.step),
            None,
            f"{row.admitted:,}",
            *map(share, (row.least_right, row.p_value, row.level)),
            "passed" if row.has_passed else "failed",
        )
        for row in first_and_last(rows)
    ]


def first_and_last(rows: Rows) -> Rows:
    """The first and the last three policies of each chain, which the page shows."""
    found: list[Any] = []
    for chain in sorted({row.chain for row in rows}):
        of_chain = [row for row in rows if row.chain == chain]
        found += [*of_chain[:1], *of_chain[1:][-3:]]
    return found


def of_parts(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        (None, share(row.share_of_mc), share(row.share_of_recent), share(row.share_right), None, None) for row in rows
    ]


def of_parts_by_score(_report: CalibrationReport, rows: Rows) -> Cells:
    return [(None, share(row.share_of_mc), None, share(row.share_right), None, None) for row in rows]


def of_certificates(_report: CalibrationReport, rows: Rows) -> Cells:
    return [
        (
            str(row.calibration),
            str(row.setting),
            row.classifier,
            time_text(row.created_at),
            str(row.confidence),
            f"{row.looks:,}",
            str(row.joint_confidence),
        )
        for row in rows
    ]


Checks = dict[str, Callable[[CalibrationReport, Rows], Cells]]
EVERY: Checks = {
    "partition_map": of_map,
    "class_coverage": of_classes,
    "history": of_history,
    "quantiles": of_quantiles,
    "compared_shares": of_compared,
    "outcomes": of_outcomes,
    "discrepancies": of_discrepancies,
    "stored": of_stored,
    "labels": of_labels,
    "certificates": of_certificates,
}
BANDS: Checks = {"partitions_by_q": by_q, "partitions_by_d": by_d}
CELLS: Checks = {"cells": of_cells, "parts_by_score": of_parts_by_score, "parts_by_q": of_parts, "parts_by_d": of_parts}
CHECKS: dict[int, Checks] = {
    1: EVERY | BANDS,
    2: EVERY | BANDS,
    3: EVERY | CELLS,
    4: EVERY | CELLS | {"cells": of_certified_cells} | {"policy_classes": of_policy_classes, "policy_tests": of_tests},
    5: EVERY | CELLS | {"cell_budget": of_cell_budget, "lamps": of_lamps},
}


def agree(shown: tuple[tuple[str, ...], ...], asked_for: Cells) -> bool:
    return len(shown) == len(asked_for) and all(
        len(row) == len(other) and all(b is None or a == b for a, b in zip(row, other, strict=True))
        for row, other in zip(shown, asked_for, strict=True)
    )


def test_each_query_gives_the_figures_of_its_table(bench: Bench, report: CalibrationReport) -> None:
    found = {table.query: table for table in tables(report)}
    checks = CHECKS[report.snapshot.id]
    # What bands lack is counted again by each calibration, and its query has a test of its own.
    assert found.keys() - {"band_budget"} == checks.keys()
    for name, check in checks.items():
        cells = check(report, asked(bench, report.queries[name]))
        assert agree(found[name].rows, cells), (name, found[name].rows, cells)


def test_a_query_says_which_traffic_the_page_leaves_out(report: CalibrationReport) -> None:
    of_traffic = [query for query in report.queries.values() if "report.recent_decision_v1" in query]
    assert of_traffic
    for query in of_traffic:
        said = " ".join(line.removeprefix("-- ") for line in query.splitlines() if line.startswith("-- "))
        assert f"all but the newest {RECENT:,} rows" in said
        assert ("before training exemplars changed" in said) == ("knn_parameters" in query)


def test_labels_that_bands_lack(copy_of: CopyOf, filled: Filled) -> None:
    own = copy_of(filled(reviews_of(4000)))
    own.score(NAME, traffic(own, slice(0, SCORED)), weighted=None)
    found = flow(own.workspace(), NAME, calibration_id=None)
    *bins, _ = table_of(found, "band_budget").rows
    rows = asked(own, found.queries["band_budget"])
    pairs = zip(rows[::2], rows[1::2], strict=True)
    assert list(bins) == [
        (str(of.q_from), f"{of.points:,}", f"{of.lacking:.0f}", f"{other.lacking:.0f}", labels_text(of.labels_of_all))
        for of, other in pairs
    ]


def test_traffic_is_on_the_map(report: CalibrationReport) -> None:
    assert report.map is not None
    assert report.map.points.sum() == report.reference_count
    assert report.map.traffic.sum() == 2 * SCORED
    assert 0 < report.map.right.sum() < report.map.points.sum()
    assert (report.map.admitted.sum() > 0) == (report.snapshot.id != 5)


@pytest.mark.usefixtures("blank_charts")
def test_the_page_and_the_payload_have_every_query(report: CalibrationReport) -> None:
    page = Page(render_calibration(report, command))
    names = [table.query for table in tables(report) if table.query is not None]
    assert page.text.count("SQL of this table") == len(names)
    assert re.findall(r"\{\w+\}", page.text) == [], "every sentence is filled in"
    for name in names:
        assert " ".join(report.queries[name].split()) in page.text
    assert calibration_payload(report, command)["queries"] == {name: report.queries[name] for name in names}
