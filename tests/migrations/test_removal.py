"""The migrations that removal rests on can be repeated, keep nobody waiting, and do not bring back what is gone."""

import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from alembic import command
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from tests.migrations.migrating import ROWS, columns, facts, move, run_script, table_contents
from venn_admit.service.store.database import schema
from venn_admit.service.store.database.engine import connect, create_engine, transaction

BUILDING = """
SELECT pid
FROM pg_stat_activity
WHERE
    datname = current_database()
    AND query LIKE 'CREATE INDEX CONCURRENTLY%'
    AND wait_event_type = 'Lock'
"""
SECONDS = 300


def waiting(engine: Engine, moving: Future[None]) -> int:
    """The session that builds an index and waits for a transaction."""
    ends = time.monotonic() + SECONDS
    while True:
        with connect(engine) as connection:
            pid: int | None = connection.execute(text(BUILDING)).scalar_one_or_none()
        if pid is not None:
            return pid
        assert not moving.done(), moving.exception()
        assert time.monotonic() < ends, "it does not wait"
        time.sleep(0.05)


@pytest.mark.parametrize("revision", ["0041", "0043", "0044"])
def test_an_interrupted_attempt_is_repeated_and_waits_for_transactions(
    engine: Engine, empty: Engine, empty_database: str, revision: str
) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, f"{int(revision) - 1:04}")
    impatient = create_engine(empty_database, lock_timeout_seconds=1)
    with ThreadPoolExecutor(1) as threads:
        with empty.connect().execution_options(isolation_level="REPEATABLE READ") as long:
            long.execute(text("SELECT txid_current()"))
            moving = threads.submit(move, impatient, revision)
            pid = waiting(empty, moving)
            time.sleep(1.5)
            assert waiting(empty, moving) == pid, "it waits for longer than others wait for locks"
            with transaction(empty) as connection:
                connection.execute(text("SELECT pg_cancel_backend(:pid)"), {"pid": pid})
            with pytest.raises(OperationalError):
                moving.result(SECONDS)
        assert schema.current_revision(empty) == f"{int(revision) - 1:04}"
        move(empty, revision)
    impatient.dispose()
    move(empty, "head")
    assert facts(empty) == facts(engine)


def test_the_index_of_the_partitioned_table_does_not_have_writers_wait_for_long(empty: Engine) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0043")
    with ThreadPoolExecutor(1) as threads:
        with transaction(empty) as connection:
            connection.execute(text("LOCK TABLE exemplar_vector IN ROW EXCLUSIVE MODE"))
            moving = threads.submit(move, empty, "0044")
            with pytest.raises(OperationalError, match="lock timeout"):
                moving.result(SECONDS)
        move(empty, "0044")
    assert schema.current_revision(empty) == "0044"


REMOVED = {
    "INSERT INTO forgotten_exemplar (digest) VALUES (sha256('a'))": "exemplars were forgotten",
    "INSERT INTO forgotten_training (classifier_id, support_from, support_until) VALUES (1, 1, 2)": (
        "exemplars were forgotten"
    ),
    "INSERT INTO forgotten_point (calibrator_id, split, valid_from, valid_until) VALUES (1, 'mc', 1, 2)": (
        "exemplars were forgotten"
    ),
    "UPDATE classifier SET deleting_since = now()": "classifiers are being deleted",
    "UPDATE classifier SET generation = 2": "whose first generation was deleted",
}


@pytest.mark.parametrize("removed", REMOVED)
def test_there_is_no_way_back_past_what_was_removed(empty: Engine, removed: str) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0044")
    old, before = columns(empty), facts(empty)
    rows = table_contents(empty, old)
    move(empty, "0045")
    move(empty, "0044", command.downgrade)
    assert (facts(empty), table_contents(empty, old)) == (before, rows)
    move(empty, "0045")
    with transaction(empty) as connection:
        connection.execute(text(removed))
    with pytest.raises(ProgrammingError, match=REMOVED[removed]):
        move(empty, "0044", command.downgrade)
    assert schema.current_revision(empty) == "0045"
