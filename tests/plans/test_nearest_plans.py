"""One vector's neighbours: exactly by a scan of the training vectors, whatever indexes there are; else by the index."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.conftest import fresh_database
from tests.plans.plans import buffers, explain, kinds, scans
from tests.store.search.test_nearest import store_support
from venn_admit.core.types import Float32Array
from venn_admit.store.database.engine import connect, create_engine
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import hnsw
from venn_admit.store.search.nearest import MARGIN

ROWS, DIMENSION, K = 5000, 24, 25


def vectors(count: int, seed: int = 0) -> Float32Array:
    return np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    """Two classifiers, `one` and `other`, the former with an HNSW index."""
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        classifier, _ = store_support(found, "one", vectors(ROWS), K)
        store_support(found, "other", vectors(ROWS), K)
        hnsw.create(found, classifier, m=4, ef_construction=8)
        if request.param == "analysed":
            with found.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM (ANALYZE)")
        yield found
        found.dispose()


@pytest.fixture
def classifier(engine: Engine) -> Classifier:
    with connect(engine) as connection:
        return classifiers.by_name(connection, "one")


def parameters(classifier: Classifier) -> dict[str, Any]:
    return {
        "classifier_id": classifier.id,
        "vector": json.dumps(vectors(1, seed=1)[0].tolist()),
        "dimension": DIMENSION,
        "count": K + MARGIN,
        "reach": 5.0,
        "with_waiting": False,
    }


@pytest.mark.parametrize("preferring", ["nothing", "the index"])
@pytest.mark.parametrize("query", ["nearest.nearest", "nearest.within"])
def test_an_exact_search_scans_all(engine: Engine, classifier: Classifier, query: str, preferring: str) -> None:
    """Also where a search by the index went before in the transaction."""
    support = f"exemplar_vector_{classifier.id}_support"
    with connect(engine) as connection:
        if preferring == "the index":
            hnsw.prefer(connection, classifier, 40)
        nodes = explain(connection, str(statement(query)), parameters(classifier), analyze=True)
    assert not any("hnsw" in node.get("Index Name", "") for node in nodes)
    scanned = [
        node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) * node["Actual Loops"]
        for node in scans(nodes, support)
    ]
    assert ROWS in scanned
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {support, "exemplar", "classifier"}


def test_a_scan_that_leaves_none_out_checks_no_row(engine: Engine, classifier: Classifier) -> None:
    support, query = f"exemplar_vector_{classifier.id}_support", str(statement("nearest.nearest"))

    def has_condition(*, with_waiting: bool) -> bool:
        nodes = explain(connection, query, {**parameters(classifier), "with_waiting": with_waiting})
        return any("exemplar_id + 0" in node.get("Filter", "") for node in scans(nodes, support))

    with connect(engine) as connection:
        assert not has_condition(with_waiting=True)
        assert has_condition(with_waiting=False)


def test_a_search_by_the_index_scans_it(engine: Engine, classifier: Classifier) -> None:
    support = f"exemplar_vector_{classifier.id}_support"
    with connect(engine) as connection:
        hnsw.prefer(connection, classifier, 40)
        nodes = explain(connection, str(statement("nearest.nearest_by_hnsw")), parameters(classifier), analyze=True)
    assert ("Index Scan", f"{support}_hnsw_idx") in kinds(scans(nodes, support))
    assert nodes[0]["Actual Rows"] == K + MARGIN


@pytest.mark.parametrize("by_index", [True, False])
def test_what_is_known_of_the_nearest_is_read_by_key(engine: Engine, classifier: Classifier, *, by_index: bool) -> None:
    query = statement("nearest.nearest_by_hnsw" if by_index else "nearest.nearest")
    with connect(engine) as connection:
        if by_index:
            hnsw.prefer(connection, classifier, 40)
        nodes = explain(connection, str(query), parameters(classifier), analyze=True)
    looked_up = {"exemplar_pkey"} if by_index else {"exemplar_pkey", f"exemplar_vector_{classifier.id}_support_pkey"}
    # Before there are statistics, the scan of all may go by the key too.
    # The index of exemplars alone is as good as the key: a side has one classifier.
    names = {id(node): node.get("Index Name", "").replace("_exemplar_id_idx", "_pkey") for node in nodes}
    reads = [node for node in nodes if names[id(node)] in looked_up and node["Actual Loops"] > 1]
    assert {names[id(node)] for node in reads} == looked_up
    assert {node["Actual Loops"] for node in reads} == {K + MARGIN}
    # A descent of two or three pages, and the page of the row.
    assert all(buffers(node) <= 4 * (K + MARGIN) for node in reads)
