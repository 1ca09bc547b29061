"""The migrations: one history, up and down, with rows in the tables, and as the models have it."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import StringIO
from math import inf
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from pytest_alembic import MigrationContext, tests
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import ProgrammingError

from tests.running import Bench, Golden
from venn_admit.service.errors import DatabaseError, NotReadyError
from venn_admit.service.flows.decisions.replay import replay
from venn_admit.service.flows.decisions.score import read_scores
from venn_admit.service.store.calibrations import calibrations, calibrators
from venn_admit.service.store.database import schema
from venn_admit.service.store.database.engine import connect, create_engine, transaction
from venn_admit.service.store.database.tables import SCHEMA, metadata
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.search import hnsw
from venn_admit.service.store.search.array_cache import ArrayCache
from venn_admit.service.store.work import recalibrations

ROWS = (Path(__file__).parent / "rows_at_0004.sql").read_text()
FACTS = (Path(__file__).parent / "facts.sql").read_text()

# A second setting, tried once between two calibrations under the first.
LATER_CALIBRATOR = """
INSERT INTO venn_admit.calibrator (classifier_id, settings_digest, alpha, delta, kappa, bin_edges, thresholds)
VALUES (1, '\\x01', 0.1, 1, 2, '{0,1}', '{0.9,0.95}');

UPDATE venn_admit.calibration SET state = 'retired';

INSERT INTO venn_admit.calibration (
    calibrator_id, number, knn_parameters_id, s_hat, omega, mc_count, vp_count, reason, state, created_at
)
VALUES
(2, 1, 1, 0.1, 0.1, 1, 1, 'other', 'current', now() + interval '1 minute'),
(1, 2, 1, 0.1, 'Infinity', 1, 1, 'again', 'current', now() + interval '2 minutes');
"""

UNCOMMENTED = """
SELECT c.relname || coalesce('.' || a.attname, '')
FROM pg_class AS c
LEFT JOIN pg_attribute AS a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE
    c.relnamespace = to_regnamespace('venn_admit')
    AND c.relkind IN ('r', 'p')
    AND c.relname <> 'alembic_version'
    AND (
        obj_description(c.oid, 'pg_class') IS NULL
        OR col_description(c.oid, a.attnum) IS NULL
    )
"""

COMMENTS = """
SELECT c.relname || coalesce('.' || a.attname, '') AS name, d.description
FROM pg_description AS d
INNER JOIN pg_class AS c ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_attribute AS a ON c.oid = a.attrelid AND d.objsubid = a.attnum AND d.objsubid > 0
WHERE
    c.relnamespace = to_regnamespace('venn_admit')
    AND c.relkind IN ('r', 'p')
"""

# Of tables that are there whatever classifiers there are; by name, as a column that comes back comes last.
COLUMNS = """
SELECT c.relname AS table, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname) AS columns
FROM pg_class AS c
INNER JOIN pg_attribute AS a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE
    c.relnamespace = to_regnamespace('venn_admit')
    AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition
    AND c.relname <> 'alembic_version'
GROUP BY c.relname
"""


# What columns were called before, and are called now.
RENAMED = {
    "complete_to": "support_version",
    "neighbours_complete_to": "neighbours_support_version",
    "r": "vector",
}

# Columns that are in a table of their own since 0017: its name, its key, and the columns.
MOVED = {
    "calibration": [("band_radius", "calibration_id", {"s_hat", "omega"})],
    "decision": [("admit_evidence", "decision_id", {"admit_set", "band_size", "threshold", "category_size"})],
}

# The checks and HNSW indexes of a classifier's partitions, without its number.
PARTITIONS = """
SELECT
    replace(conname, '_' || :classifier || '_', '_N_') AS name,
    regexp_replace(pg_get_constraintdef(oid), '= \\d+', '= N') AS definition
FROM pg_constraint
WHERE contype = 'c' AND conrelid::regclass::text LIKE '%exemplar\\_vector\\_' || :classifier || '\\_%'
UNION ALL
SELECT
    replace(indexname, '_' || :classifier || '_', '_N_'),
    replace(indexdef, '_' || :classifier || '_', '_N_')
FROM pg_indexes
WHERE indexname = 'exemplar_vector_' || :classifier || '_support_hnsw_idx'
"""

HNSW_AT_0013 = """
CREATE INDEX exemplar_vector_1_support_hnsw_idx ON venn_admit.exemplar_vector_1_support
USING hnsw ((r::public.vector(2)) public.vector_l2_ops) WITH (m = 4, ef_construction = 8)
"""

# Functions of our schema, which SQLAlchemy's metadata does not hold.
ROUTINES = (
    "create_vector_partitions",
    "is_in_snapshot",
    "oldest_program",
    "prepare_reader",
    "grant_reader",
    "prepare_service",
    "grant_service",
    "band_points",
    "band_thresholds",
)


@pytest.fixture
def empty(empty_database: str) -> Iterator[Engine]:
    """A database without our schema."""
    engine = create_engine(empty_database)
    yield engine
    engine.dispose()


@pytest.fixture
def alembic_config() -> Config:
    return schema.alembic_config()


@pytest.fixture
def alembic_engine(empty: Engine) -> Iterator[Connection]:
    """What our env.py takes is an open connection."""
    with empty.connect() as connection:
        yield connection


@pytest.mark.parametrize(
    "promise",
    [
        tests.test_single_head_revision,
        tests.test_upgrade,
        tests.test_model_definitions_match_ddl,
        tests.test_up_down_consistency,
    ],
)
def test_history(alembic_runner: MigrationContext, promise: Callable[[MigrationContext], None]) -> None:
    promise(alembic_runner)


def move(engine: Engine, revision: str, direction: Callable[[Config, str], None] = command.upgrade) -> None:
    with engine.connect() as connection:
        config = schema.alembic_config()
        config.attributes["connection"] = connection
        direction(config, revision)


def run_script(connection: Connection, script: str) -> None:
    """Several statements at once, which the driver takes where they have no parameters."""
    driver_connection = connection.connection.driver_connection
    assert driver_connection is not None
    driver_connection.execute(script)


def facts(engine: Engine) -> set[tuple[str, str]]:
    """Name and property of everything in our schemas."""
    with connect(engine) as connection:
        return {(name, fact) for name, fact in connection.execute(text(FACTS))}


def columns(engine: Engine) -> dict[str, str]:
    """Of each table, its columns."""
    with connect(engine) as connection:
        return {row.table: row.columns for row in connection.execute(text(COLUMNS))}


def comments(engine: Engine) -> dict[str, str]:
    """The comment of each table, and of each column as `table.column`."""
    with connect(engine) as connection:
        return {row.name: row.description for row in connection.execute(text(COMMENTS))}


def renamed(columns: dict[str, str]) -> dict[str, str]:
    """The same columns by the names of now."""
    return {table: ", ".join(RENAMED.get(name, name) for name in names.split(", ")) for table, names in columns.items()}


def unordered(columns: dict[str, str]) -> dict[str, set[str]]:
    return {table: set(names.split(", ")) for table, names in columns.items()}


def partitions(engine: Engine, classifier: int) -> set[tuple[str, str]]:
    """Name and definition of what is in a classifier's partitions."""
    with connect(engine) as connection:
        return {(name, what) for name, what in connection.execute(text(PARTITIONS), {"classifier": str(classifier)})}


def view_rows(engine: Engine) -> dict[str, list[str]]:
    """The rows of the views, with the names of their columns."""
    with connect(engine) as connection:
        names = connection.execute(text("SELECT viewname FROM pg_views WHERE schemaname = 'report'")).scalars().all()
        return {
            name: sorted(connection.execute(text(f"SELECT to_jsonb(v)::text FROM report.{name} AS v")).scalars())
            for name in names
        }


def assert_replay_equal(engine: Engine, cache: ArrayCache, decision_ids: list[int]) -> None:
    for decision_id in decision_ids:
        found = replay(engine, cache, decision_id)
        assert found.differing == (), (found.stored, found.computed)


def table_contents(engine: Engine, columns: dict[str, str]) -> dict[str, list[str]]:
    """The rows of the tables, of their columns given, wherever these are now."""
    with connect(engine) as connection:
        found = {}
        for table, names in columns.items():
            source = f"{SCHEMA}.{table}"
            for moved_to, key, moved in MOVED.get(table, ()):
                if moved <= set(names.split(", ")) and not moved <= set(columns_now(connection, table)):
                    source += f" LEFT JOIN {SCHEMA}.{moved_to} ON {table}.id = {key}"
            found[table] = sorted(connection.execute(text(f"SELECT ({names})::text FROM {source}")).scalars())
        return found


def columns_now(connection: Connection, table: str) -> list[str]:
    return [column["name"] for column in inspect(connection).get_columns(table, schema=SCHEMA)]


def test_models_say_what_the_migrations_make(engine: Engine, empty: Engine) -> None:
    """Alembic compares neither CHECK constraints nor what an index includes; the catalogue tells all."""
    with transaction(empty) as connection:
        connection.execute(text("CREATE EXTENSION vector WITH SCHEMA public"))
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
        metadata.create_all(connection)
    found = facts(engine)
    views = tuple(name for name, fact in found if fact.startswith("relation v"))
    tables = {
        (name, fact)
        for name, fact in found
        if not name.startswith(("report", *views)) and not any(routine in name for routine in ROUTINES)
    }
    assert facts(empty) == tables


def test_alembic_finds_nothing_to_generate(database: str) -> None:
    """On a connection as the command line makes it, with run-time partitions there."""
    engine = create_engine(database)
    try:
        with engine.begin() as connection:
            classifiers.create(
                connection,
                name="reviews",
                class_names=("negative", "positive"),
                dimension=3,
                neighbour_count=1,
                knn_share=Decimal("0.1"),
                mc_share=Decimal("0.45"),
                seed=0,
            )
        move(engine, "", lambda config, _revision: command.check(config))
    finally:
        engine.dispose()


def test_every_table_and_column_has_a_comment(engine: Engine) -> None:
    with connect(engine) as connection:
        assert connection.execute(text(UNCOMMENTED)).scalars().all() == []


def test_the_view_of_selective_accuracy_calls_the_condition_and_changes_back(empty: Engine) -> None:
    def view() -> str:
        with connect(empty) as connection:
            return str(
                connection.execute(text("SELECT pg_get_viewdef('report.selective_accuracy_v1'::regclass)")).scalar()
            )

    move(empty, "0015")
    written_out = view()
    move(empty, "0016")
    assert "is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)" in view()
    assert "valid_until >" not in view()
    move(empty, "0015", command.downgrade)
    assert view() == written_out


def test_comments_change_and_change_back_around_rows(empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0014")
    old_comments, old_columns = comments(empty), columns(empty)
    rows = table_contents(empty, old_columns)
    assert old_comments["job.error"] == "Why it failed."

    move(empty, "0015")
    assert comments(empty)["job.error"] == "Why it failed or was cancelled; null otherwise."
    assert table_contents(empty, old_columns) == rows
    move(empty, "0014", command.downgrade)
    assert comments(empty) == old_comments
    assert table_contents(empty, old_columns) == rows
    move(empty, "head")
    models = {table.name: table.comment for table in metadata.tables.values()}
    models |= {
        f"{table.name}.{column.name}": column.comment for table in metadata.tables.values() for column in table.c
    }
    assert models.items() <= comments(empty).items()


def test_rows_survive_the_way_to_head(engine: Engine, empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    old = columns(empty)
    before = table_contents(empty, old)
    assert all(before.values()), "each table has a row"

    move(empty, "head")
    assert table_contents(empty, renamed(old)) == before
    with connect(empty) as connection:
        versions = connection.execute(text("SELECT support_version FROM classifier ORDER BY id")).scalars().all()
        newest = connection.execute(
            text("SELECT max(id) FROM exemplar WHERE split = 'train' GROUP BY classifier_id ORDER BY classifier_id")
        )
        assert versions == newest.scalars().all()
    assert facts(empty) == facts(engine)
    with connect(empty) as connection:
        for view in ("calibration_v1", "partition_v1", "decision_v1", "job_v1"):
            assert connection.execute(text(f"SELECT count(*) FROM report.{view}")).scalar_one() > 0


def test_the_calibrator_calibrated_last_is_the_one_in_use(empty: Engine) -> None:
    """As it was before there was a column to say so."""
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
        run_script(connection, LATER_CALIBRATOR)
    move(empty, "head")
    with connect(empty) as connection:
        latest = calibrations.latest(connection, classifiers.by_name(connection, "old"))
    assert (latest.settings.kappa, latest.number) == (1, 2)


def test_settings_of_before_are_kept_current_until_retired(empty: Engine) -> None:
    """Whatever was calibrated before there was a column to say otherwise; on the way back, retired ones too."""
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
        run_script(connection, LATER_CALIBRATOR)
    move(empty, "0010")
    old = columns(empty)
    before = table_contents(empty, old)

    move(empty, "head")
    assert table_contents(empty, renamed(old)) == before
    with transaction(empty) as connection:
        classifier = classifiers.by_name(connection, "old")
        in_use, other = calibrators.of_classifier(connection, classifier)
        assert (in_use.id, in_use.retired_at, other.retired_at) == (1, None, None)
        calibrators.retire(connection, other.id)
        assert recalibrations.request(connection, classifier, "labels") == 1
    with transaction(empty) as connection:
        connection.execute(text("DELETE FROM recalibration_request"))

    move(empty, "0010", command.downgrade)
    assert table_contents(empty, old) == before
    move(empty, "head")
    with connect(empty) as connection:
        assert recalibrations.request(connection, classifiers.by_name(connection, "old"), "labels") == 2


def test_columns_are_renamed_in_partitions_too(empty: Engine) -> None:
    """With an index there, and on the way back; what is made before and after looks the same."""
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0013")
    with transaction(empty) as connection:
        run_script(connection, HNSW_AT_0013)
    old, old_partitions, old_facts = columns(empty), partitions(empty, 1), facts(empty)
    before = table_contents(empty, old)
    assert len(old_partitions) == 4

    move(empty, "0014")
    assert unordered(columns(empty)) == unordered(renamed(old))
    move(empty, "head")
    assert table_contents(empty, renamed(old)) == before
    with transaction(empty) as connection:
        other = classifiers.create(
            connection,
            name="new",
            class_names=("no", "yes"),
            dimension=2,
            neighbour_count=1,
            knn_share=Decimal("0.1"),
            mc_share=Decimal("0.45"),
            seed=0,
        )
    hnsw.create(empty, other, m=4, ef_construction=8)
    assert partitions(empty, 1) == partitions(empty, other.id)
    with transaction(empty) as connection:
        assert hnsw.find(connection, classifiers.by_name(connection, "old")) is not None
        connection.execute(text(f"DROP TABLE exemplar_vector_{other.id}"))
        connection.execute(text("DELETE FROM classifier WHERE name = 'new'"))

    move(empty, "0013", command.downgrade)
    assert (columns(empty), partitions(empty, 1), facts(empty)) == (old, old_partitions, old_facts)
    assert table_contents(empty, old) == before


def test_a_decision_of_before_replays_equal(empty: Engine, tmp_path: Path) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "head")
    assert_replay_equal(empty, ArrayCache(tmp_path), [1])


def test_decisions_of_every_kind_replay_equal_after_the_columns_were_renamed(engine: Engine, tmp_path: Path) -> None:
    bench, golden = Bench(engine, tmp_path), Golden("edge")
    golden.prepare(bench, "edge")
    bench.calibrate("edge", **golden.settings)
    for weighted in (True, False):
        bench.score("edge", bench.write("score.npz", golden.exemplars("score")), weighted=weighted)
    kinds = (
        "SELECT min(id) AS id FROM decision JOIN admit_evidence ON decision.id = decision_id"
        " GROUP BY weighted, reason, decision, admit_set"
    )
    ids = [row.id for row in bench.rows(kinds)]
    assert len(ids) > 10
    assert_replay_equal(engine, bench.cache, ids)

    now = columns(engine)
    before = table_contents(engine, now)
    move(engine, "0013", command.downgrade)
    move(engine, "head")
    assert table_contents(engine, now) == before
    assert_replay_equal(engine, ArrayCache(tmp_path / "other"), ids)


def test_programs_that_know_the_old_columns_stop(empty: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    move(empty, "head")
    monkeypatch.setattr(schema, "head_revision", lambda: "0016")
    monkeypatch.setattr(schema, "_is_newer", lambda revision: revision > "0016")
    with pytest.raises(NotReadyError, match="0027 or newer"):
        schema.require_usable(empty)


def test_the_way_back_leaves_nothing(empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "head")
    move(empty, "base", command.downgrade)
    assert facts(empty) == {(SCHEMA, "schema")}
    move(empty, "head")


def test_what_one_method_alone_has_moves_and_moves_back(empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
        run_script(connection, LATER_CALIBRATOR)
    move(empty, "0016")
    old, old_facts, old_views = columns(empty), facts(empty), view_rows(empty)
    before = table_contents(empty, old)

    move(empty, "0017")
    moved = columns(empty)
    assert not {"s_hat", "omega"} & set(moved["calibration"].split(", "))
    assert "admit_set" not in moved["decision"]
    assert table_contents(empty, old) == before
    assert view_rows(empty) == old_views
    with connect(empty) as connection:
        rows = connection.execute(text("SELECT calibration_id, s_hat, omega FROM band_radius ORDER BY 1"))
        assert [tuple(row) for row in rows] == [(1, 0.1, inf), (2, 0.1, 0.1), (3, 0.1, inf)]
        rows = connection.execute(text("SELECT method, count(*) FROM calibrator GROUP BY method"))
        assert [tuple(row) for row in rows] == [("venn-admit", 2)]

    move(empty, "0016", command.downgrade)
    assert (facts(empty), columns(empty)) == (old_facts, old)
    assert table_contents(empty, old) == before
    assert view_rows(empty) == old_views
    move(empty, "head")


def test_decisions_of_before_0017_replay_equal(engine: Engine, tmp_path: Path) -> None:
    bench, golden = Bench(engine, tmp_path), Golden("edge")
    golden.prepare(bench, "edge")
    bench.calibrate("edge", **golden.settings)
    scores = bench.score("edge", bench.write("score.npz", golden.exemplars("score")))
    exported, ids = scores.table, [row.id for row in bench.rows("SELECT id FROM decision ORDER BY id")]

    move(engine, "0016", command.downgrade)
    move(engine, "head")
    assert read_scores(engine, scores.request.job_id).equals(exported)
    assert_replay_equal(engine, ArrayCache(tmp_path / "other"), ids[::10])


@pytest.mark.parametrize(
    ("revision", "before", "asked"),
    [
        ("0017", "0016", {}),
        ("0019", "0018", {"score": "auto"}),
        (
            "0020",
            "0019",
            {"score": "auto", "certify": "{true}", "confidence": "0.9", "document_test": "finite-sample"},
        ),
    ],
    ids=["0017", "0019", "0020"],
)
def test_calibrations_by_another_method_have_no_way_back(
    empty: Engine, revision: str, before: str, asked: dict[str, str]
) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, revision)
    with transaction(empty) as connection:
        run_script(connection, calibrator_by_abers(asked))
    with pytest.raises(ProgrammingError, match="which an older schema cannot hold"):
        move(empty, before, command.downgrade)
    assert schema.current_revision(empty) == revision


def calibrator_by_abers(asked: dict[str, str]) -> str:
    """A statement that adds a calibrator of the method venn-abers."""
    names = "".join(f", {name}" for name in asked)
    values = "".join(f", '{value}'" for value in asked.values())
    return (
        "INSERT INTO venn_admit.calibrator "
        f"(classifier_id, settings_digest, method, alpha, bin_edges, thresholds{names}) "
        f"VALUES (1, '', 'venn-abers', 0.1, '{{0}}', '{{0.9,0.9}}'{values})"
    )


CERTIFIED = {"score": "auto", "certify": "{true}", "confidence": "0.9", "document_test": "asymptotic"}


@pytest.mark.parametrize(
    ("asked", "check"),
    [
        (CERTIFIED | {"certify": "{each}"}, "certify"),
        (CERTIFIED | {"certify": "{true,predicted}"}, "certify"),
        (CERTIFIED | {"confidence": "1"}, "confidence"),
        (CERTIFIED | {"document_test": "t"}, "document_test"),
        ({"score": "auto", "confidence": "0.9"}, "certification"),
        ({"score": "auto", "certify": "{true}"}, "certification"),
    ],
)
def test_a_certificate_is_asked_for_in_full_or_not_at_all(empty: Engine, asked: dict[str, str], check: str) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0020")
    with pytest.raises(DatabaseError, match=f"calibrator_{check}_check"), transaction(empty) as connection:
        run_script(connection, calibrator_by_abers(asked))
    with transaction(empty) as connection:
        run_script(connection, calibrator_by_abers(CERTIFIED))
    for wrong in ("method = 'venn-admit', score = NULL, delta = 1, kappa = 1", "thresholds = '{0.95,0.9}'"):
        with pytest.raises(DatabaseError, match="calibrator_certification_check"), transaction(empty) as connection:
            connection.execute(text(f"UPDATE calibrator SET {wrong} WHERE certify IS NOT NULL"))


def test_points_name_the_method_of_their_calibrator(engine: Engine, tmp_path: Path) -> None:
    """Those of before too, and only vp of venn-admit has ADMIT sets."""
    bench, golden = Bench(engine, tmp_path), Golden("edge")
    golden.prepare(bench, "edge")
    bench.calibrate("edge", **golden.settings)
    bench.calibrate_abers("edge", score="network")
    path = bench.write("score.npz", golden.exemplars("score"))
    scores = bench.score("edge", path, weighted=False)
    now, exported = columns(engine), scores.table
    before = table_contents(engine, now)

    move(engine, "0019", command.downgrade)
    move(engine, "head")
    assert table_contents(engine, now) == before
    per_method = "SELECT method, split, count(*), count(admit_set) FROM calibration_point GROUP BY 1, 2 ORDER BY 1, 2"
    mc, vp = len(golden["mc_y"]), len(golden["vp_y"])
    assert [tuple(row) for row in bench.rows(per_method)] == [
        ("venn-abers", "mc", mc, 0),
        ("venn-admit", "mc", mc, 0),
        ("venn-admit", "vp", vp, vp),
    ]
    assert read_scores(engine, scores.request.job_id).equals(exported)
    assert_replay_equal(engine, ArrayCache(tmp_path / "other"), [bench.value("SELECT max(id) FROM decision")])
    for wrong, rule in (
        ("method = 'venn-abers' WHERE split = 'mc' AND method = 'venn-admit'", "calibrator_id_fkey"),
        ("admit_set = NULL WHERE split = 'vp'", "admit_set_check"),
        ("admit_set = '111' WHERE split = 'mc'", "admit_set_check"),
        ("split = 'vp', admit_set = '111' WHERE method = 'venn-abers'", "admit_set_check"),
    ):
        with pytest.raises(DatabaseError, match=f"calibration_point_{rule}"), transaction(engine) as connection:
            connection.execute(text(f"UPDATE calibration_point SET {wrong}"))
    bench.calibrate_abers("edge", score="network", certify=("true",))
    assert ("venn-abers", "vp", vp, 0) in [tuple(row) for row in bench.rows(per_method)]


@pytest.mark.parametrize("wrong", ["delta = NULL", "kappa = NULL", "method = 'other'", "method = 'venn-abers'"])
def test_band_settings_belong_to_one_method(empty: Engine, wrong: str) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0017")
    with pytest.raises(DatabaseError, match=r"calibrator_(method|venn_admit)_check"), transaction(empty) as connection:
        connection.execute(text(f"UPDATE calibrator SET {wrong}"))


WITHOUT_VECTORS = """
INSERT INTO classifier (name, class_names, knn_share, mc_share, seed) VALUES ('logits', '{a,b}', 0, 0.5, 0)
"""


def test_what_follows_from_vectors_may_be_null_and_forbids_it_again(empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0020")
    old, old_facts, old_comments = columns(empty), facts(empty), comments(empty)
    rows, views = table_contents(empty, old), view_rows(empty)
    assert rows["decision"]
    assert rows["calibration_point"]

    move(empty, "0021")
    assert (table_contents(empty, old), view_rows(empty)) == (rows, views)
    with connect(empty) as connection:
        assert not connection.execute(text("SELECT conname FROM pg_constraint WHERE NOT convalidated")).all()
    move(empty, "0020", command.downgrade)
    assert (columns(empty), facts(empty), comments(empty)) == (old, old_facts, old_comments)
    assert (table_contents(empty, old), view_rows(empty)) == (rows, views)
    move(empty, "0021")

    with transaction(empty) as connection:
        connection.execute(text(WITHOUT_VECTORS))
    with pytest.raises(ProgrammingError, match="which an older schema cannot hold"):
        move(empty, "0020", command.downgrade)
    assert schema.current_revision(empty) == "0021"


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("classifier", "dimension = NULL"),
        ("classifier", "neighbour_count = NULL"),
        ("classifier", "dimension = NULL, neighbour_count = NULL"),  # a share of knn is left
        ("classifier", "knn_share = 0"),
        ("calibration_point", "match_count = NULL"),
        ("calibration_point", "distance = NULL"),
        ("calibration_point", "match_count = NULL, distance = NULL, bin = 1"),
        ("calibration_point", "match_count = NULL, distance = NULL, bin = 0, split = 'vp', admit_set = '10'"),
        ("decision", "match_count = NULL"),
        ("decision", "distance = NULL, logits = NULL"),
        ("decision", "match_count = NULL, distance = NULL, logits = NULL, weighted = TRUE"),
        ("decision", "match_count = NULL, distance = NULL, logits = NULL, weighted = FALSE, require_full_match = TRUE"),
    ],
)
def test_nothing_is_half_without_vectors(empty: Engine, table: str, change: str) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0021")
    with pytest.raises(DatabaseError, match=rf"{table}_(knn|shares)_check"), transaction(empty) as connection:
        connection.execute(text(f"UPDATE {table} SET {change}"))


def test_sql_for_offline_use_makes_the_same(engine: Engine, empty: Engine) -> None:
    config, script = schema.alembic_config(), StringIO()
    config.output_buffer = script
    command.upgrade(config, "head", sql=True)
    # As psql does, one statement after the other: several at once are one transaction, in which no index is built
    # CONCURRENTLY.
    with empty.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for part in re.split(
            r"^(BEGIN;|COMMIT;|(?:DROP|CREATE) INDEX CONCURRENTLY.*?;)$", script.getvalue(), flags=re.M
        ):
            run_script(connection, part)
    assert facts(empty) == facts(engine)
    assert schema.current_revision(empty) == schema.head_revision()


def test_two_migrators_at_once(engine: Engine, empty_database: str, empty: Engine) -> None:
    program = "import sys; from venn_admit.service.store.database.schema import upgrade; upgrade(sys.argv[1])"
    migrators = [
        subprocess.Popen([sys.executable, "-c", program, empty_database], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for migrator in migrators:
        _, said = migrator.communicate()
        assert migrator.returncode == 0, said
    assert facts(empty) == facts(engine)


def as_a_newer_program_left_it(engine: Engine, oldest_program: str) -> None:
    with transaction(engine) as connection:
        connection.exec_driver_sql("UPDATE venn_admit.alembic_version SET version_num = '9999'")
        connection.exec_driver_sql(
            "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text "
            f"LANGUAGE sql IMMUTABLE RETURN '{oldest_program}'"
        )


def test_an_older_program_goes_on_working_on_a_schema_that_gained_things(engine: Engine) -> None:
    as_a_newer_program_left_it(engine, schema.head_revision())
    schema.require_usable(engine)
    schema.upgrade_engine(engine)
    assert schema.current_revision(engine) == "9999"


def test_an_older_program_refuses_a_schema_that_it_no_longer_understands(engine: Engine) -> None:
    as_a_newer_program_left_it(engine, "9000")
    for refused in (schema.require_usable, schema.upgrade_engine):
        with pytest.raises(NotReadyError, match=r"9999.*9000 or newer.*install the newer version"):
            refused(engine)
