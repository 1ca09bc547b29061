"""A query for one classifier, calibration, job or day reads what it reports on, and no vectors.

Every view of the catalogue is asked, by every one of these columns that it has. Scans and joins of whole tables are
turned off, because the planner rightly prefers them in tables this small: what is tested is that a condition reaches
the tables.
"""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import Node, add_filled_classifier, explain
from venn_admit.store.database.engine import connect, create_engine, transaction

# Exemplars that calibrate, and as many that are scored, of the classifier asked about, and of another.
SIZES = {"one": 1_500, "other": 15_000}
DAYS = 10

COLUMNS = """
SELECT relname AS view, array_agg(attname ORDER BY attname) AS columns
FROM pg_class INNER JOIN pg_attribute ON pg_class.oid = attrelid
WHERE relnamespace = 'report'::regnamespace AND attnum > 0 AND NOT attisdropped
GROUP BY relname
ORDER BY relname
"""
ASKED = {"classifier": "'one'", "calibration": "{calibration}", "job": "{job}", "day": "DATE '2026-01-04'"}
# The tables that grow.
GROWING = ("decision", "admit_evidence", "abers_evidence", "calibration_point", "job_row", "label_event", "neighbours")


@pytest.fixture(scope="module")
def engine(server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        for name, size in SIZES.items():
            with transaction(found) as connection:
                add_filled_classifier(connection, name, calibrating=size, scored=size, days=DAYS)
        with found.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")
        yield found
        found.dispose()


def touched(node: Node) -> int:
    """The rows that a scan looked at, in all its loops."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    rows: float = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return round(rows)


def queries(engine: Engine) -> Iterator[tuple[str, str, str]]:
    """Each view, a column of it to ask by, and the query."""
    with connect(engine) as connection:
        calibration = connection.execute(text("SELECT min(id) FROM calibration")).scalar_one()
        job = connection.execute(text("SELECT min(id) FROM job")).scalar_one()
        for row in connection.execute(text(COLUMNS)):
            for column in ASKED.keys() & set(row.columns):
                value = ASKED[column].format(calibration=calibration, job=job)
                yield row.view, column, f"SELECT * FROM report.{row.view} WHERE {column} = {value}"


def most(column: str, table: str) -> int:
    """How many rows an answer may look at: a day is of both classifiers."""
    if column != "day":
        return 4 * SIZES["one"]
    # Each snapshot that was used on the day is compared with, whole.
    return 2 * sum(SIZES.values()) if table == "calibration_point" else SIZES["other"] * 2 // 3


def read_too_much(engine: Engine, view: str, column: str, query: str) -> list[tuple[object, ...]]:
    with connect(engine) as connection:
        # Tables as small as these are faster to scan, or to merge, whole.
        connection.exec_driver_sql("SET enable_seqscan = off")
        connection.exec_driver_sql("SET enable_mergejoin = off")
        connection.exec_driver_sql("SET enable_hashjoin = off")
        nodes = explain(connection, query, {}, analyze=True)
    assert not [node for node in nodes if node.get("Relation Name", "").startswith("exemplar_vector")], query
    return [
        (view, column, node["Node Type"], node["Relation Name"], touched(node))
        for node in nodes
        if node.get("Relation Name") in GROWING
        and node["Actual Loops"]
        and touched(node) > most(column, node["Relation Name"])
    ]


def test_labelled_decisions_are_sorted_by_no_name(engine: Engine) -> None:
    """There may be millions of them, and each name would be compared with itself."""
    with connect(engine) as connection:
        nodes = explain(connection, "SELECT * FROM report.selective_accuracy_v4", {})
    keys = [key for node in nodes for key in node.get("Group Key", ())]
    assert any("weighted" in key for key in keys)
    assert not [key for key in keys if "name" in key]


def test_a_query_reads_what_it_reports_on(engine: Engine) -> None:
    asked = list(queries(engine))
    assert len(asked) > 25
    found = [each for query in asked for each in read_too_much(engine, *query)]
    assert not found, "\n".join(map(str, found))
