"""Whose neighbour lists hold some training exemplars is found by the index, statistics or none."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from sqlalchemy import Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import buffers, explain, kinds, scans
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import classifiers

POINTS, SUPPORT, K = 50_000, 20_000, 25
ROWS = f"""
INSERT INTO exemplar (id, classifier_id, external_id, split, network_logits, network_predicted, content_digest)
SELECT n, :classifier_id, n::text, 'scored', '{{0, 1}}', 1, ''
FROM generate_series(1, {POINTS}) AS n;
"""
LISTS = f"""
INSERT INTO neighbours (exemplar_id, support_version, neighbour_ids, distances)
SELECT n, {POINTS} + {SUPPORT}, listed.ids, array_fill(0::float8, ARRAY[{K}])
FROM generate_series(1, {POINTS}) AS n
CROSS JOIN LATERAL (
    SELECT array_agg(({POINTS} + (n::bigint * 7919 + k * 104729) % {SUPPORT})) AS ids
    FROM generate_series(1, {K}) AS k
) AS listed;
"""


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            classifier = classifiers.create(
                connection,
                name="one",
                class_names=("a", "b"),
                dimension=2,
                neighbour_count=K,
                knn_share=Decimal("0.1"),
                mc_share=Decimal("0.45"),
                seed=0,
            )
            connection.exec_driver_sql("ALTER TABLE neighbours SET (autovacuum_enabled = false)")
            connection.execute(text(ROWS), {"classifier_id": classifier.id})
            connection.execute(text(LISTS))
        with found.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # What autovacuum does in time: entries wait beside the index until then.
            connection.exec_driver_sql("VACUUM neighbours")
            if request.param == "analysed":
                connection.exec_driver_sql("ANALYZE")
        yield found
        found.dispose()


@pytest.mark.parametrize("removed", [1, 20])
def test_lists_are_found_by_what_they_hold(engine: Engine, removed: int) -> None:
    ids = [POINTS + 11 * one for one in range(removed)]
    parameters = {"neighbour_ids": ids, "support_version": POINTS + SUPPORT + 1}
    query = statement("approximations.outdated_neighbours_holding").text
    with connect(engine) as connection:
        found = connection.execute(text(query), parameters).scalars().all()
        nodes = explain(connection, query, parameters, analyze=True)
        holding = text("SELECT count(*) FROM neighbours WHERE neighbour_ids && CAST(:neighbour_ids AS bigint[])")
        assert len(found) == connection.execute(holding, parameters).scalar_one() > 0
    assert ("Bitmap Index Scan", "neighbours_neighbour_ids_idx") in kinds(scans(nodes, "neighbours"))
    assert buffers(nodes[0]) < 2 * len(found) + 100


@pytest.mark.parametrize("changed", [1, 20])
def test_points_that_rest_on_some_exemplars_are_found_by_their_lists(engine: Engine, changed: int) -> None:
    parameters = {"neighbour_ids": [POINTS + 11 * one for one in range(changed)], "calibration_id": 1}
    with connect(engine) as connection:
        nodes = explain(connection, statement("what_if.resting_on").text, parameters, analyze=True)
        holding = text("SELECT count(*) FROM neighbours WHERE neighbour_ids && CAST(:neighbour_ids AS bigint[])")
        count = connection.execute(holding, parameters).scalar_one()
    assert ("Bitmap Index Scan", "neighbours_neighbour_ids_idx") in kinds(scans(nodes, "neighbours"))
    # For each point its list, its exemplar, and whether there is a decision.
    assert 0 < buffers(nodes[0]) < 10 * count + 200
