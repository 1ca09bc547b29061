"""Vectors are read from the partition they are in, and by id through its key: statistics or none."""

import json
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pytest
from sqlalchemy import Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import buffers, explain, scans
from venn_admit.core.content import content_digests
from venn_admit.core.split_names import Split
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import classifiers, exemplars, storing, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.storing import IncomingExemplars

ROWS, DIMENSION = 8_000, 64


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    """Two classifiers, `one` and `other`, each with as many training as held-out exemplars."""
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with found.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for name in ("one", "other"):
                store(found, name)
            if request.param == "analysed":
                connection.exec_driver_sql("VACUUM (ANALYZE)")
        yield found
        found.dispose()


def store(engine: Engine, name: str) -> None:
    rng = np.random.default_rng(len(name))
    logits = rng.normal(size=(ROWS, 2)).astype(np.float32)
    vectors = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
    with transaction(engine) as connection:
        classifier = classifiers.create(
            connection,
            name=name,
            class_names=("a", "b"),
            dimension=DIMENSION,
            neighbour_count=5,
            knn_share=Decimal("0.1"),
            mc_share=Decimal("0.45"),
            seed=0,
        )
        for side in ("support", "held_out"):
            # Nothing but the test itself analyses.
            connection.exec_driver_sql(
                f"ALTER TABLE exemplar_vector_{classifier.id}_{side} SET (autovacuum_enabled = false)"
            )
        stored = storing.store(
            connection,
            classifier,
            IncomingExemplars(
                first_row=0,
                external_ids=[f"{row}" for row in range(ROWS)],
                document_ids=[None] * ROWS,
                splits=[Split.TRAIN, Split.VP] * (ROWS // 2),
                vectors=vectors,
                logits=logits,
                predicted=logits.argmax(axis=1),
                labels=logits.argmax(axis=1),
                attributes=[{}] * ROWS,
                digests=content_digests(vectors, logits, [None] * ROWS),
                point_digests=content_digests(vectors, logits, [None] * ROWS),
            ),
            selection="random",
            source="test",
        )
        support.renew(connection, classifier, int(stored.ids.max()))


def classifier_ids(engine: Engine) -> tuple[Classifier, list[int]]:
    """The classifier `one`, and the ids of its exemplars."""
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, "one")
        query = text("SELECT id FROM exemplar WHERE classifier_id = :id ORDER BY id")
        return classifier, list(connection.execute(query, {"id": classifier.id}).scalars())


def test_the_support_is_read_from_its_partition(engine: Engine) -> None:
    """Each block through the key: what is sorted is a block, never the whole."""
    classifier, _ = classifier_ids(engine)
    table, block_rows = f"exemplar_vector_{classifier.id}_support", 500
    with connect(engine) as connection:
        ids = exemplars.support_ids(connection, classifier)
        parameters = {
            "classifier_id": classifier.id,
            "first_ids": ids[::block_rows].tolist(),
            "last_ids": ids[block_rows - 1 :: block_rows].tolist(),
        }
        query = str(statement("exemplars.support_vectors"))
        nodes = explain(connection, query, parameters, analyze=True)
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {table}
    (index,) = {node["Index Name"] for node in nodes if "Index Name" in node}
    assert index in (f"{table}_pkey", f"{table}_exemplar_id_idx")
    (read,) = (node for node in nodes if node.get("Relation Name") == table)
    assert (read["Actual Loops"], read["Actual Rows"]) == (ROWS / 2 / block_rows, block_rows)
    sorts = [node for node in nodes if node["Node Type"] == "Sort" and node["Actual Rows"] > 1]
    assert all(node["Actual Rows"] <= block_rows and node["Sort Space Type"] == "Memory" for node in sorts)


@pytest.mark.parametrize("count", [1, 2048])
def test_by_id_through_the_keys(engine: Engine, count: int) -> None:
    classifier, ids = classifier_ids(engine)
    wanted = np.random.default_rng(1).permutation(ids)[:count].tolist()
    with connect(engine) as connection:
        query = str(statement("exemplars.vectors"))
        nodes = explain(connection, query, {"classifier_id": classifier.id, "exemplar_ids": wanted}, analyze=True)
    for side in ("support", "held_out"):
        table = f"exemplar_vector_{classifier.id}_{side}"
        (read,) = scans(nodes, table)
        # Each side has one classifier and one kind, so that the index of exemplars alone is as good as the key.
        assert read["Node Type"] == "Index Scan"
        assert read["Index Name"] in (f"{table}_pkey", f"{table}_exemplar_id_idx")
        assert "exemplar_id" in read["Index Cond"]
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {
        f"exemplar_vector_{classifier.id}_{side}" for side in ("support", "held_out")
    }
    assert nodes[0]["Actual Rows"] == count
    # Two descents of at most three pages, and the page of the row.
    assert buffers(nodes[0]) <= 7 * count + 10
    # The order asked for comes from the list of ids: nothing as large as vectors is sorted.
    assert "Sort" not in {node["Node Type"] for node in nodes}


@pytest.mark.parametrize("known", [True, False])
def test_copies_through_the_index_of_their_digests(engine: Engine, known: bool) -> None:
    """Whether there are any or not."""
    classifier, ids = classifier_ids(engine)
    count = 500
    with connect(engine) as connection:
        query = text("SELECT content_digest FROM exemplar WHERE id = ANY(:ids)")
        stored = [bytes(one) for one in connection.execute(query, {"ids": ids[:count]}).scalars()]
        digests = b"".join(one if known else one[::-1] for one in stored)
        parameters = {"classifier_id": classifier.id, "digests": digests}
        nodes = explain(connection, str(statement("copies.of_contents")), parameters, analyze=True)
    assert {node["Index Name"] for node in nodes if "Index Name" in node} == {"exemplar_copy_idx"}
    assert {node["Node Type"] for node in nodes}.isdisjoint({"Seq Scan", "Sort"})
    assert nodes[0]["Actual Rows"] == (count if known else 0)
    # Both sides descend at most three pages and read the page of a row.
    assert buffers(nodes[0]) <= 8 * count + 10


def test_equal_documents_are_looked_up_by_their_digests(engine: Engine) -> None:
    """Once each, and what is found is sorted and not compared with each other."""
    classifier, ids = classifier_ids(engine)
    count = 500
    with connect(engine) as connection:
        query = text("SELECT external_id FROM exemplar WHERE id = ANY(:ids) AND split IN ('knn', 'mc', 'vp')")
        keys = list(connection.execute(query, {"ids": ids}).scalars())[:count]
        parameters = {"classifier_id": classifier.id, "document_keys": keys}
        nodes = explain(connection, str(statement("copies.equal_documents")), parameters, analyze=True)
    assert len(keys) == count
    (looked_up,) = [node for node in nodes if node.get("Index Name") == "exemplar_copy_idx"]
    assert "point_digest" in looked_up["Index Cond"]
    assert looked_up["Actual Loops"] == count
    assert sum(node.get("Rows Removed by Join Filter", 0) for node in nodes) <= count


@pytest.mark.parametrize("splits", [["train"], ["knn", "mc", "vp"]])
def test_documents_are_looked_up_by_their_index(engine: Engine, splits: list[str]) -> None:
    classifier, _ = classifier_ids(engine)
    documents = json.dumps([f"document {number}" for number in range(500)])
    with connect(engine) as connection:
        parameters = {"classifier_id": classifier.id, "document_ids": documents, "splits": splits}
        nodes = explain(connection, str(statement("copies.of_documents")), parameters, analyze=True)
    (looked_up,) = scans(nodes, "exemplar")
    assert looked_up["Node Type"] in ("Index Scan", "Index Only Scan")
    assert "document_id" in looked_up["Index Cond"]
    assert looked_up["Actual Loops"] == 500
