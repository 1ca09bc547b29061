"""Removal beside other work, and across kills: nothing is lost, nothing stays behind, and nothing is counted twice."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from tests.patience import wait_until
from tests.running import Bench
from venn_admit.flows.jobs import removal
from venn_admit.flows.jobs.removal import Removed, prune
from venn_admit.store.access.audit import Origin
from venn_admit.store.database.engine import transaction
from venn_admit.store.decisions.removal import Why, delete_part, keep_requests_out, mark, unfinished

REPOSITORY = Path(__file__).parents[3]
ROWS = 160
KILLS = 3
PRUNE = """
import sys
from datetime import timedelta
from venn_admit.flows.jobs.removal import prune
from venn_admit.store.access.audit import Origin
from venn_admit.store.database.engine import create_engine
prune(create_engine(sys.argv[1]), timedelta(0), origin=Origin.SCHEDULE, batch_rows=1)
"""
LEFT = """
SELECT
    (SELECT count(*) FROM job_row),
    (SELECT count(*) FROM job_chunk WHERE job_id IN (SELECT id FROM job WHERE kind = 'score')),
    (SELECT count(*) FROM decision),
    (SELECT count(*) FROM admit_evidence),
    (SELECT count(*) FROM job WHERE removed_at IS NULL OR NOT is_emptied)
"""
# How many keys are recorded as removed, and how many different ones.
RECORDED = """
SELECT coalesce(sum(decision_count), 0), coalesce(sum(upper(part) - lower(part)), 0)
FROM (
    SELECT decision_count, NULL::int8range AS part FROM decision_removal
    UNION ALL
    SELECT 0, unnest(range_agg(each)) FROM (SELECT unnest(decisions) AS each FROM decision_removal) AS every
) AS parts
"""
UNDECIDED = """
SELECT count(*)
FROM job
INNER JOIN job_row ON job.id = job_row.job_id
LEFT JOIN decision USING (calibration_id, exemplar_id, weighted, require_full_match)
WHERE job.kind = 'score' AND job.state = 'done' AND job.removed_at IS NULL AND decision.id IS NULL
"""


def removed(bench: Bench) -> int:
    found: int = bench.value("SELECT count(*) FROM decision_removal")
    return found


@pytest.mark.processes
def test_a_killed_removal_is_continued(unlabelled: Bench) -> None:
    for options in ({}, {"weighted": False}, {"require_full_match": True}):
        unlabelled.score("edge", unlabelled.folder / "score.npz", **options)
    url = unlabelled.engine.url.render_as_string(hide_password=False)
    with transaction(unlabelled.engine) as holder:
        # So that none comes to its end before it is killed.
        holder.exec_driver_sql("SELECT FROM decision ORDER BY id DESC LIMIT 1 FOR UPDATE")
        for _ in range(KILLS):
            before = removed(unlabelled)
            with subprocess.Popen([sys.executable, "-W", "error", "-c", PRUNE, url], cwd=REPOSITORY) as pruning:
                try:
                    wait_until(lambda: removed(unlabelled) > before + 20, "it has removed some")  # noqa: B023
                    assert pruning.poll() is None, "it was over before it was killed"
                finally:
                    pruning.kill()
    assert 3 * 20 < removed(unlabelled) < 3 * ROWS
    found = prune(unlabelled.engine, timedelta(0), origin=Origin.SCHEDULE)
    assert found.is_complete
    assert tuple(unlabelled.rows(LEFT)[0]) == (0, 0, 0, 0, 0)
    assert tuple(unlabelled.rows(RECORDED)[0]) == (3 * ROWS, 3 * ROWS)
    assert unlabelled.value("SELECT count(*) FROM audit_event WHERE action = 'prune_jobs'") >= 1


def test_decisions_that_two_jobs_ask_for_go_though_both_are_removed_at_once(unlabelled: Bench) -> None:
    """One transaction has deleted the rows of a job, which the other, that empties the second job, cannot see yet."""
    again = unlabelled.request_score("edge", unlabelled.folder / "score.npz").job_id
    unlabelled.run(again)
    first = unlabelled.request_score("edge", unlabelled.folder / "score.npz").job_id
    unlabelled.run(first)
    with transaction(unlabelled.engine) as connection:
        for job_id in (again, first):
            assert mark(connection, job_id, Why.REQUEST)
    with transaction(unlabelled.engine) as connection, transaction(unlabelled.engine) as another:
        jobs = [unfinished(connection, job_id=job_id) for job_id in (first, again)]
        assert jobs[0] is not None
        assert jobs[1] is not None
        assert keep_requests_out(connection, jobs[0].classifier_id, wait=None)
        assert delete_part(connection, jobs[0], most=1000).is_last
        assert not keep_requests_out(another, jobs[1].classifier_id, wait=timedelta(milliseconds=1))
    assert prune(unlabelled.engine, timedelta(0), origin=Origin.SCHEDULE).is_complete
    assert tuple(unlabelled.rows(LEFT)[0]) == (0, 0, 0, 0, 0)


def test_two_at_once_beside_scoring(unlabelled: Bench) -> None:
    """Each job asks for the same rows, of which two processes remove those that nobody else asks for."""
    over = Event()

    def keep_pruning() -> list[Removed]:
        found = []
        while not over.is_set():
            found.append(prune(unlabelled.engine, timedelta(0), origin=Origin.SCHEDULE, seconds=20.0, batch_rows=9))
        return found

    undecided = []
    with ThreadPoolExecutor(2) as pool:
        pruning = [pool.submit(keep_pruning) for _ in range(2)]
        try:
            for _ in range(6):
                request = unlabelled.request_score("edge", unlabelled.folder / "score.npz", chunk_rows=40)
                unlabelled.run(request.job_id)
                undecided.append(unlabelled.value(UNDECIDED))
        finally:
            over.set()
        rounds = [one for each in pruning for one in each.result()]
    assert undecided == [0] * 6
    last = prune(unlabelled.engine, timedelta(0), origin=Origin.SCHEDULE)
    assert tuple(unlabelled.rows(LEFT)[0]) == (0, 0, 0, 0, 0)
    total = sum(one.decisions for one in [*rounds, last])
    assert tuple(unlabelled.rows(RECORDED)[0]) == (total, total)
    assert unlabelled.value("SELECT count(*) FROM job WHERE kind = 'score'") == 6
    assert total >= ROWS


def test_removal_has_its_turn_among_writers_without_a_pause(unlabelled: Bench) -> None:
    """Each of two writers waits for the other, so that the lock is never free, and nobody finds it so by a look."""
    unlabelled.score("edge", unlabelled.folder / "score.npz")
    over = Event()

    def write() -> int:
        written = 0
        while not over.is_set():
            with transaction(unlabelled.engine) as connection:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1, 1)")
                # As soon as the next one waits, but not before.
                wait_until(lambda: over.is_set() or waiting(unlabelled), "the next one waits")
            written += 1
        return written

    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write) for _ in range(2)]
        try:
            found = prune(unlabelled.engine, timedelta(0), origin=Origin.SCHEDULE, seconds=120.0, batch_rows=100)
        finally:
            over.set()
        assert all(one.result() for one in writing), "the lock was not theirs in turn"
    assert (found.decisions, found.is_complete) == (ROWS, True)


def waiting(bench: Bench) -> int:
    found: int = bench.value(
        "SELECT count(*) FROM pg_locks INNER JOIN pg_database ON pg_locks.database = pg_database.oid"
        " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
    )
    return found


def test_jobs_of_a_blocked_classifier_are_not_marked_and_others_go(unlabelled: Bench) -> None:
    unlabelled.create("other", dimension=2)
    with transaction(unlabelled.engine) as connection:
        connection.exec_driver_sql(
            "INSERT INTO job (classifier_id, kind, state, row_count, finished_at)"
            " SELECT classifier.id, 'approximate', 'done', 0, now() - interval '91 days' + n * interval '1 minute'"
            " FROM classifier, generate_series(1, 3) AS n"
        )
    marked = (
        "SELECT count(*) FILTER (WHERE removed_at IS NOT NULL) FROM job GROUP BY classifier_id ORDER BY classifier_id"
    )
    with transaction(unlabelled.engine) as writing:
        writing.exec_driver_sql("SELECT pg_advisory_xact_lock(1, 1)")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(removal, "PATIENCE", timedelta(milliseconds=1))
            found = prune(unlabelled.engine, timedelta(days=90), origin=Origin.SCHEDULE, seconds=60.0)
        # The first shows that it is blocked.
        assert [row[0] for row in unlabelled.rows(marked)] == [1, 3]
        assert (found.jobs, found.is_complete) == (4, False)
    found = prune(unlabelled.engine, timedelta(days=90), origin=Origin.SCHEDULE)
    assert [row[0] for row in unlabelled.rows(marked)] == [3, 3]
    assert (found.jobs, found.is_complete) == (2, True)


def test_without_a_limit_it_waits_for_who_came_before(unlabelled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "PATIENCE", timedelta(milliseconds=1))
    unlabelled.score("edge", unlabelled.folder / "score.npz")
    with ThreadPoolExecutor(1) as pool, transaction(unlabelled.engine) as writing:
        writing.exec_driver_sql("SELECT pg_advisory_xact_lock(1, 1)")
        pruning = pool.submit(prune, unlabelled.engine, timedelta(0), origin=Origin.SCHEDULE)
        wait_until(lambda: waiting(unlabelled), "it waits")
        assert not pruning.done()
        writing.rollback()
        assert pruning.result().decisions == ROWS
