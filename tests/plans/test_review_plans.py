"""A claim reads as many points as it takes, however many wait, and what a reviewer holds is looked up."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.conftest import fresh_database, fresh_engine
from tests.plans.plans import explain, kinds, read, scans
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement

ROWS, FEW, COUNT = 10_000, 400, 7
FILL = (
    "INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)"
    " VALUES ('reviews', '{no,yes}', 2, 1, 0.1, 0.45, 0), ('other', '{no,yes}', 2, 1, 0.1, 0.45, 0)",
    "INSERT INTO exemplar (classifier_id, external_id, split, network_logits, network_predicted, content_digest)"
    " SELECT 1 + mod(n, 2), n, 'scored', '{0,1}', 1, decode(md5(n::text), 'hex')"
    f" FROM generate_series(1, {2 * ROWS}) AS n",
    "INSERT INTO review_point (exemplar_id, classifier_id, decision_id, lower, near_id)"
    " SELECT id, classifier_id, id, mod(id, 97) / 97.0, mod(id, 1000) FROM exemplar",
)


@pytest.fixture(scope="module")
def engine(server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            for query in FILL:
                connection.exec_driver_sql(query)
            for classifier in (1, 2):
                connection.execute(statement("reviews.arrange"), {"classifier_id": classifier})
        with found.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")
        yield found
        found.dispose()


@pytest.mark.parametrize("statistics", ["none", "of an empty table"])
def test_a_queue_is_arranged_by_look_ups(server_url: str, template_database: str, statistics: str) -> None:
    with fresh_engine(server_url, template_database) as empty, transaction(empty) as connection:
        if statistics != "none":
            connection.exec_driver_sql("ANALYZE")
        for query in FILL:
            connection.exec_driver_sql(query.replace(str(2 * ROWS), str(2 * FEW)))
        nodes = explain(connection, str(statement("reviews.arrange")), {"classifier_id": 1}, analyze=True)
    assert FEW <= read(nodes, "review_point") <= 4 * FEW


def test_a_claim_reads_what_it_takes(engine: Engine) -> None:
    parameters = {"classifier_id": 2, "reviewer": "anna", "count": COUNT, "lease_seconds": 60.0, "again": False}
    with connect(engine) as connection:
        nodes = explain(connection, str(statement("reviews.claim")), parameters, analyze=True)
        connection.rollback()
    assert nodes[0]["Actual Rows"] == COUNT
    # Each row, and once more to update it.
    for index in ("review_point_place_idx", "review_point_pkey"):
        assert read([node for node in nodes if node.get("Index Name") == index], "review_point") == COUNT


@pytest.mark.parametrize(
    ("name", "index"), [("held", "held_idx"), ("lock_held", "held_idx"), ("renew", "pkey"), ("release", "pkey")]
)
def test_what_is_held_is_looked_up(engine: Engine, name: str, index: str) -> None:
    of_reviewer = {"classifier_id": 2, "reviewer": "anna"}
    parameters: dict[str, Any] = {**of_reviewer, "lease_seconds": 60.0, "external_ids": None, "to_others": False}
    with connect(engine) as connection:
        connection.execute(
            statement("reviews.claim"), {**of_reviewer, "count": COUNT, "lease_seconds": 60, "again": False}
        )
        held = connection.execute(statement("reviews.lock_held"), {**of_reviewer, "external_ids": None})
        parameters["exemplar_ids"] = list(held.scalars())
        assert len(parameters["exemplar_ids"]) == COUNT
        nodes = explain(connection, str(statement(f"reviews.{name}")), parameters, analyze=True)
        connection.rollback()
    assert {of for _, of in kinds(scans(nodes, "review_point"))} >= {f"review_point_{index}"}
    assert read(nodes, "review_point") <= 3 * COUNT


def test_points_without_a_place_are_looked_up_with_their_near_duplicates(engine: Engine) -> None:
    with connect(engine) as connection:
        connection.exec_driver_sql("UPDATE review_point SET place = NULL, lower = 2 WHERE exemplar_id = 1002")
        nodes = explain(connection, str(statement("reviews.arrange")), {"classifier_id": 1}, analyze=True)
        connection.rollback()
    groups = [node for node in nodes if node.get("Index Name") == "review_point_near_idx"]
    assert read(groups, "review_point") == 2 * ROWS // 1000
    assert read(nodes, "review_point") <= 4 * 2 * ROWS // 1000
