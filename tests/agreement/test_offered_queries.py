"""The queries that a report offers give the figures of its tables, for whoever may read schema `report` alone."""

from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Row

from tests.conftest import fresh_database
from tests.report.pages.test_evaluation import Page
from tests.running import EXAMPLES, Bench, make_reviews
from venn_admit.service.cli.steps import COMMANDS
from venn_admit.service.core.types import Split
from venn_admit.service.files.label_sources import LabelFile
from venn_admit.service.flows.exemplars.label import label
from venn_admit.service.flows.monitoring.monitor import update_monitor
from venn_admit.service.flows.reporting.report import report as flow
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.payload import calibration_payload
from venn_admit.service.report.calibration.sections import TextTable, group_names
from venn_admit.service.report.calibration.wording import sections
from venn_admit.service.report.evaluation.evaluated import edge_names
from venn_admit.service.report.evaluation.wording import share_text
from venn_admit.service.report.pages.calibration import render_calibration
from venn_admit.service.store.database.engine import connect, create_engine
from venn_admit.service.store.database.reader import READER

NAME = "reviews"
SCORED = 500
Rows = list[Row[Any]]
Cells = list[tuple[str, ...]]


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
def bench(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Calibration 1 is by bands of each q, 2 by a few bins of q, 3 by Venn-Abers; 1 and 3 decided on traffic."""
    with fresh_database(server_url, template_database) as url:
        engine = create_engine(url)
        made = Bench(engine, tmp_path_factory.mktemp("offered"))
        make_reviews(made, held_out_rows=6000)
        made.score(NAME, traffic(made, slice(0, SCORED)), weighted=None)
        give_labels(made, range(100))
        made.calibrate(NAME, kappa=100, bin_edges=(0, 1, 6, 16, 25), delta=2.0)
        made.score(NAME, traffic(made, slice(SCORED // 2, 2 * SCORED)), weighted=None)
        made.calibrate_abers(NAME, score="network")
        made.score(NAME, traffic(made, slice(SCORED // 2, 2 * SCORED)), weighted=None)
        give_labels(made, range(SCORED, SCORED + 200))
        update_monitor(made.engine, NAME)
        yield made
        engine.dispose()


@pytest.fixture(scope="module", params=[1, 2, 3])
def report(request: pytest.FixtureRequest, bench: Bench) -> CalibrationReport:
    return flow(bench.engine, NAME, calibration_id=request.param)


def tables(report: CalibrationReport) -> list[TextTable]:
    return [part for section in sections(report, COMMANDS) for part in section.parts if isinstance(part, TextTable)]


def asked(bench: Bench, query: str) -> Rows:
    """What a reader gets, who has no right to the tables."""
    with connect(bench.engine) as connection:
        connection.exec_driver_sql(f"SET ROLE {READER}")
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
            share(row.share_admitted),
            f"{row.traffic:,}",
            share(row.share_of_traffic),
        )
        for row in rows
    ]


def share(value: float | None) -> str:
    return "-" if value is None else share_text(value)


def of_classes(report: CalibrationReport, rows: Rows) -> Cells:
    """Of what a calibration by Venn-Abers admits of mc, the page says it by the other folds, and its rows are near."""
    own = list(table_of(report, "class_coverage").rows)
    cells: Cells = []
    for row, (name, _, admitted, right, *computed) in zip(rows, own, strict=True):
        near = report.part.reference is Split.MC
        if near:
            assert float(admitted) == pytest.approx(row.share_admitted, abs=0.1)
            assert float(right) == pytest.approx(row.share_right, abs=0.1)
        assert name == (row.per if row.per == "all" else f"{row.per} {row.class_name}")
        shares = (admitted, right) if near else (share(row.share_admitted), share(row.share_right))
        cells.append((name, f"{row.points:,}", *shares, *computed))
    return cells


def of_history(_report: CalibrationReport, rows: Rows) -> Cells:
    def changed(row: Row[Any]) -> str:
        found = [f"{row.arrived:,} points arrived"] if row.arrived else []
        found += [", ".join(f"method, now {row.method}" if name == "method" else name for name in row.other_settings)]
        return "; ".join(found) if row.previous is not None else "the first that is kept"

    return [
        (
            f"{row.calibration}",
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
    assert report.watch is not None
    assert report.watch.said is not None
    lamps = {"promise": "predicted", "true_classes": "true", "partitions": "errors of", "mix": "mix of"}
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


CHECKS: dict[str, Callable[[CalibrationReport, Rows], Cells]] = {
    "partition_map": of_map,
    "class_coverage": of_classes,
    "history": of_history,
    "lamps": of_lamps,
}


def test_each_query_gives_the_figures_of_its_table(bench: Bench, report: CalibrationReport) -> None:
    found = {table.query: table for table in tables(report) if table.query is not None}
    assert report.watch is not None
    assert found.keys() == CHECKS.keys() - (set() if report.watch.is_in_use else {"lamps"})
    for name, table in found.items():
        cells = CHECKS[name](report, asked(bench, report.queries[name]))
        assert cells == list(table.rows), name


def test_traffic_is_on_the_map(report: CalibrationReport) -> None:
    assert report.map is not None
    assert report.map.points.sum() == (report.snapshot.vp_count or report.snapshot.mc_count)
    assert report.map.traffic.sum() == 2 * SCORED
    assert 0 < report.map.admitted.sum() < report.map.right.sum() < report.map.points.sum()


def test_the_page_and_the_payload_have_every_query(report: CalibrationReport) -> None:
    page = Page(render_calibration(report, COMMANDS))
    names = [table.query for table in tables(report) if table.query is not None]
    assert page.text.count("SQL of this table") == len(names)
    for name in names:
        assert " ".join(report.queries[name].split()) in page.text
    assert calibration_payload(report, COMMANDS)["queries"] == {name: report.queries[name] for name in names}
