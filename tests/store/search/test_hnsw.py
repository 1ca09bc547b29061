"""The HNSW index: made, found and removed; what it proposes is measured exactly, and exact searches ignore it."""

import math
import re

import numpy as np
import psycopg
import pytest
from sqlalchemy import Engine, event, text

from tests.store.search.test_nearest import make_classifier, store_support
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Float32Array
from venn_admit.errors import ConflictError, InvalidInputError, NotFoundError, NotReadyError
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.search import hnsw
from venn_admit.store.search.hnsw import DIMENSION_LIMIT
from venn_admit.store.search.nearest import exact_nearest, hnsw_nearest

ROWS, DIMENSION, K = 3000, 24, 10


@pytest.fixture(scope="module")
def engine(shared_engine: Engine) -> Engine:
    """A database for all tests here, each with a classifier of its own."""
    return shared_engine


def vectors(count: int, seed: int = 0) -> Float32Array:
    return np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)


def test_searches_by_a_poor_index_and_exact_ones(engine: Engine) -> None:
    """In one transaction, in turns: the index misses neighbours, measures those it has exactly, and changes nothing."""
    support, queries = vectors(ROWS), vectors(40, seed=1)
    classifier, ids = store_support(engine, "poor", support, K)
    hnsw.create(engine, classifier, m=2, ef_construction=4)
    expected = exact_neighbours(queries, support, K)
    row_of = {exemplar_id: row for row, exemplar_id in enumerate(ids.tolist())}
    missed = 0
    with connect(engine) as connection:
        for query, indices, distances in zip(queries, expected.indices, expected.distances, strict=True):
            by_index = hnsw_nearest(connection, classifier, query, K)
            exact = exact_nearest(connection, classifier, query)
            np.testing.assert_array_equal(exact.ids, ids[indices])
            np.testing.assert_array_equal(exact.distances, distances)

            rows = np.array([row_of[exemplar_id] for exemplar_id in by_index.ids.tolist()])
            one_by_one = exact_neighbours(query[None], support[np.sort(rows)], K)
            np.testing.assert_array_equal(rows, np.sort(rows)[one_by_one.indices[0]])
            np.testing.assert_array_equal(by_index.distances, one_by_one.distances[0])
            np.testing.assert_array_equal(by_index.labels, rows % 2)
            missed += len(np.setdiff1d(exact.ids, by_index.ids))
    assert missed > len(queries), "the index is too good: an exact search by it would pass"


def test_a_wide_search_by_a_good_index_misses_nothing(engine: Engine) -> None:
    support, queries = vectors(ROWS), vectors(20, seed=1)
    classifier, ids = store_support(engine, "good", support, K)
    hnsw.create(engine, classifier, m=32, ef_construction=200)
    expected = exact_neighbours(queries, support, K)
    with connect(engine) as connection:
        found = [hnsw_nearest(connection, classifier, query, 1000) for query in queries]
    np.testing.assert_array_equal([near.ids for near in found], ids[expected.indices])
    np.testing.assert_array_equal([near.distances for near in found], expected.distances)


def test_its_life(engine: Engine) -> None:
    classifier, _ = store_support(engine, "life", vectors(100), K)
    with connect(engine) as connection:
        assert hnsw.find(connection, classifier) is None
    with pytest.raises(NotFoundError, match="'life' has no HNSW index"):
        hnsw.drop(engine, classifier)
    made = hnsw.create(engine, classifier, m=3, ef_construction=7)
    assert (made.m, made.ef_construction) == (3, 7)
    assert made.size > 0
    with pytest.raises(ConflictError, match="m = 3, ef_construction = 7; to make another, drop it first"):
        hnsw.create(engine, classifier, m=3, ef_construction=7)
    hnsw.drop(engine, classifier)
    with connect(engine) as connection:
        assert hnsw.find(connection, classifier) is None


def test_building_takes_about_the_memory_that_is_said(engine: Engine) -> None:
    """The server says after how many vectors what it may take was full."""
    classifier, _ = store_support(engine, "memory", vectors(ROWS), K)
    said: list[str] = []

    def hear(opened: psycopg.Connection[object], _: object) -> None:
        opened.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))

    own = create_engine(engine.url.render_as_string(hide_password=False))
    event.listen(own, "connect", hear)
    with connect(own) as connection:
        allowed = connection.execute(text("SHOW maintenance_work_mem")).scalar_one()
        building = hnsw.build_memory(connection, classifier, m=16)
    hnsw.create(own, classifier, m=16, ef_construction=64, memory_mb=1)
    (full,) = [re.findall(r"after (\d+) tuples", text) for text in said if "no longer fits" in text]
    assert building.needed_mb == math.ceil(ROWS / int(full[0]))
    with connect(own) as connection:
        assert connection.execute(text("SHOW maintenance_work_mem")).scalar_one() == allowed
    own.dispose()


@pytest.mark.parametrize("memory_mb", [0, 1 << 21])
def test_memory_that_cannot_be_allowed(engine: Engine, memory_mb: int) -> None:
    classifier, _ = store_support(engine, f"memory {memory_mb}", vectors(100), K)
    with pytest.raises(InvalidInputError, match="memory: expected 1 to 2,097,151 MiB"):
        hnsw.create(engine, classifier, m=16, ef_construction=64, memory_mb=memory_mb)


def test_what_an_interrupted_attempt_left_is_no_index_and_is_replaced(engine: Engine) -> None:
    classifier, _ = store_support(engine, "interrupted", vectors(100), K)
    hnsw.create(engine, classifier, m=3, ef_construction=7)
    with transaction(engine) as connection:
        index = f"exemplar_vector_{classifier.id}_support_hnsw_idx"
        connection.execute(
            text("UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = to_regclass(:index)"), {"index": index}
        )
    with connect(engine) as connection:
        assert hnsw.find(connection, classifier) is None
        with pytest.raises(NotReadyError, match="has no HNSW index: create it"):
            hnsw_nearest(connection, classifier, vectors(1)[0], K)
    assert hnsw.create(engine, classifier, m=4, ef_construction=8).m == 4


def test_limits_are_set_aside_only_while_it_is_made(engine: Engine) -> None:
    url = engine.url.difference_update_query(["options"]).render_as_string(hide_password=False)
    limited = create_engine(url, lock_timeout_seconds=7)
    try:
        classifier, _ = store_support(engine, "limited", vectors(ROWS), K)
        hnsw.create(limited, classifier, m=16, ef_construction=64)
        with connect(limited) as connection:
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "7s"
            assert connection.exec_driver_sql("SHOW search_path").scalar_one() == "venn_admit,public"
    finally:
        limited.dispose()


def test_longer_vectors_cannot_be_indexed(engine: Engine) -> None:
    with transaction(engine) as connection:
        longest = make_classifier(connection, "longest", DIMENSION_LIMIT, K)
        longer = make_classifier(connection, "longer", DIMENSION_LIMIT + 1, K)
    assert hnsw.create(engine, longest, m=16, ef_construction=64).m == 16
    with pytest.raises(InvalidInputError, match="2001 dimensions, pgvector's HNSW index accepts 2000 at most"):
        hnsw.create(engine, longer, m=16, ef_construction=64)


@pytest.mark.parametrize(("m", "ef_construction"), [(1, 64), (101, 300), (16, 31), (16, 1001)])
def test_other_parameters_are_refused(engine: Engine, m: int, ef_construction: int) -> None:
    with transaction(engine) as connection:
        classifier = make_classifier(connection, f"refusing {m} {ef_construction}", DIMENSION, K)
    with pytest.raises(InvalidInputError, match="expected m from 2 to 100 and ef_construction from twice m to 1000"):
        hnsw.create(engine, classifier, m=m, ef_construction=ef_construction)


@pytest.mark.parametrize("ef_search", [0, K - 1, 1001])
def test_another_width_of_search_is_refused(engine: Engine, ef_search: int) -> None:
    with transaction(engine) as connection:
        classifier = make_classifier(connection, f"width {ef_search}", DIMENSION, K)
        with pytest.raises(InvalidInputError, match=f"expected ef_search from K = 10 to 1000, got {ef_search}"):
            hnsw_nearest(connection, classifier, vectors(1)[0], ef_search)


def test_too_few_proposals_are_no_result(engine: Engine) -> None:
    """What was removed still takes the search's places, until a vacuum."""
    support = vectors(500)
    classifier, ids = store_support(engine, "removed", support, K)
    hnsw.create(engine, classifier, m=16, ef_construction=64)
    nearest = exact_neighbours(support[:1], support, 400)
    with transaction(engine) as connection:
        connection.execute(
            text("DELETE FROM exemplar_vector WHERE classifier_id = :id AND exemplar_id = ANY(:ids)"),
            {"id": classifier.id, "ids": ids[nearest.indices[0]].tolist()},
        )
        with pytest.raises(NotReadyError, match="proposed 0 exemplars, expected K = 10 at least"):
            hnsw_nearest(connection, classifier, support[0], K)
        assert len(exact_nearest(connection, classifier, support[0]).ids) == K
