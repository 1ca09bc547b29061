"""Columns that were renamed, moved or described anew: rows, views and decisions are as they were."""

from decimal import Decimal
from math import inf
from pathlib import Path

from alembic import command
from sqlalchemy import Engine, text

from tests.migrations.migrating import (
    LATER_CALIBRATOR,
    ROWS,
    assert_replay_equal,
    columns,
    columns_of_before,
    comments,
    facts,
    move,
    partitions,
    renamed,
    run_script,
    table_contents,
    unordered,
    view_rows,
)
from tests.running import Bench, Golden
from venn_admit.service.flows.decisions.score import read_scores
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.database.tables import metadata
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.search import hnsw
from venn_admit.service.store.search.array_cache import ArrayCache

HNSW_AT_0013 = """
CREATE INDEX exemplar_vector_1_support_hnsw_idx ON venn_admit.exemplar_vector_1_support
USING hnsw ((r::public.vector(2)) public.vector_l2_ops) WITH (m = 4, ef_construction = 8)
"""


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

    now = columns_of_before(engine)
    before = table_contents(engine, now)
    move(engine, "0013", command.downgrade)
    move(engine, "head")
    assert table_contents(engine, now) == before
    assert_replay_equal(engine, ArrayCache(tmp_path / "other"), ids)


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
