"""Many decisions beside a tenth of them, a table of partitions beside ours, and the removal of half and of a part.

A report on one part reads as many rows from ten times as many. The partitions are of ranges of keys, twenty of
them: what drops a partition at once has every look-up without a key look in each.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, text

from benchmarks.keeping_data import DAYS, TRAINING_AND_CALIBRATING, add_part, filled
from benchmarks.measure import Measurement, compare
from benchmarks.reporting_data import FIRST_DAY
from benchmarks.storage import folder
from tests.running import workspace
from venn_admit.flows.decisions.listing import list_decisions
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.jobs import removal
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.reports.report import report
from venn_admit.store.access.audit import Origin
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.database.statements import statement
from venn_admit.store.decisions import decisions
from venn_admit.store.decisions.decisions import DecisionFilter
from venn_admit.store.search.array_cache import ArrayCache

_PARTS, _PARTITIONS = 10, 20
_TURNS = 3
_LOOK_UPS = 2048
_DAY = 20

# The last part: its day, its calibration of venn-admit, and the job of the day.
_VIEWS = (
    "decision_v2 WHERE day = DATE '{day}'",
    "rejection_v1 WHERE day = DATE '{day}'",
    "rejection_v1 WHERE calibration = {calibration}",
    "selective_accuracy_v4 WHERE calibration = {calibration}",
    "traffic_v1 WHERE job = {job}",
)
_TABLES = ("decision", "admit_evidence", "abers_evidence", "job_row")


def measure(large: bool) -> Iterator[Measurement]:
    count = 1_000_000 if large else 20_000
    with (
        folder() as files,
        filled(files / "one", parts=1, decisions=count) as one,
        filled(files / "ten", parts=_PARTS, decisions=count) as ten,
    ):
        size = f"{_PARTS * count:,} decisions"
        for what, read in _readings(count, files):
            ours, peer = partial(read, ten, _PARTS), partial(read, one, 1)
            yield compare(what, size, f"of {count:,}", ours, peer, turns=_TURNS)
        _make_partitions(ten, _PARTS * count)
        look_up = _look_up(count)
        yield compare(
            f"look up {_LOOK_UPS:,} by exemplar",
            size,
            f"{_PARTITIONS} partitions",
            lambda: look_up(ten, "decision"),
            lambda: look_up(ten, "parted"),
            turns=_TURNS,
        )
        yield _measure_removal(ten, count)
        day = "rejection_v1 WHERE day = DATE '{day}'"
        yield compare(
            day.partition(" ")[0] + " of a day, half removed and stored again",
            size,
            f"of {count:,}",
            lambda: _read(day, ten, _PARTS),
            lambda: _read(day, one, 1),
            turns=_TURNS,
        )
        yield _measure_deletion(ten, one, ArrayCache(files / "cache"), count)


Reading = Callable[[Engine, int], object]


def _readings(count: int, files: Path) -> Iterator[tuple[str, Reading]]:
    for view in _VIEWS:
        yield view.replace("{", "").replace("}", ""), partial(_read, view)
    yield "a page of 100 decisions", _page
    yield "one decision by its key", lambda engine, parts: _one(engine, parts * count - count // 2)
    yield (
        "replay of one decision",
        lambda engine, parts: replay(
            workspace(engine, ArrayCache(files / f"cache-{parts}")), parts * count - count // 2
        ),
    )
    yield (
        "report",
        lambda engine, parts: report(
            workspace(engine, ArrayCache(files / f"cache-{parts}")), f"part-{parts - 1}", calibration_id=None
        ),
    )


def _read(view: str, engine: Engine, parts: int) -> None:
    """Run a query to its last row; its answer stays on the server, every column of it computed."""
    day = FIRST_DAY + timedelta(days=DAYS * (parts - 1) + _DAY)
    asked = view.format(day=day, calibration=2 * parts, job=2 * (DAYS * (parts - 1) + _DAY) + 1)
    with connect(engine) as connection:
        connection.execute(text(f"EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) SELECT * FROM report.{asked}")).all()


def _page(engine: Engine, parts: int) -> None:
    list_decisions(engine, f"part-{parts - 1}", DecisionFilter(), limit=100)


def _one(engine: Engine, decision_id: int) -> None:
    with connect(engine) as connection:
        decisions.by_id(connection, decision_id)


def _look_up(count: int) -> Callable[[Engine, str], None]:
    """Return what looks up decisions of the last part, as each chunk of a job does, in a table."""
    first = (_PARTS - 1) * (TRAINING_AND_CALIBRATING + count // 2) + TRAINING_AND_CALIBRATING + 1
    parameters = {
        "exemplar_ids": list(range(first, first + min(_LOOK_UPS, count // 2))),
        "calibration_id": 2 * _PARTS,
        "weighted": False,
        "require_full_match": False,
    }
    query = str(statement("decisions.undecided"))

    def look_up(engine: Engine, table: str) -> None:
        asked = text(query.replace("FROM decision", f"FROM {table} AS decision"))
        with connect(engine) as connection:
            assert not connection.execute(asked, parameters).all()

    return look_up


def _make_partitions(engine: Engine, count: int) -> None:
    """Copy the decisions to a table of partitions, with the same indexes; only that of `id` keeps them unique."""
    step = -(-count // _PARTITIONS)
    with transaction(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE parted (LIKE decision) PARTITION BY RANGE (id)")
        for first in range(1, count + 1, step):
            connection.exec_driver_sql(
                f"CREATE TABLE parted_{first} PARTITION OF parted FOR VALUES FROM ({first}) TO ({first + step})"
            )
        connection.exec_driver_sql("INSERT INTO parted SELECT * FROM decision ORDER BY id")
        for columns in (
            "calibration_id, exemplar_id, weighted, require_full_match",
            "exemplar_id, calibration_id",
            "calibration_id, (decision IS NOT NULL), id",
        ):
            connection.exec_driver_sql(f"CREATE INDEX ON parted ({columns})")
        connection.exec_driver_sql("ALTER TABLE parted ADD PRIMARY KEY (id)")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE) parted")


def _measure_removal(engine: Engine, count: int) -> Measurement:
    before = _mebibytes(engine)
    began = time.perf_counter()
    limit = datetime.combine(FIRST_DAY + timedelta(days=DAYS * _PARTS // 2), datetime.min.time(), UTC)
    found = removal.prune(engine, datetime.now(UTC) - limit, origin=Origin.COMMAND_LINE)
    ours = time.perf_counter() - began
    removal.vacuum(engine)
    after = _mebibytes(engine)
    began = time.perf_counter()
    with transaction(engine) as connection:
        for first in _old_partitions(count):
            connection.exec_driver_sql(f"DROP TABLE parted_{first}")
    peer = time.perf_counter() - began
    for part in range(_PARTS, _PARTS + _PARTS // 2):
        add_part(engine, part, decisions=count)
    note = (
        f"{found.decisions:,} decisions and {found.rows:,} rows; longest transaction {found.longest_seconds:.2f} s; "
        f"{before:,} MiB before, {after:,} after a vacuum, {_mebibytes(engine):,} with as many new ones"
    )
    return Measurement(
        what="remove half of them",
        size=f"{_PARTS * count:,} decisions",
        against="DROP TABLE of partitions",
        ours=ours,
        peer=peer,
        ratio=peer / ours,
        note=note,
    )


def _measure_deletion(ten: Engine, one: Engine, cache: ArrayCache, count: int) -> Measurement:
    began = time.perf_counter()
    found = delete(workspace(ten, cache), f"part-{_PARTS - 1}")
    ours = time.perf_counter() - began
    began = time.perf_counter()
    delete(workspace(one, cache), "part-0")
    peer = time.perf_counter() - began
    return Measurement(
        what="delete a classifier, a tenth of them",
        size=f"{_PARTS * count:,} decisions",
        against=f"of {count:,}",
        ours=ours,
        peer=peer,
        ratio=peer / ours,
        note=f"{sum(found.rows.values()):,} rows; longest transaction {found.longest_seconds:.2f} s",
    )


def _old_partitions(count: int) -> list[int]:
    step = -(-_PARTS * count // _PARTITIONS)
    return list(range(1, _PARTS * count // 2, step))


def _mebibytes(engine: Engine) -> int:
    sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in _TABLES)
    with connect(engine) as connection:
        size: int = connection.execute(text(f"SELECT ({sizes}) >> 20")).scalar_one()
    return size
