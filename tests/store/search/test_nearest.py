"""The nearest training exemplars by SQL are those of the arrays: ids, order, and every bit of the distances."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from sqlalchemy import Connection, Engine, text

from tests.running import Golden
from tests.store.exemplars.test_exemplars import rows, store
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.support import renew
from venn_admit.store.search.nearest import MARGIN, NearestExemplars, exact_nearest


@pytest.fixture(scope="module")
def engine(shared_engine: Engine) -> Engine:
    """A database for all tests here, each with a classifier of its own."""
    return shared_engine


def make_classifier(connection: Connection, name: str, dimension: int, neighbour_count: int) -> Classifier:
    return classifiers.create(
        connection,
        name=name,
        class_names=("no", "yes"),
        dimension=dimension,
        neighbour_count=neighbour_count,
        knn_share=Decimal("0.1"),
        mc_share=Decimal("0.45"),
        seed=0,
    )


def store_support(
    engine: Engine, name: str, support: Float32Array, neighbour_count: int
) -> tuple[Classifier, IntArray]:
    """A classifier with these training exemplars; their ids."""
    with transaction(engine) as connection:
        classifier = make_classifier(connection, name, support.shape[1], neighbour_count)
        names = [f"{row}" for row in range(len(support))]
        incoming = replace(rows(names, Split.TRAIN, [row % 2 for row in range(len(support))]), vectors=support)
        ids = store(connection, classifier, incoming).ids
        renew(connection, classifier, int(ids.max()))
        return classifiers.by_id(connection, classifier.id), ids


def let_wait(engine: Engine, classifier: Classifier, known: int) -> None:
    """Make all training exemplars with a higher id than this wait."""
    with transaction(engine) as connection:
        renew(connection, classifier, known)


def search(engine: Engine, classifier: Classifier, queries: Float32Array) -> list[NearestExemplars]:
    with connect(engine) as connection:
        return [exact_nearest(connection, classifier, query) for query in queries]


def assert_exact(engine: Engine, name: str, queries: Float32Array, support: Float32Array, k: int) -> None:
    classifier, ids = store_support(engine, name, support, k)
    found = search(engine, classifier, queries)
    expected = exact_neighbours(queries, support, k)
    np.testing.assert_array_equal([near.ids for near in found], ids[expected.indices])
    np.testing.assert_array_equal([near.distances for near in found], expected.distances)
    np.testing.assert_array_equal([near.labels for near in found], expected.indices % 2)


@pytest.mark.parametrize("dimension", [1, 3, 128, 2000, 2001, 4096])
def test_of_every_length(engine: Engine, dimension: int) -> None:
    generator = np.random.default_rng(dimension)
    support = generator.normal(size=(150, dimension)).astype(np.float32)
    queries = np.concatenate((support[:3], generator.normal(size=(5, dimension)).astype(np.float32)))
    assert_exact(engine, f"of length {dimension}", queries, support, 10)


@pytest.mark.parametrize("exponent", [-149, -100, -63, 0, 63, 100])
def test_ties_at_every_scale_go_to_the_lower_id(engine: Engine, exponent: int) -> None:
    """Integers times a power of two: hundreds of equal distances, squares that float32 cannot hold or tell from 0."""
    generator = np.random.default_rng(0)
    scale = np.float32(2.0**exponent)
    support = generator.integers(-2, 3, (400, 4)).astype(np.float32) * scale
    queries = generator.integers(-2, 3, (10, 4)).astype(np.float32) * scale
    assert_exact(engine, f"scale {exponent}", queries, support, 25)


@pytest.mark.parametrize(
    ("query_scale", "support_scale"), [(3e38, 3e38), (3e38, 1.0), (1e-38, 3e38), (1e-44, 1e-44), (1.0, 0.0)]
)
def test_float32_distances_may_overflow_or_underflow(engine: Engine, query_scale: float, support_scale: float) -> None:
    generator = np.random.default_rng(0)
    queries = (generator.uniform(-1, 1, (5, 6)) * query_scale).astype(np.float32)
    support = (generator.uniform(-1, 1, (80, 6)) * support_scale).astype(np.float32)
    assert_exact(engine, f"{query_scale} in {support_scale}", queries, support, 3)


@pytest.mark.parametrize("dimension", [8, 512, 2000])
def test_what_float32_arithmetic_misplaces_is_found(engine: Engine, dimension: int) -> None:
    """All exemplars at nearly one distance, closer to each other than float32 sums can tell."""
    generator = np.random.default_rng(0)
    support = np.ones((300, dimension), dtype=np.float32)
    support += generator.integers(-3, 4, support.shape) * np.float32(2.0**-23)
    queries = np.zeros((5, dimension), dtype=np.float32)
    queries[:, 0] = np.arange(5)
    classifier, ids = store_support(engine, f"close in {dimension}", support, 25)
    with connect(engine) as connection:
        by_pgvector = connection.execute(
            text(
                "SELECT exemplar_id FROM exemplar_vector WHERE classifier_id = :id AND support"
                " ORDER BY vector <-> CAST(:vector AS vector), exemplar_id LIMIT 25"
            ),
            {"id": classifier.id, "vector": str(queries[0].tolist())},
        ).scalars()
        proposed = set(by_pgvector)
    (near, *_) = search(engine, classifier, queries)
    expected = exact_neighbours(queries, support, 25)
    np.testing.assert_array_equal(near.ids, ids[expected.indices[0]])
    np.testing.assert_array_equal(near.distances, expected.distances[0])
    assert proposed != set(near.ids.tolist()), "pgvector alone is right: the test shows nothing"


@pytest.mark.parametrize("name", ["edge", "sentiment"])
def test_the_golden_neighbours(engine: Engine, name: str) -> None:
    golden = Golden(name)
    support, queries = (golden[f"{part}_r"].astype(np.float32) for part in ("train", "score"))
    classifier, ids = store_support(engine, name, support, int(golden["K"]))
    found = search(engine, classifier, queries)
    np.testing.assert_array_equal([near.ids for near in found], ids[golden["score_neighbours"]])
    expected = exact_neighbours(queries, support, int(golden["K"]))
    np.testing.assert_array_equal([near.distances for near in found], expected.distances)


@pytest.mark.parametrize("total", [3, 4, 3 + MARGIN, 4 + MARGIN])
def test_few_training_exemplars_are_enough(engine: Engine, total: int) -> None:
    support = np.random.default_rng(total).normal(size=(total, 2)).astype(np.float32)
    assert_exact(engine, f"{total} exemplars", support[:2], support, 3)


def test_too_few_are_counted(engine: Engine) -> None:
    classifier, _ = store_support(engine, "too few", np.zeros((2, 2), dtype=np.float32), 3)
    with pytest.raises(NotReadyError, match=r"has 2 training exemplars.* K = 3"):
        search(engine, classifier, np.zeros((1, 2), dtype=np.float32))


def test_none_at_all_is_counted(engine: Engine) -> None:
    with transaction(engine) as connection:
        classifier = make_classifier(connection, "none", 2, 3)
    with pytest.raises(NotReadyError, match="has 0 training exemplars"):
        search(engine, classifier, np.zeros((1, 2), dtype=np.float32))


@pytest.mark.parametrize(
    "vector", [np.zeros(3, np.float32), np.zeros(2), np.zeros((1, 2), np.float32), np.array([0, np.nan], np.float32)]
)
def test_another_vector_is_refused(engine: Engine, vector: Float32Array) -> None:
    with transaction(engine) as connection:
        classifier = make_classifier(connection, f"refusing {vector.shape} {vector.dtype} {vector.sum()}", 2, 3)
        with pytest.raises(InvalidInputError, match=r"expected a finite float32 vector .* of shape \(2,\), got"):
            exact_nearest(connection, classifier, vector)


@pytest.mark.parametrize("waiting", ["the nearest", "the farthest", "every other"])
def test_those_that_wait_are_no_neighbours(engine: Engine, waiting: str) -> None:
    """Wherever they are: each query is searched for exactly, as if only the others were stored."""
    known, count, k = 100, 200, 10
    generator = np.random.default_rng(7)
    support = generator.normal(size=(count, 5)).astype(np.float32)
    scale = {"the nearest": 0.01, "the farthest": 100, "every other": 1}[waiting]
    support[known:] *= np.float32(scale)
    classifier, ids = store_support(engine, f"{waiting} wait", support, k)
    let_wait(engine, classifier, int(ids[known - 1]))
    queries = generator.normal(size=(20, 5)).astype(np.float32) * np.float32(0.1)
    found = search(engine, classifier, queries)
    expected = exact_neighbours(queries, support[:known], k)
    np.testing.assert_array_equal([near.ids for near in found], ids[expected.indices])
    np.testing.assert_array_equal([near.distances for near in found], expected.distances)


def test_fewer_than_k_that_do_not_wait_are_too_few(engine: Engine) -> None:
    support = np.arange(40, dtype=np.float32).reshape(20, 2)
    classifier, ids = store_support(engine, "nearly all wait", support, 10)
    let_wait(engine, classifier, int(ids[8]))
    with pytest.raises(NotReadyError, match="has 9 training exemplars, but its KNN needs at least K = 10"):
        search(engine, classifier, support[:1])
