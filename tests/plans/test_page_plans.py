"""What a page lists is found without what it does not list: of an old, small classifier beside a large one."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from benchmarks.reporting_data import FIRST_DAY
from tests.conftest import fresh_database
from tests.plans.plans import add_filled_classifier, buffers, explain, kinds, scans
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement

# The number of exemplars decided on, twice each: the decisions of the first classifier are the oldest.
SIZES = {"one": 200, "other": 20_000}
ROWS = 51


@pytest.fixture(scope="module", params=["without statistics", "older statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            for table in ("exemplar", "decision", "job_row"):
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            for name, size in SIZES.items():
                add_filled_classifier(connection, name, calibrating=200, scored=size, days=10)
                if request.param == "older statistics" and name == "one":
                    connection.exec_driver_sql("ANALYZE")
        if request.param == "analysed":
            with transaction(found) as connection:
                connection.exec_driver_sql("ANALYZE")
        yield found
        found.dispose()


def test_filled_classifiers_hold_no_copies(engine: Engine) -> None:
    """Copies are one document, and so in one fold, so that no table of methods could be made."""
    query = "SELECT classifier_id FROM exemplar GROUP BY classifier_id, content_digest HAVING count(*) > 1"
    with connect(engine) as connection:
        assert connection.execute(text(query)).all() == []


@pytest.mark.parametrize("outcomes", [[True, False], [True]])
@pytest.mark.parametrize("calibration", [None, 2])
def test_a_page_of_decisions(engine: Engine, calibration: int | None, outcomes: list[bool]) -> None:
    parameters = {
        "classifier_id": 1,
        "calibration_id": calibration,
        "outcomes": outcomes,
        "before": 2**63 - 1,
        "row_limit": ROWS,
    }
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("decisions.page_of_decisions")), parameters, analyze=True)
    assert nodes[0]["Actual Rows"] == ROWS
    read = scans(nodes, "decision")
    assert kinds(read) <= {("Index Scan", "decision_outcome_idx"), ("Index Only Scan", "decision_outcome_idx")}
    # Two snapshots with two outcomes: a page of each.
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) <= 4 * (ROWS + 2)
    assert buffers(nodes[0]) <= 4 * (ROWS + 1) * 6


def test_decisions_by_day_are_looked_up_in_a_sample(engine: Engine) -> None:
    """However many there are, about 40 rows of each day are read, and for each one entry of an index."""
    sampled, classifier = 40, 2
    parameters = {"classifier_id": classifier, "since": FIRST_DAY, "sampled": sampled}
    with connect(engine) as connection:
        query = str(statement("reports.daily_decisions"))
        nodes = explain(connection, query, parameters, analyze=True)
        found = connection.execute(text(query), parameters).all()
    decided = sum(row.decided for row in found)
    assert sum(row.decisions for row in found) > 10 * decided > 0
    assert all(row.admitted <= row.decided <= sampled for row in found)
    for table in ("decision", "job_row"):
        read = scans(nodes, table)
        assert {kind for kind, _ in kinds(read)} <= {"Index Scan", "Index Only Scan"}
        assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) == decided
    assert buffers(nodes[0]) <= 12 * decided + 100


def test_labels_by_day_are_counted_among_the_newest(engine: Engine) -> None:
    parameters = {"classifier_id": 2, "since": FIRST_DAY, "most": 50}
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("reports.daily_labels")), parameters, analyze=True)
    assert {kind for kind, _ in kinds(scans(nodes, "label_event"))} == {"Index Scan"}
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans(nodes, "exemplar")) <= 50
    assert buffers(nodes[0]) <= 50 * 6


def test_a_page_of_decisions_on_an_exemplar(engine: Engine) -> None:
    parameters = {
        "classifier_id": 1,
        "external_id": "350",
        "calibration_id": None,
        "outcomes": [True, False],
        "before": 2**63 - 1,
        "row_limit": ROWS,
    }
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("decisions.page_of_exemplar")), parameters, analyze=True)
    assert nodes[0]["Actual Rows"] == 2
    assert buffers(nodes[0]) <= 30
