"""A reader sees schema `report`, whole, and nothing else: every relation and function of the catalogue is tried."""

import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine, make_url, text

from tests.conftest import administration, fresh_engine
from tests.flows.cascades.bundled import certify
from tests.roles import RELATIONS, as_role
from tests.running import Bench, Golden
from venn_admit.errors import DatabaseError, NotFoundError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.cascades import manage as cascade
from venn_admit.flows.data.audits import set_audits
from venn_admit.flows.data.label import label
from venn_admit.flows.keys.keys import create
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.schema import Group, grant, upgrade
from venn_admit.store.embedded.users import start_embedded

FUNCTIONS = """
SELECT proname AS name, array(SELECT format_type(unnest(proargtypes), NULL)) AS arguments
FROM pg_proc
WHERE pronamespace = 'report'::regnamespace
ORDER BY 1
"""
UNCOMMENTED = """
SELECT relname || coalesce('.' || attname, '')
FROM pg_class
LEFT JOIN pg_attribute ON pg_class.oid = attrelid AND attnum > 0 AND NOT attisdropped
WHERE
    relnamespace = 'report'::regnamespace
    AND (obj_description(pg_class.oid, 'pg_class') IS NULL OR col_description(pg_class.oid, attnum) IS NULL)
UNION ALL
SELECT proname FROM pg_proc
WHERE pronamespace = 'report'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
"""


ALARM = """
INSERT INTO monitor_alarm (monitor_id, lamp, number, label_event_id)
SELECT (SELECT max(id) FROM monitor), 'promise', 0, (SELECT max(id) FROM label_event)
"""


REGIONS = "UPDATE exemplar SET attributes = jsonb_build_object('region', CASE id % 2 WHEN 0 THEN 'a' ELSE 'b' END)"


@pytest.fixture(scope="module")
def bench(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A database with three classes, calibrated by both methods and decided on by both, with a monitor and an alarm."""
    with fresh_engine(server_url, template_database) as engine:
        found, golden = Bench(engine, tmp_path_factory.mktemp("reader")), Golden("edge")
        golden.prepare(found, "edge")
        with transaction(engine) as connection:
            connection.execute(text(REGIONS))
        rows = golden.exemplars("score")
        path = found.write("score.npz", {**rows, "region": np.resize(["north", "south"], len(rows["id"]))})
        for calibrated in (
            found.calibrate_abers("edge", score="network"),
            found.calibrate("edge", **golden.settings),
            found.calibrate_abers("edge", score="network", certify=("predicted",)),
            found.calibrate_abers("edge", score="network", certify=("group:region",)),
            found.calibrate_abers("edge", score="network", promise="average"),
            found.calibrate_abers("edge", score="network", alpha=Decimal("0.001")),  # which admits nothing
        ):
            found.score("edge", path, calibration_id=calibrated.calibration_id, weighted=False)
        set_audits(engine, "edge", rate=1.0)
        unlabelled = {"id": np.array(["drawn-0"]), "r": rows["r"][:1], "f": rows["f"][:1]}
        found.score("edge", found.write("drawn.npz", unlabelled), weighted=False)
        update_monitor(engine, "edge")
        labels = found.folder / "labels.csv"
        labels.write_text("external_id,label\n" + "".join(f"score-{row},0\n" for row in range(20)))
        label(engine, "edge", LabelFile(labels), selection="random", retract=False)
        update_monitor(engine, "edge")
        with transaction(engine) as connection:
            connection.execute(text(ALARM))
        create(engine, "somebody", scope=Scope.READ)
        cascade.create(engine, "cascade", (("edge", 1.0), ("person", 5.0)))
        certify(found, "cascade")
        yield found


@pytest.fixture(scope="module")
def analyst(bench: Bench) -> Iterator[str]:
    """A role that may read, and was told so twice."""
    role = f"analyst {uuid.uuid4().hex[:12]}"
    with administration(bench.engine.url.render_as_string(hide_password=False)) as execute:
        execute(f'CREATE ROLE "{role}"')
        grant(bench.engine, Group.READER, role)
        grant(bench.engine, Group.READER, role)
        yield role
        execute(f'DROP ROLE "{role}"')


@pytest.fixture
def reading(bench: Bench, analyst: str) -> Iterator[Engine]:
    """An engine whose sessions are the analyst's."""
    engine = as_role(bench.engine, analyst)
    yield engine
    engine.dispose()


def refused(engine: Engine, statement: str) -> None:
    """A view of several tables takes rows from nobody, which is said first."""
    words = "permission denied|cannot (delete from|insert into) view"
    with pytest.raises(DatabaseError, match=words), connect(engine) as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize("options", [(), ("-c default_transaction_read_only=on",)], ids=["server", "standby"])
def test_every_view_and_function_can_be_read(bench: Bench, analyst: str, options: tuple[str, ...]) -> None:
    engine = as_role(bench.engine, analyst, *options)
    views = [row.name for row in bench.rows(RELATIONS) if row.schema == "report"]
    functions = bench.rows(FUNCTIONS)
    arguments = {"text": "'edge'", "integer": "2", "double precision": "1.5", "bigint": "1"}
    with connect(engine) as connection:
        for name in views:
            assert connection.execute(text(f"SELECT * FROM {name}")).all(), name
        for function in functions:
            given = ", ".join(arguments[kind] for kind in function.arguments)
            connection.execute(text(f"SELECT * FROM report.{function.name}({given})")).all()
    engine.dispose()
    assert len(views) >= 9


def test_nothing_else_can_be_read_and_nothing_written(bench: Bench, analyst: str, reading: Engine) -> None:
    kinds = "INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER"
    for row in bench.rows(RELATIONS):
        may_write = "SELECT has_table_privilege(:role, :relation, :kinds)"
        assert not bench.value(may_write, role=analyst, relation=row.name, kinds=kinds), row.name
        if row.schema != "report":
            refused(reading, f"SELECT * FROM {row.name}")
        if row.relkind == "S":
            refused(reading, f"SELECT nextval('{row.name}')")
            continue
        refused(reading, f"DELETE FROM {row.name}")
        refused(reading, f"INSERT INTO {row.name} DEFAULT VALUES")
    for schema in ("report", "public", "venn_admit"):
        refused(reading, f"CREATE TABLE {schema}.mine (id integer)")
    refused(reading, "SELECT venn_admit.oldest_program()")
    refused(reading, "SELECT venn_admit.grant_reader_v1('postgres')")


def test_what_is_added_later_can_be_read_too(bench: Bench, reading: Engine) -> None:
    with administration(bench.engine.url.render_as_string(hide_password=False)) as execute:
        execute("CREATE VIEW report.later_v1 AS SELECT 1 AS one")
        try:
            with connect(reading) as connection:
                assert connection.execute(text("SELECT one FROM report.later_v1")).scalar_one() == 1
        finally:
            execute("DROP VIEW report.later_v1")


def test_every_view_column_and_function_has_a_comment(engine: Engine) -> None:
    with connect(engine) as connection:
        assert connection.execute(text(UNCOMMENTED)).scalars().all() == []


def test_an_unknown_role_is_refused(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match="no role 'nobody here': create it first"):
        grant(engine, Group.READER, "nobody here")


def test_views_show_both_methods_with_the_evidence_of_each(bench: Bench) -> None:
    for view in ("calibration", "decision"):
        methods = {row.method for row in bench.rows(f"SELECT method FROM report.{view}_v2")}
        assert methods == {"venn-admit", "venn-abers"}
    evidence = bench.rows(
        "SELECT method, count(admit_set) > 0 AS sets, count(score) > 0 AS scores"
        " FROM report.decision_v2 GROUP BY method ORDER BY method"
    )
    assert [tuple(row) for row in evidence] == [("venn-abers", False, True), ("venn-admit", True, False)]
    in_use = bench.rows("SELECT method FROM report.calibration_v2 WHERE is_in_use")
    assert [row.method for row in in_use] == ["venn-abers"]


def test_a_user_who_may_create_no_role_migrates_and_somebody_else_makes_it(home: Path) -> None:
    """On a server of its own, since the role is made once a server; its second database finds the role made."""
    url = start_embedded(home)
    with administration(url) as execute:
        execute("CREATE ROLE owner LOGIN")
        execute("CREATE ROLE analyst LOGIN")
        execute("CREATE ROLE second LOGIN")
        for name in ("one", "two"):
            execute(f"CREATE DATABASE {name} OWNER owner")
    databases = [make_url(url).set(database=name) for name in ("one", "two")]
    for database in databases:
        with administration(database.render_as_string(hide_password=False)) as execute:
            execute("CREATE EXTENSION vector")
        upgrade(database.set(username="owner").render_as_string(hide_password=False))
    owners = create_engine(databases[0].set(username="owner").render_as_string(hide_password=False))
    with pytest.raises(DatabaseError, match=r"permission denied to create role.*grant the database user the privilege"):
        grant(owners, Group.READER, "analyst")
    for database in databases:
        administrators, analysts = (
            create_engine(database.set(username=user).render_as_string(hide_password=False))
            for user in (database.username, "analyst")
        )
        grant(administrators, Group.READER, "analyst")
        with connect(analysts) as connection:
            assert connection.execute(text("SELECT * FROM report.decision_v2")).all() == []
            assert connection.execute(text(f"SELECT pg_has_role('{Group.READER}', 'member')")).scalar_one()
        administrators.dispose()
        analysts.dispose()
    lacking = (
        r"denied to grant role.*\(Only roles with the ADMIN option on role .*venn_admit_reader.* may grant this role\);"
    )
    with pytest.raises(DatabaseError, match=lacking):
        grant(owners, Group.READER, "second")
    with administration(url) as execute:
        execute(f"GRANT {Group.READER} TO owner WITH ADMIN OPTION")
    grant(owners, Group.READER, "second")
    with transaction(owners) as connection:
        connection.exec_driver_sql("CREATE VIEW report.later_v1 AS SELECT 1 AS one")
    seconds = create_engine(databases[0].set(username="second").render_as_string(hide_password=False))
    with connect(seconds) as connection:
        assert connection.execute(text("SELECT one FROM report.later_v1")).scalar_one() == 1
    seconds.dispose()
    owners.dispose()
