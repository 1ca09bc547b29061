"""One vector's nearest training exemplars, exactly, by HNSW and in a process's copy, against pgvector's bare statement.

The bare statement gives 25 ids in the order of float32 distances. Ours gives float64 distances, labels and logits of
the same number, and exactly it certifies that they are the nearest. The vectors have no structure, which is the
hardest case for an index; those that are searched in a copy have the structure that networks give them.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from sqlalchemy import Engine, text

from benchmarks.data import draw_vectors, draw_view, generator
from benchmarks.measure import Measurement
from benchmarks.storage import database, folder
from tests.running import workspace
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.decisions.point_search import POINTS_BY_SCAN, PointSearch
from venn_admit.methods.method import NotKeptError
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import hnsw, nearest
from venn_admit.store.search.array_cache import ArrayCache

_DIMENSION, _CLASS_COUNT, _NEIGHBOUR_COUNT = 384, 3, 25
_QUERIES = 200
_EF_SEARCHES = (40, 100, 400)

Search = Callable[[Float32Array], IntArray]


def measure(large: bool) -> Iterator[Measurement]:
    total = 100_000 if large else 10_000
    with folder() as files, database(files / "home") as engine:
        vectors = generator().standard_normal((total + _QUERIES, _DIMENSION), dtype=np.float32)
        classifier = _store(engine, files, vectors[_QUERIES:])
        hnsw.create(engine, classifier, m=16, ef_construction=64)
        _vacuum(engine)
        yield from _measure(engine, classifier, vectors[:_QUERIES], f"{total:,}, D={_DIMENSION}")
    yield from measure_copy(total)


def measure_copy(total: int) -> Iterator[Measurement]:
    """Compare the search in a copy with the bare statement, of a support of `total` rows with leading components."""
    with folder() as files, database(files / "home") as engine:
        vectors = draw_vectors(total + _QUERIES, _DIMENSION)
        classifier, queries = _store(engine, files, vectors[_QUERIES:]), vectors[:_QUERIES]
        _vacuum(engine)
        search = PointSearch(workspace(engine, ArrayCache(files / "cache")))
        _await_copy(engine, search, classifier, queries)

        def in_copy(query: Float32Array) -> IntArray:
            return search.nearest(None, classifier, [query])[0].ids

        size, bare = f"{total:,}, D={_DIMENSION}", partial(_bare, engine, classifier, None)
        truth = [_ours(engine, classifier, None, query) for query in queries]
        yield from _compare("nearest, in a copy", size, queries, truth, in_copy, bare)


def _await_copy(engine: Engine, search: PointSearch, classifier: Classifier, queries: Float32Array) -> None:
    with connect(engine) as connection:
        search.nearest(connection, classifier, list(queries[:POINTS_BY_SCAN]))
    while True:
        try:
            search.nearest(None, classifier, [queries[0]])
        except NotKeptError:
            time.sleep(0.1)
        else:
            return


def _vacuum(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")


def _store(engine: Engine, files: Path, support: Float32Array) -> Classifier:
    view, label = draw_view(generator(), len(support), _CLASS_COUNT, _NEIGHBOUR_COUNT)
    path = files / "train.npz"
    np.savez(path, r=support, f=view.logits.astype(np.float32), y=label)
    names = tuple(map(str, range(_CLASS_COUNT)))
    create(engine, "bench", names, dimension=_DIMENSION, neighbour_count=_NEIGHBOUR_COUNT, seed=0)
    ingest(engine, "bench", FileSource(path), Split.TRAIN)
    with connect(engine) as connection:
        return classifiers.by_name(connection, "bench")


def _measure(engine: Engine, classifier: Classifier, queries: Float32Array, size: str) -> Iterator[Measurement]:
    exact = partial(_ours, engine, classifier, None)
    truth = [exact(query) for query in queries]
    yield from _compare("nearest, exact", size, queries, truth, exact, partial(_bare, engine, classifier, None))
    for ef_search in _EF_SEARCHES:
        yield from _compare(
            f"nearest, HNSW {ef_search}",
            size,
            queries,
            truth,
            partial(_ours, engine, classifier, ef_search),
            partial(_bare, engine, classifier, ef_search),
        )


@dataclass(frozen=True, slots=True)
class _Timed:
    """Seconds of each query, and what it found."""

    seconds: float
    ids: IntArray


def _compare(
    what: str, size: str, queries: Float32Array, truth: list[IntArray], ours: Search, bare: Search
) -> Iterator[Measurement]:
    """The medians and the 99th percentiles of both; the ratio of the medians' line is of query by query."""
    pairs = []
    for turn, query in enumerate(queries):
        if turn % 2:
            later, first = _time(bare, query), _time(ours, query)
            pairs.append((first, later))
        else:
            pairs.append((_time(ours, query), _time(bare, query)))
    mine, other = (np.array([pair[side].seconds for pair in pairs]) for side in (0, 1))
    found = [pair[0].ids for pair in pairs]
    recall = np.mean([np.isin(right, ids).mean() for right, ids in zip(truth, found, strict=True)])
    wrong = np.mean([right[0] != ids[0] for right, ids in zip(truth, found, strict=True)])
    line = Measurement(
        what=f"{what}, p50",
        size=size,
        against="bare ORDER BY vector <-> v LIMIT 25",
        ours=float(np.median(mine)),
        peer=float(np.median(other)),
        ratio=float(np.median(other / mine)),
        note=f"recall {recall:.3f}, nearest wrong {wrong:.1%}",
    )
    yield line
    p99, p99_bare = (float(np.percentile(seconds, 99)) for seconds in (mine, other))
    yield replace(line, what=f"{what}, p99", ours=p99, peer=p99_bare, ratio=p99_bare / p99, note="")


def _time(search: Search, query: Float32Array) -> _Timed:
    start = time.perf_counter()
    ids = search(query)
    return _Timed(time.perf_counter() - start, ids)


def _ours(engine: Engine, classifier: Classifier, ef_search: int | None, query: Float32Array) -> IntArray:
    with connect(engine) as connection:
        if ef_search is None:
            return nearest.exact_nearest(connection, classifier, query).ids
        return nearest.hnsw_nearest(connection, classifier, query, ef_search).ids


def _bare(engine: Engine, classifier: Classifier, ef_search: int | None, query: Float32Array) -> IntArray:
    vector = "vector" if ef_search is None else f"CAST(vector AS vector({classifier.dimension}))"
    statement = text(
        f"SELECT exemplar_id FROM exemplar_vector_{classifier.id}_support"
        f" ORDER BY {vector} <-> CAST(:query AS vector) LIMIT {_NEIGHBOUR_COUNT}"
    )
    with connect(engine) as connection:
        if ef_search is not None:
            connection.exec_driver_sql(f"SET LOCAL hnsw.ef_search = {ef_search}")
        found = connection.execute(statement, {"query": json.dumps(query.tolist())}).scalars()
        return np.array(found.all())
