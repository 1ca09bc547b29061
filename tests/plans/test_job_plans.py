"""What is done with chunks is planned as if its conditions were written out, and reads open chunks by their index."""

from importlib.resources import files
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.plans.plans import explain
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.database.statements import statement

FREE = "is_chunk_free_v1(chunk.state, chunk.not_before, chunk.lease_until)"
CLAIMABLE = "is_chunk_claimable_v1(chunk.state, chunk.not_before, chunk.lease_until, chunk.claimed_at, chunk.late_at)"
UNSENT = "is_chunk_unsent_v2(chunk.sent_at, chunk.lease_until, chunk.claimed_at, chunk.late_at)"
AWAITED = "awaited_chunk_v1 AS awaited"
WRITTEN_OUT = {
    FREE: """((chunk.not_before IS NULL OR chunk.not_before <= now()) AND chunk.state IN ('pending', 'running')
        AND (chunk.state = 'pending' OR chunk.lease_until < now()))""",
    CLAIMABLE: """(((chunk.not_before IS NULL OR chunk.not_before <= now()) AND chunk.state IN ('pending', 'running')
        AND (chunk.state = 'pending' OR chunk.lease_until < now()))
        OR (chunk.state = 'running' AND chunk.claimed_at < chunk.late_at))""",
    UNSENT: """(chunk.sent_at IS NULL
        OR coalesce(chunk.lease_until < now() AND chunk.sent_at <= chunk.lease_until, FALSE)
        OR coalesce(chunk.claimed_at < chunk.late_at AND chunk.sent_at < chunk.late_at, FALSE))""",
    AWAITED: "(SELECT job_id FROM job_chunk WHERE NOT is_last AND state <> 'done') AS awaited",
}
STATEMENTS: dict[str, tuple[set[str], dict[str, Any]]] = {
    "jobs.jobs_in_turn": ({CLAIMABLE}, {"bulk_first": False}),
    "job_chunks.claim_chunk": (
        {CLAIMABLE, UNSENT, AWAITED},
        {"job_id": 2, "ordinal": None, "worker": "here", "lease_seconds": 60},
    ),
    "job_chunks.take_unsent": ({UNSENT, AWAITED}, {"job_id": 2}),
    "job_chunks.mark_late": (set(), {"job_id": None, "times": 3.0, "least_seconds": 5.0}),
    "job_chunks.overdue_chunks": ({CLAIMABLE}, {"resend_seconds": 60}),
    "job_chunks.take_overdue": ({CLAIMABLE}, {"resend_seconds": 60}),
    "job_chunks.is_last_chunk_free": ({AWAITED}, {"job_id": 2}),
    "standing.oldest_waiting_chunk": ({FREE, AWAITED}, {}),
}

CLASSIFIER = """
INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)
VALUES ('reviews', '{no,yes}', 2, 1, 0.1, 0.45, 0)
"""
# The second job is running, and a hundredth of its chunks is open.
JOBS = """
INSERT INTO job (classifier_id, kind, state, row_count, finished_at)
SELECT 1, 'approximate', CASE WHEN n = 2 THEN 'running' ELSE 'done' END, 10000, CASE WHEN n <> 2 THEN now() END
FROM generate_series(1, 3) AS n
"""
CHUNKS = """
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, state)
SELECT job.id, n, n, n + 1, CASE WHEN job.state = 'running' AND mod(n, 100) = 0 THEN 'pending' ELSE 'done' END
FROM job, generate_series(0, 9999) AS n
"""


@pytest.fixture(scope="module")
def engine(shared_engine: Engine) -> Engine:
    with transaction(shared_engine) as connection:
        for query in (CLASSIFIER, JOBS, CHUNKS, "ANALYZE"):
            connection.exec_driver_sql(query)
    return shared_engine


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_plan_is_that_of_the_conditions(engine: Engine, name: str) -> None:
    called, parameters = STATEMENTS[name]
    query = written_out = str(statement(name))
    assert {one for one in WRITTEN_OUT if one in query} == called
    for one in called:
        written_out = written_out.replace(one, WRITTEN_OUT[one])
    with connect(engine) as connection:
        plan = explain(connection, query, parameters)
        assert plan == explain(connection, written_out, parameters)
    assert "is_chunk_" not in str(plan)


@pytest.mark.parametrize("name", STATEMENTS)
def test_open_chunks_are_found_by_their_index(engine: Engine, name: str) -> None:
    with connect(engine) as connection:
        nodes = explain(connection, str(statement(name)), STATEMENTS[name][1])
    assert "job_chunk_open_idx" in {node.get("Index Name") for node in nodes}
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan" and node["Alias"] in ("chunk", "last")]


def test_no_statement_has_a_condition_of_its_own() -> None:
    for file in files("venn_admit.store").joinpath("sql").iterdir():
        query = file.read_text(encoding="utf-8")
        for condition in ("chunk.state = 'pending' OR", "sent_at <= chunk.lease_until", "NOT earlier.is_last"):
            assert condition not in query, file.name
