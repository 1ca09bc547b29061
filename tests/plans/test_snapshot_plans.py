"""Which points a snapshot was made with is one function; queries are planned as if its condition were written out."""

from importlib.resources import files
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.plans.plans import explain
from venn_admit.store.database.engine import connect
from venn_admit.store.database.statements import statement

CALLED = "is_in_snapshot_v1({number}, {point}valid_from, {point}valid_until)"
WRITTEN_OUT = "{point}valid_from <= {number} AND ({point}valid_until IS NULL OR {point}valid_until > {number})"

SNAPSHOT = {"calibrator_id": 1, "number": 3}
STATEMENTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "evaluations.labelled": (
        ":number",
        "point.",
        {**SNAPSHOT, "exemplar_ids": [1, 2], "calibration_id": 1, "vp_count": 0},
    ),
    "reports.snapshot_changes": (
        ":number",
        "",
        {**SNAPSHOT, "classifier_id": 1, "splits": ["mc", "vp"], "undivided": False},
    ),
    "reports.recent_rows": (
        "calibration.number",
        "point.",
        {
            "classifier_id": 1,
            "calibration_id": 1,
            "knn_parameters_id": 1,
            "support_version": 0,
            "class_count": 2,
            "row_limit": 9,
            "codes": [1],
            "reasons": ["one"],
        },
    ),
    "calibrations.snapshot_points": (":number", "point.", {**SNAPSHOT, "split": "mc"}),
    "calibrations.export_calibration": (":number", "point.", SNAPSHOT),
    "calibration_points.delete_unheld_points": ("calibration.number", "point.", {"calibrator_id": 1}),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_plan_is_that_of_the_condition(engine: Engine, name: str) -> None:
    number, point, parameters = STATEMENTS[name]
    query = str(statement(name))
    called = CALLED.format(number=number, point=point)
    assert query.count(called) == 1
    written_out = query.replace(called, WRITTEN_OUT.format(number=f"{number} ::integer", point=point))
    with connect(engine) as connection:
        plan = explain(connection, query, parameters)
        assert plan == explain(connection, written_out, parameters)
    assert "is_in_snapshot" not in str(plan)


def test_no_statement_has_a_condition_of_its_own() -> None:
    folder = files("venn_admit.store").joinpath("sql")
    for file in folder.iterdir():
        assert "valid_until >" not in file.read_text(encoding="utf-8"), file.name


def test_a_role_that_reads_reports_alone_can_read_the_view(engine: Engine) -> None:
    with connect(engine) as connection:
        connection.execute(text("CREATE ROLE reader_of_reports"))
        connection.execute(text("GRANT USAGE ON SCHEMA report TO reader_of_reports"))
        connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA report TO reader_of_reports"))
        connection.execute(text("SET LOCAL ROLE reader_of_reports"))
        assert connection.execute(text("SELECT * FROM report.selective_accuracy_v4")).all() == []
        connection.rollback()


@pytest.mark.parametrize(
    ("valid_from", "valid_until", "held"),
    [(1, None, [1, 2, 3]), (2, None, [2, 3]), (2, 3, [2]), (1, 3, [1, 2]), (4, None, [])],
)
def test_the_condition(engine: Engine, valid_from: int, valid_until: int | None, held: list[int]) -> None:
    query = text(
        "SELECT n FROM generate_series(1, 3) AS n "
        "WHERE is_in_snapshot_v1(n, :valid_from, CAST(:valid_until AS integer)) ORDER BY n"
    )
    with connect(engine) as connection:
        found = connection.execute(query, {"valid_from": valid_from, "valid_until": valid_until}).scalars().all()
    assert found == held
