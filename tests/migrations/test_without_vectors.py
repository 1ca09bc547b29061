"""Classifiers with logits only: what may be null, all of it together, and that there is no way back past them."""

import pytest
from alembic import command
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from tests.migrations.migrating import ROWS, columns, comments, facts, move, run_script, table_contents, view_rows
from venn_admit.service.errors import DatabaseError
from venn_admit.service.store.database import schema
from venn_admit.service.store.database.engine import connect, transaction

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


START_MONITOR = """
INSERT INTO monitor (calibrator_id, knn_parameters_id, calibration_number, after_event, plan)
VALUES (1, :parameters, 1, 0, CAST(:plan AS json))
"""
OF_CLASSES = '{"class_count": 2, "documents": [40, 50]}'
OF_GROUPS_TOO = '{"class_count": 2, "documents": [1, 2, 3, 4, 5, 6]}'


def test_a_monitor_without_vectors_watches_classes_and_has_no_way_back(empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0027")
    with transaction(empty) as connection:
        connection.execute(text(START_MONITOR), {"parameters": 1, "plan": OF_GROUPS_TOO})
    old_facts, old_comments, rows = facts(empty), comments(empty), table_contents(empty, columns(empty))

    move(empty, "0028")
    assert table_contents(empty, columns(empty)) == rows
    for parameters, plan in ((None, OF_GROUPS_TOO), (1, OF_CLASSES)):
        with pytest.raises(DatabaseError, match="monitor_partitions_check"), transaction(empty) as connection:
            connection.execute(text(START_MONITOR), {"parameters": parameters, "plan": plan})
    move(empty, "0027", command.downgrade)
    assert (facts(empty), comments(empty)) == (old_facts, old_comments)
    assert table_contents(empty, columns(empty)) == rows

    move(empty, "0028")
    with transaction(empty) as connection:
        connection.execute(text(START_MONITOR), {"parameters": None, "plan": OF_CLASSES})
    with pytest.raises(ProgrammingError, match="which an older schema cannot hold"):
        move(empty, "0027", command.downgrade)
    assert schema.current_revision(empty) == "0028"
