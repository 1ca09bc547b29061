"""Each part of a removal reads what it deletes, and not what parts before it did, which an old snapshot still sees."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.dialects import postgresql

from tests.plans.plans import buffers, explain, filled_engine
from venn_admit.store.database.engine import connect
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import deletion
from venn_admit.store.exemplars.deletion import Key

ROWS, PART = 10_000, 100
FILL = (
    "INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)"
    " VALUES ('reviews', '{no,yes}', 2, 1, 0.1, 0.45, 0), ('other', '{no,yes}', 2, 1, 0.1, 0.45, 0)",
    "INSERT INTO exemplar (classifier_id, external_id, split, network_logits, network_predicted, content_digest)"
    " SELECT 1 + mod(n, 2), n, 'scored', '{0,1}', 1, decode(md5(n::text), 'hex')"
    f" FROM generate_series(1, {2 * ROWS}) AS n",
    "INSERT INTO job (classifier_id, kind, state, row_count, finished_at, removed_at, removed_because, rows_done)"
    f" SELECT n, 'approximate', 'done', {ROWS}, now(), now(), 'age', 0 FROM generate_series(1, 2) AS n",
    "INSERT INTO job_row (job_id, row_number, exemplar_id)"
    " SELECT classifier_id, row_number() OVER (PARTITION BY classifier_id ORDER BY id), id FROM exemplar",
    "INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, state)"
    f" SELECT job.id, n, n, n + 1, 'done' FROM job, generate_series(1, {ROWS}) AS n",
    "INSERT INTO calibrator (classifier_id, settings_digest, method, alpha, bin_edges, thresholds, score)"
    " SELECT n, 'd', 'venn-abers', 0.1, '{0}', '{1,1}', 'network' FROM generate_series(1, 2) AS n",
    "INSERT INTO venn_abers_step (calibrator_id, cell, score, valid_from, lower, upper_at, upper_above)"
    f" SELECT calibrator.id, 0, n, 1, 0, 1, 1 FROM calibrator, generate_series(1, {ROWS}) AS n",
)
# With the key before the first row, and what deletes the rows that the statement only finds.
STATEMENTS: dict[str, tuple[Key, str | None]] = {
    "removals.delete_rows": ({"after": -1}, None),
    "deletion.some_exemplars": (deletion.FIRST_EXEMPLAR, "DELETE FROM exemplar WHERE id = :id"),
    "job_chunk": (deletion.TABLES["job_chunk"], None),
    "venn_abers_step": (deletion.TABLES["venn_abers_step"], None),
}


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with filled_engine(server_url, template_database, FILL, analysed=request.param == "analysed") as found:
        yield found


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_part_costs_as_much_however_many_came_before(engine: Engine, name: str) -> None:
    first, delete = STATEMENTS[name]
    given = {"most": PART, "job_id": 1} if name.startswith("removals") else {"batch": PART, "classifier_id": 1}
    with connect(engine) as holder, connect(engine) as connection:
        holder.execution_options(isolation_level="REPEATABLE READ").exec_driver_sql("SELECT FROM job").all()
        if name == "deletion.some_exemplars":
            connection.exec_driver_sql("DELETE FROM job_row WHERE job_id = 1")
        after = first
        for _ in range(ROWS // PART - 1):
            after = delete_part(connection, name, {**given, **after}, delete)
        connection.commit()
        nodes = explain(connection, query_of(name), {**given, **after}, analyze=True)
        connection.rollback()
        from_the_front = explain(connection, query_of(name), {**given, **first}, analyze=True)
        connection.rollback()
    # A row, its place in the index, and what refers to it.
    assert buffers(nodes[0]) <= 8 * PART
    assert buffers(from_the_front[0]) > buffers(nodes[0])


def query_of(name: str) -> str:
    """A statement by its name, or what deletes a part of a table."""
    if name not in deletion.TABLES:
        return str(statement(name))
    compiled = str(deletion.part_of(name).compile(dialect=postgresql.dialect(paramstyle="named")))
    return compiled.replace("::", " ::")  # else the name would not be taken for that of a parameter


def delete_part(connection: Connection, name: str, parameters: dict[str, Any], delete: str | None) -> Key:
    """Delete a part; the key of its last row."""
    rows = connection.execute(text(query_of(name)), parameters).mappings().all()
    assert len(rows) == PART
    if delete is not None:
        connection.execute(text(delete), [dict(row) for row in rows])
    if name.startswith("removals"):
        return {"after": max(row["row_number"] for row in rows)}
    return dict(rows[-1])
