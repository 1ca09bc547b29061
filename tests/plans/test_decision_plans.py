"""Decisions are found by snapshot and exemplar, which at most four share, one look-up a row: whatever the statistics.

They may be missing, or older than the snapshot, so that the planner expects no decision of it.
"""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from sqlalchemy import Connection, Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import Node, buffers, explain, kinds, scans
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import classifiers

ROWS = 10_000
OF_DECISIONS = ("decision_key", "decision_exemplar_id_calibration_id_idx")
SNAPSHOTS = f"""
INSERT INTO exemplar (id, classifier_id, external_id, split, network_logits, network_predicted, content_digest)
SELECT n, :classifier_id, n::text, 'scored', '{{0, 1}}', 1, '' FROM generate_series(1, {ROWS}) AS n;
INSERT INTO knn_parameters (classifier_id, origin, beta, gamma, eta, eta_loc, is_current)
VALUES (:classifier_id, 'given', '{{0, 0}}', '{{1, 1}}', 1, 1, TRUE);
INSERT INTO calibrator (classifier_id, settings_digest, method, alpha, delta, kappa, bin_edges, thresholds)
VALUES (:classifier_id, '', 'venn-admit', 0.1, 1, 1, '{{0}}', '{{0.9, 0.9}}');
INSERT INTO calibration
    (calibrator_id, number, knn_parameters_id, mc_count, vp_count, reason, state)
VALUES (1, 1, 1, 0, 0, '', 'current'), (1, 2, 1, 0, 0, '', 'retired');
"""
# What a job leaves behind.
JOB = f"""
INSERT INTO decision
    (calibration_id, exemplar_id, weighted, require_full_match, support_version, predicted, match_count, distance,
     logits, decision)
SELECT :calibration_id, n, TRUE, FALSE, 0, 1, 1, 0, '{{0, 1}}', 1
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO admit_evidence (decision_id, admit_set, band_size, threshold, category_size)
SELECT id, B'01', '{{1, 1}}', '{{0, 0}}', 1 FROM decision WHERE calibration_id = :calibration_id;
INSERT INTO job (id, classifier_id, kind, state, calibration_id, weighted, require_full_match, row_count)
OVERRIDING SYSTEM VALUE
VALUES (:calibration_id, :classifier_id, 'score', 'running', :calibration_id, TRUE, FALSE, {ROWS});
INSERT INTO job_row (job_id, row_number, exemplar_id)
SELECT :calibration_id, n - 1, n FROM generate_series(1, {ROWS}) AS n;
"""


@pytest.fixture(scope="module", params=["without statistics", "older statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            classifier = classifiers.create(
                connection,
                name="one",
                class_names=("a", "b"),
                dimension=2,
                neighbour_count=1,
                knn_share=Decimal("0.1"),
                mc_share=Decimal("0.45"),
                seed=0,
            )
            for table in ("exemplar", "decision", "admit_evidence", "job_row"):
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            _execute(connection, SNAPSHOTS, classifier_id=classifier.id)
            if request.param == "older statistics":
                _execute(connection, JOB, classifier_id=classifier.id, calibration_id=2)
                connection.exec_driver_sql("ANALYZE")
            _execute(connection, JOB, classifier_id=classifier.id, calibration_id=1)
            if request.param == "analysed":
                connection.exec_driver_sql("ANALYZE")
        yield found
        found.dispose()


def _execute(connection: Connection, script: str, **parameters: int) -> None:
    for part in script.split(";")[:-1]:
        connection.execute(text(part), {name: value for name, value in parameters.items() if f":{name}" in part})


def assert_looked_up(nodes: list[Node], rows: int, *, with_evidence: bool = False) -> None:
    (read,) = scans(nodes, "decision")
    assert kinds([read]) < {("Index Scan", index) for index in OF_DECISIONS}
    for column in ("calibration_id", "exemplar_id"):
        assert column in read["Index Cond"]
    assert read["Actual Loops"] == rows
    if with_evidence:
        (read,) = scans(nodes, "admit_evidence")
        assert kinds([read]) == {("Index Scan", "admit_evidence_pkey")}
        assert read["Actual Loops"] == rows
    # A descent of at most three pages and the page of the row, of the decision, its exemplar, and its evidence.
    assert buffers(nodes[0]) <= (12 if with_evidence else 8) * rows + 200


@pytest.mark.parametrize("name", ["job_decisions", "decision_counts"])
def test_the_rows_of_a_job(engine: Engine, name: str) -> None:
    with connect(engine) as connection:
        nodes = explain(connection, str(statement(f"decisions.{name}")), {"job_id": 1}, analyze=True)
    assert_looked_up(nodes, ROWS, with_evidence=name == "job_decisions")
    if name == "job_decisions":
        assert nodes[0]["Node Type"] != "Sort"


def test_the_last_rows_of_a_job(engine: Engine) -> None:
    """As many as are asked for, and no other row of the job."""
    rows = 100
    query = str(statement("catalogue.last_decisions"))
    with connect(engine) as connection:
        nodes = explain(connection, query, {"job_id": 1, "rows": rows}, analyze=True)
    assert_looked_up(nodes, rows)


def test_what_is_decided(engine: Engine) -> None:
    parameters = {
        "exemplar_ids": list(range(1, 2049)),
        "calibration_id": 1,
        "weighted": True,
        "require_full_match": False,
    }
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("decisions.undecided")), parameters, analyze=True)
    assert_looked_up(nodes, 2048)


def test_recent_traffic(engine: Engine) -> None:
    """Only rows that are wanted are looked up, however many the newest request has."""
    wanted = 500
    parameters = {
        "classifier_id": 1,
        "calibration_id": 1,
        "knn_parameters_id": 1,
        "support_version": 0,
        "class_count": 2,
        "row_limit": wanted,
        "codes": [1],
        "reasons": ["one"],
    }
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("reports.recent_rows")), parameters, analyze=True)
    assert nodes[0]["Actual Rows"] == wanted
    for table, indexes in (
        ("decision", OF_DECISIONS),
        ("job_row", ("job_row_pkey",)),
        ("exemplar", ("exemplar_pkey",)),
    ):
        (read,) = scans(nodes, table)
        assert read["Index Name"] in indexes
        assert read["Actual Loops"] == wanted
    # For each, five look-ups of at most three pages and the row's.
    assert buffers(nodes[0]) <= 20 * wanted + 200


def test_what_nobody_needs(engine: Engine) -> None:
    """Each exemplar of a removed job is looked up by itself, however many rows other jobs have."""
    wanted = 500
    parameters = {
        "job_id": 2,
        "exemplar_ids": list(range(1, wanted + 1)),
        "calibration_id": 1,
        "weighted": True,
        "require_full_match": False,
    }
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("removals.unneeded")), parameters, analyze=True)
    assert nodes[0]["Actual Rows"] == 0, "job 1 asks for them"
    for table, indexes in (("decision", OF_DECISIONS), ("job_row", ("job_row_exemplar_id_idx",))):
        (read,) = scans(nodes, table)
        assert read["Index Name"] in indexes
        assert read["Actual Loops"] == wanted
    assert buffers(nodes[0]) <= 25 * wanted + 200


def test_given_decisions(engine: Engine) -> None:
    wanted = 500
    parameters = {"decision_ids": list(range(1, 2 * wanted, 2))}
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("what_if.decided")), parameters, analyze=True)
    (read,) = scans(nodes, "decision")
    assert (read["Index Name"], read["Actual Loops"]) == ("decision_pkey", wanted)
    assert buffers(nodes[0]) <= 4 * wanted + 200
