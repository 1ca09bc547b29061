"""Cascades are looked up by their keys, however many points were decided on and calibrated meanwhile."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import add_filled_classifier, buffers, explain, kinds, read, scans
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement

CASCADES, CERTIFICATES = 200, 20
NAMES = ("one", "other")

# Each cascade has both classifiers as stages, and a document of a certificate of some 20 kB.
FILL = f"""
INSERT INTO classifier_cascade (name) SELECT 'cascade ' || number FROM generate_series(1, {CASCADES}) AS number;
INSERT INTO cascade_stage (cascade_id, place, classifier_id, cost)
SELECT cascade.id, row_number() OVER (PARTITION BY cascade.id ORDER BY classifier.id), classifier.id, 1
FROM classifier_cascade AS cascade CROSS JOIN classifier;
INSERT INTO cascade_calibration (cascade_id, alpha, confidence, is_certified, points, document)
SELECT
    cascade.id, 0.1, 0.95, true, 1000,
    jsonb_build_object('kinds', jsonb_build_array('predicted'), 'test', 'finite-sample', 'chains', (
        SELECT jsonb_agg(md5(step::text))
        FROM generate_series(1, 500) AS step
    ))
FROM classifier_cascade AS cascade CROSS JOIN generate_series(1, {CERTIFICATES}) AS number;
INSERT INTO cascade_calibration_stage (
    cascade_calibration_id, place, calibration_id, score, thresholds, reached, served, served_right
)
SELECT certified.id, stage.place, used.calibration_id, 'network', '{{0.9,0.9}}', 900, '{{400,300}}', '{{390,290}}'
FROM cascade_calibration AS certified
INNER JOIN cascade_stage AS stage ON certified.cascade_id = stage.cascade_id
INNER JOIN calibration_in_use_v1 AS used ON stage.classifier_id = used.classifier_id;
"""


@pytest.fixture(scope="module", params=["without statistics", "analysed", "stale"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    """Statistics may be missing, right, or of tables that were empty."""
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            for name in NAMES:
                add_filled_classifier(connection, name, calibrating=2000, scored=200, days=2)
            if request.param == "stale":
                connection.exec_driver_sql("ANALYZE")
            connection.exec_driver_sql(FILL)
            if request.param == "analysed":
                connection.exec_driver_sql("ANALYZE")
        yield found
        found.dispose()


def test_a_cascade_is_looked_up_without_the_documents_of_its_certificates(engine: Engine) -> None:
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("cascades.stages")), {"name": "cascade 7"}, analyze=True)
    assert nodes[0]["Actual Rows"] == len(NAMES)
    for table in ("cascade_calibration", "cascade_calibration_stage"):
        assert {kind for kind, _ in kinds(scans(nodes, table))} <= {
            "Index Scan",
            "Index Only Scan",
            "Bitmap Heap Scan",
            "Bitmap Index Scan",
        }
    assert buffers(nodes[0]) <= 200


def test_what_a_job_is_asked_for_is_looked_up(engine: Engine) -> None:
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("cascades.request")), {"job_id": 1}, analyze=True)
    assert buffers(nodes[0]) <= 10


def test_cascades_that_are_up_to_date_are_found_without_a_point(engine: Engine) -> None:
    with connect(engine) as connection:
        query = str(statement("cascades.due"))
        nodes = explain(connection, query, {}, analyze=True)
        assert connection.execute(text(query)).all() == []
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans(nodes, "calibration_point")) == 0


def test_what_reached_the_next_stage_is_looked_up(engine: Engine) -> None:
    """Points that are labelled and those beside them are, and nothing that is held out."""
    with connect(engine) as connection:
        scored = "SELECT id FROM exemplar WHERE classifier_id = 1 AND split = 'scored' ORDER BY id"
        ids = list(connection.execute(text(scored)).scalars())
        given = {"classifier_id": 1, "exemplar_ids": ids[::2], "last_id": ids[-1], "most": len(ids)}
        nodes = explain(connection, str(statement("cascades.reached")), given, analyze=True)
    assert 0 < read(nodes, "exemplar") <= 3 * len(ids)
