"""The views on the decisions and points of one calibration against `count(*)` of the same rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Engine, text

from benchmarks.measure import Measurement, compare
from benchmarks.reporting_data import fill
from benchmarks.storage import database, folder
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers

_NEIGHBOUR_COUNT = 5
_DAYS = 50
_TURNS = 3

_POINTS = "calibration_point WHERE calibrator_id = {calibration}"
_DECISIONS = "decision WHERE calibration_id = {calibration}"
_LISTS = "neighbours"
_ROWS = "job_row WHERE job_id = {job}"
_DAY = "decision WHERE (created_at AT TIME ZONE 'UTC')::date = DATE '2026-01-20'"


@dataclass(frozen=True, slots=True)
class _Query:
    """A view or function with its condition, and the rows that it reports on."""

    what: str
    rows: str


_QUERIES = (
    _Query("report.decision_v2 WHERE calibration = {calibration}", _DECISIONS),
    _Query("report.decision_v2 WHERE day = DATE '2026-01-20'", _DAY),
    _Query("report.partition_v2 WHERE calibration = {calibration}", _POINTS),
    _Query("report.partition_summary_v1 WHERE calibration = {calibration} AND source = 'calibration'", _POINTS),
    _Query("report.partition_summary_v1 WHERE calibration = {calibration} AND source = 'scored'", _DECISIONS),
    _Query("report.selective_accuracy_v4 WHERE calibration = {calibration}", _DECISIONS),
    _Query("report.rejection_v1 WHERE calibration = {calibration}", _DECISIONS),
    _Query("report.rejection_v1 WHERE day = DATE '2026-01-20'", _DAY),
    _Query("report.traffic_v1 WHERE job = {job}", _ROWS),
    _Query("report.daily_traffic_v1 WHERE day = DATE '2026-01-20'", _DAY),
    _Query("report.label_budget_v1 WHERE calibration = {calibration}", _DECISIONS),
    _Query("report.label_v1 WHERE classifier = 'one'", "label_event"),
    _Query("report.neighbour_v1 WHERE decision_id = 1", "neighbours WHERE exemplar_id = 1"),
    _Query("report.exemplar_influence_v1 WHERE classifier = 'one'", _LISTS),
    _Query("report.band_v1('one', 2, 0.5)", _POINTS + " AND bin = 2 AND distance BETWEEN 0.4 AND 0.6"),
    _Query("report.snapshot_diff_v1({calibration}, {calibration} + 1)", _DECISIONS),
)


def measure(large: bool) -> Iterator[Measurement]:
    calibrating, decisions = (250_000, 1_000_000) if large else (25_000, 100_000)
    with folder() as files, database(files / "home") as engine:
        classifier_id = _fill(engine, calibrating, decisions // 2)
        names = {"calibration": 2 * classifier_id, "job": 1}
        for query in _QUERIES:
            what = query.what.format(**names)
            yield compare(
                what.removeprefix("report."),
                f"{calibrating:,} points, {decisions:,} decisions",
                "count(*) of " + query.rows.partition(" WHERE")[0],
                _reading(engine, f"SELECT * FROM {what}"),
                _reading(engine, f"SELECT count(*) FROM {query.rows.format(**names)}"),
                turns=_TURNS,
            )


def _reading(engine: Engine, query: str) -> Callable[[], None]:
    """Run a query to its last row; its answer stays on the server, every column of it computed."""

    def read() -> None:
        with connect(engine) as connection:
            connection.execute(text(f"EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) {query}")).all()

    return read


def _fill(engine: Engine, calibrating: int, scored: int) -> int:
    with transaction(engine) as connection:
        classifier = classifiers.create(
            connection,
            name="one",
            class_names=("a", "b"),
            dimension=2,
            neighbour_count=_NEIGHBOUR_COUNT,
            knn_share=Decimal("0.1"),
            mc_share=Decimal("0.45"),
            seed=0,
        )
        # Filling it would take longer than all that is measured, and no report reads it.
        connection.exec_driver_sql("DROP INDEX neighbours_neighbour_ids_idx")
        fill(
            connection,
            classifier.id,
            first=1,
            training=10_000,
            calibrating=calibrating,
            scored=scored,
            days=_DAYS,
            neighbour_count=_NEIGHBOUR_COUNT,
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")
    return classifier.id
