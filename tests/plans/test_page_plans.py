"""What a page lists is found without what it does not list: of an old, small classifier beside a large one."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from tests.conftest import fresh_database
from tests.plans.plans import add_filled_classifier, buffers, explain, kinds, scans
from venn_admit.service.store.database.engine import connect, create_engine, transaction
from venn_admit.service.store.database.statements import statement

# The number of exemplars decided on, twice each: the decisions of the first classifier are the oldest.
SIZES = {"one": 200, "other": 20_000}
ROWS = 51


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            for table in ("exemplar", "decision", "job_row"):
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            for name, size in SIZES.items():
                add_filled_classifier(connection, name, calibrating=200, scored=size, days=10)
        if request.param == "analysed":
            with transaction(found) as connection:
                connection.exec_driver_sql("ANALYZE")
        yield found
        found.dispose()


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
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) <= 4 * (ROWS + 1)
    assert buffers(nodes[0]) <= 4 * (ROWS + 1) * 6


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
