"""An HNSW index for deciding on one point: making and removing it, and whether decisions are the same with it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sqlalchemy import Engine

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.calibrators.venn_admit.decide import Decisions
from venn_admit.core.types import Approximation, Float32Array, FloatArray
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.methods.registry import settled_weights
from venn_admit.methods.venn_admit.snapshot import AdmitSnapshot, load_snapshot, require_own
from venn_admit.methods.venn_admit.undivided import UndividedSnapshot
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import hnsw, nearest
from venn_admit.store.search.hnsw import BuildMemory, HnswIndex
from venn_admit.store.search.nearest import NearestExemplars
from venn_admit.store.workspace import Workspace

Search = Callable[[Float32Array], NearestExemplars]


def find_index(engine: Engine, name: str) -> HnswIndex | None:
    """Return the index, or None if there is none. Raises NotFoundError if there is no such classifier."""
    classifier = _classifier(engine, name)
    with connect(engine) as connection:
        return hnsw.find(connection, classifier)


def create_index(engine: Engine, name: str, *, m: int, ef_construction: int, memory_mb: int | None = None) -> HnswIndex:
    """Create the index; arguments and errors are those of `hnsw.create`."""
    classifier = _classifier(engine, name)
    return hnsw.create(engine, classifier, m=m, ef_construction=ef_construction, memory_mb=memory_mb)


def build_memory(engine: Engine, name: str, *, m: int) -> BuildMemory:
    """Return what memory building the index takes, and what it may; errors are those of `find_index`."""
    classifier = _classifier(engine, name)
    with connect(engine) as connection:
        return hnsw.build_memory(connection, classifier, m=m)


def drop_index(engine: Engine, name: str) -> None:
    """Drop the index. Raises NotFoundError if there is none."""
    hnsw.drop(engine, _classifier(engine, name))


def _classifier(engine: Engine, name: str) -> Classifier:
    """Return the classifier; InvalidInputError if it has logits only, and so nothing to index."""
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
    classifiers.require_vectors(classifier, "an HNSW index")
    return classifier


@dataclass(frozen=True, slots=True)
class SearchAudit:
    """One way of searching, against the exact search of the same points.

    ef_search: None: the exact search itself. recall: share of the K nearest that were found, over all points.
    The others are shares of points: with another nearest exemplar, q, d, prediction, ADMIT set, or decision.
    p50, p99: seconds of a search.
    """

    ef_search: int | None
    recall: float
    wrong_nearest: float
    other_match_count: float
    other_distance: float
    other_prediction: float
    other_set: float
    other_decision: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True, eq=False)
class _Searched:
    """What a search found for n points, and how long it took for each, (n,) seconds."""

    found: list[NearestExemplars]
    seconds: FloatArray


def audit(workspace: Workspace, name: str, *, sample: int, ef_searches: Sequence[int]) -> tuple[int, list[SearchAudit]]:
    """Return how many points were sampled, and the audits of the exact search and of each ef_search.

    Decisions are weighted ones under the snapshot in use, or plain if it is undivided.

    Args:
        sample: How many points to search for, if there are as many beside the training exemplars.

    Raises:
        NotReadyError: There is no calibration, no point or no HNSW index.
    """
    if sample < 1:
        raise InvalidInputError(f"expected a sample of at least 1 point, got {sample}")
    with consistent_view(workspace.engine) as connection:  # so that every search is among the same exemplars
        classifier = classifiers.by_name(connection, name)
        classifiers.require_vectors(classifier, "an HNSW index")
        calibration = calibrations.latest(connection, classifier)
        require_own(calibration)
        calibrations.require_whole(connection, classifier, calibration)
        points = np.array(hnsw.sample(connection, classifier, sample), dtype=np.int64)
        if not len(points):
            raise NotReadyError(f"classifier {classifier.name!r} has no points to sample: ingest held-out data")
        queries = exemplars.vectors(connection, classifier, points)
        # Rolled back, so that the planner's preference for the index does not reach the exact search.
        with connection.begin_nested() as searches:
            by_index = {
                ef_search: _searched(
                    queries, partial(nearest.hnsw_nearest, connection, classifier, ef_search=ef_search)
                )
                for ef_search in ef_searches
            }
            searches.rollback()
        exact = _searched(queries, partial(nearest.exact_nearest, connection, classifier))

    snapshot = load_snapshot(workspace, classifier, calibration.id)
    right = _decided(snapshot, queries, exact)
    return len(points), [
        _compare(ef_search, searched, exact, _decided(snapshot, queries, searched), right)
        for ef_search, searched in [(None, exact), *by_index.items()]
    ]


def _searched(queries: Float32Array, search: Search) -> _Searched:
    search(queries[0])  # not timed, because it plans and loads data into memory
    found, seconds = [], np.empty(len(queries))
    for row, query in enumerate(queries):
        start = time.perf_counter()
        found.append(search(query))
        seconds[row] = time.perf_counter() - start
    return _Searched(found, seconds)


def _decided(
    snapshot: AdmitSnapshot | UndividedSnapshot, queries: Float32Array, searched: _Searched
) -> tuple[Approximation, Decisions]:
    """Approximations of all points and decisions on them, from the neighbours found."""
    approximation = approximate(*nearest.as_neighbours(searched.found), snapshot.parameters.knn)
    weighted = settled_weights(snapshot.calibration, None)
    return approximation, snapshot.decisions(approximation, queries if weighted else None)


def _compare(
    ef_search: int | None,
    searched: _Searched,
    exact: _Searched,
    decided: tuple[Approximation, Decisions],
    right: tuple[Approximation, Decisions],
) -> SearchAudit:
    ids = np.stack([near.ids for near in searched.found])  # (n, K)
    exact_ids = np.stack([near.ids for near in exact.found])  # (n, K)
    hits = [np.isin(wanted, got).mean() for wanted, got in zip(exact_ids, ids, strict=True)]
    (view, made), (right_view, right_made) = decided, right
    return SearchAudit(
        ef_search=ef_search,
        recall=float(np.mean(hits)),
        wrong_nearest=float((ids[:, 0] != exact_ids[:, 0]).mean()),
        other_match_count=float((view.match_count != right_view.match_count).mean()),
        other_distance=float((view.distance != right_view.distance).mean()),
        other_prediction=float((view.predicted != right_view.predicted).mean()),
        other_set=float((made.sets.included != right_made.sets.included).any(axis=1).mean()),
        other_decision=float((made.selection.decision != right_made.selection.decision).mean()),
        p50=float(np.percentile(searched.seconds, 50)),
        p99=float(np.percentile(searched.seconds, 99)),
    )
