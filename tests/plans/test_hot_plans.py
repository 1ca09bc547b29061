"""What is asked all day reads as little with no statistics, or with those of an empty database, as with fresh ones."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.conftest import fresh_database
from tests.plans.plans import add_filled_classifier, buffers, explain, read
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement

TRAINING, CALIBRATING, SCORED = 100, 10_000, 10_000
FIRST_HELD_OUT, FIRST_SCORED = TRAINING + 1, TRAINING + CALIBRATING + 1
CHUNK = list(range(FIRST_SCORED, FIRST_SCORED + 2_000))
FEW = 100
ARRIVING = CHUNK[:FEW]
OPEN_CHUNKS = 10
# A job that has come far; the one of the table is the last.
JOB = f"""
INSERT INTO job (classifier_id, kind, state, row_count) VALUES (1, 'approximate', 'running', 20000000);
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, state)
SELECT
    (SELECT max(id) FROM job), n, n * 2000, (n + 1) * 2000,
    CASE WHEN n < {10_000 - OPEN_CHUNKS} THEN 'done' ELSE 'pending' END
FROM generate_series(0, 9999) AS n
"""
# Each scored point was drawn, and what is held out counts for a chain; the label of one in a hundred was taken back.
COUNTED = f"""
INSERT INTO audit_rule (classifier_id, key, admitted_rates, rejected_rate)
VALUES (1, decode(md5(''), 'hex'), '{{1,1}}', 1);
INSERT INTO audit_draw (
    exemplar_id, audit_rule_id, predicted, is_admitted, probability, least_probability, is_drawn, content
)
SELECT id, 1, 0, TRUE, 1, 1, TRUE, decode(md5(id::text), 'hex') || convert_to(external_id, 'UTF8')
FROM exemplar WHERE split = 'scored';
INSERT INTO standing_chain (calibrator_id, number, score, proposing, chain) VALUES (2, 1, 'network', 1, '{{}}');
INSERT INTO standing_evidence (chain_id, exemplar_id, document, predicted, score, label)
SELECT 1, id, id, 0, 0.5, CASE WHEN mod(id, {CALIBRATING // FEW}) > 0 THEN 1 END
FROM exemplar WHERE split IN ('mc', 'vp')
"""
TABLES = (
    "exemplar",
    "label_event",
    "approximation",
    "neighbours",
    "calibration_point",
    "decision",
    "job_row",
    "job_chunk",
)

Parameters = dict[str, Any]
LOOKED_UP: dict[str, Parameters] = {
    # Deciding.
    "calibrations.latest_key": {
        "name": "one",
        "shared_name": "one",
        "generation": 1,
        "exemplar_ids": ARRIVING,
        "key_ids": [1],
    },
    # Labels that arrive.
    "labels.labelled_exemplars": {"classifier_id": 1, "external_ids": [str(one) for one in ARRIVING]},
    "labels.set_labels": {"exemplar_ids": ARRIVING, "labels": [1] * FEW, "splits": ["vp"] * FEW},
    # A chunk of a job.
    "job_chunks.claim_chunk": {"job_id": 11, "ordinal": None, "worker": "here", "lease_seconds": 60},
    "job_chunks.take_unsent": {"job_id": 11},
    # A recalibration, and a certificate that stands.
    "calibration_points.close_points": {
        "calibrator_id": 2,
        "number": 2,
        "exemplar_ids": list(range(FIRST_HELD_OUT, FIRST_HELD_OUT + FEW)),
    },
    "chains.newest_event": {"classifier_id": 1, "event": TRAINING + CALIBRATING - FEW},
    "chains.new_labels": {
        "classifier_id": 1,
        "event": TRAINING + CALIBRATING - FEW,
        "at_start": False,
        "of_all": True,
    },
    "approximations.without_approximation_among": {
        "exemplar_ids": ARRIVING,
        "splits": ["mc", "vp"],
        "knn_parameters_id": 1,
    },
    "approximations.points_among": {
        "exemplar_ids": list(range(FIRST_HELD_OUT, FIRST_HELD_OUT + FEW)),
        "knn_parameters_id": 1,
    },
    "point_changes.changed_since": {
        "classifier_id": 1,
        "seen": "1000000:1000000:",
        "last_exemplar_id": TRAINING + CALIBRATING - FEW,
    },
    # A list of a page.
    "labels.newest_labels": {"classifier_id": 1, "looked_at": FEW, "row_limit": 50},
}
# With the number of rows that each reads.
WHOLE: dict[str, tuple[int, Parameters]] = {
    "approximations.neighbours": (len(CHUNK), {"classifier_id": 1, "exemplar_ids": CHUNK}),
    "approximations.approximations": (len(CHUNK), {"knn_parameters_id": 1, "exemplar_ids": CHUNK}),
    "exemplars.network_logits": (len(CHUNK), {"exemplar_ids": CHUNK}),
    "exemplars.vectors": (len(CHUNK), {"classifier_id": 1, "exemplar_ids": CHUNK}),
    "approximations.without_approximation": (
        CALIBRATING,
        {"classifier_id": 1, "splits": ["mc", "vp"], "knn_parameters_id": 1},
    ),
    "approximations.outdated_neighbours": (CALIBRATING + SCORED, {"classifier_id": 1, "support_version": TRAINING}),
    "approximations.split_approximations": (
        CALIBRATING // 2,
        {"classifier_id": 1, "split": "mc", "knn_parameters_id": 1},
    ),
    # The one class that there is.
    "exemplars.split_classes": (CALIBRATING // 2, {"classifier_id": 1, "split": "mc", "support_version": TRAINING}),
    "calibration_points.rows_of_snapshot": (CALIBRATING, {"calibrator_id": 2, "class_count": 2, "number": None}),
    "calibrations.snapshot_points": (CALIBRATING // 2, {"calibrator_id": 2, "split": "vp", "number": 1}),
}


@pytest.fixture(scope="module", params=["without statistics", "older statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            for table in TABLES:
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            if request.param == "older statistics":
                connection.exec_driver_sql("ANALYZE")
            add_filled_classifier(connection, "one", calibrating=CALIBRATING, scored=SCORED, days=5)
            for each in JOB.split(";\n"):
                connection.exec_driver_sql(each)
            if request.param == "analysed":
                connection.exec_driver_sql("ANALYZE")
        yield found
        found.dispose()


@pytest.mark.parametrize("name", LOOKED_UP)
def test_a_few_rows_are_looked_up(engine: Engine, name: str) -> None:
    """Twice at most, as some are written too; no row of others is read."""
    with connect(engine) as connection:
        nodes = explain(connection, str(statement(name)), LOOKED_UP[name], analyze=True)
        connection.rollback()
    looked_at = {table: read(nodes, table) for table in TABLES}
    assert max(looked_at.values()) > 0
    assert max(looked_at.values()) <= 2 * FEW, looked_at


def test_what_counts_for_a_chain_is_found_by_what_it_holds(engine: Engine) -> None:
    """Among points that were drawn, and held out, and those whose label was taken back."""
    with connect(engine) as connection:
        for each in COUNTED.split(";\n"):
            connection.exec_driver_sql(each)
        given = {"classifier_id": 1, "chain_id": 1, "event": 0, "digests": [bytes([n]) * 16 for n in range(FEW)]}
        nodes = explain(connection, str(statement("chains.known_contents")), given, analyze=True)
        connection.rollback()
    looked_at = {table: read(nodes, table) for table in ("exemplar", "audit_draw", "standing_evidence")}
    assert 0 < max(looked_at.values()) <= 2 * FEW, looked_at


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_read_whole_is_read_once(engine: Engine, name: str) -> None:
    """At most by a look-up in each of two tables, of three pages each, for each row."""
    rows, parameters = WHOLE[name]
    with connect(engine) as connection:
        nodes = explain(connection, str(statement(name)), parameters, analyze=True)
    assert buffers(nodes[0]) <= 6 * rows + 100
