"""Neighbours and KNN approximations of stored points: what is missing is computed, what is there is used."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Engine

from service.core.approximation import approximate
from service.core.neighbors import exact_neighbours
from service.core.types import Approximation, IntArray, Neighbours, Split
from service.errors import NotReadyError
from service.store import approximations, exemplars
from service.store.approximations import StoredNeighbours, StoredParameters
from service.store.array_cache import ArrayCache, CachedSupport
from service.store.classifiers import Classifier
from service.store.engine import connect


@dataclass(frozen=True, slots=True, eq=False)
class Approximated:
    """Points with up-to-date neighbours and, where parameters were given, their approximation.

    exemplar_ids: (n,) int64. new_neighbours: the lists that were computed. approximation: of all n points, in
    order, or None without parameters. new_rows: the positions whose approximation was computed, int64.
    """

    classifier: Classifier
    exemplar_ids: IntArray
    complete_to: int
    new_neighbours: StoredNeighbours
    parameters: StoredParameters | None
    approximation: Approximation | None
    new_rows: IntArray

    def apply(self, connection: Connection) -> None:
        """Store what is new."""
        if len(self.new_neighbours.exemplar_ids):
            approximations.write_neighbours(connection, self.classifier, self.new_neighbours, self.complete_to)
        if self.parameters is not None and self.approximation is not None and len(self.new_rows):
            approximations.write_approximations(
                connection,
                self.classifier,
                self.exemplar_ids[self.new_rows],
                take_rows(self.approximation, self.new_rows),
                self.complete_to,
                self.parameters.id,
            )


def require_support(connection: Connection, classifier: Classifier) -> int:
    """The id of the newest training exemplar; NotReadyError where there are fewer than K."""
    count = exemplars.split_counts(connection, classifier)[Split.TRAIN]
    if count < classifier.neighbour_count:
        raise NotReadyError(
            f"classifier {classifier.name!r} has {count} training exemplars, its KNN needs at least "
            f"K = {classifier.neighbour_count}: ingest more with --split train"
        )
    newest = exemplars.newest_support(connection, classifier)
    assert newest is not None
    return newest


def approximate_points(
    engine: Engine,
    cache: ArrayCache,
    classifier: Classifier,
    exemplar_ids: IntArray,
    parameters: StoredParameters | None,
    *,
    memory_budget: int,
) -> Approximated:
    """Neighbours of n points, and their approximation under the parameters given.

    exemplar_ids: (n,) int64, each once. memory_budget: bytes of temporaries of the search.
    """
    support = cache.support(engine, classifier)
    complete_to = int(support.ids[-1])
    with connect(engine) as connection:
        known = approximations.read_neighbours(connection, classifier, exemplar_ids, complete_to)
        lacking = exemplar_ids[~np.isin(exemplar_ids, known.exemplar_ids)]
        vectors = exemplars.vectors(connection, classifier, lacking)
        stored_ids, stored = (
            (exemplar_ids[:0], None)
            if parameters is None
            else approximations.read_approximations(connection, classifier, exemplar_ids, complete_to, parameters.id)
        )

    found = exact_neighbours(vectors, support.vectors, classifier.neighbour_count, memory_budget=memory_budget)
    new_neighbours = StoredNeighbours(lacking, support.ids[found.indices], found.distances)
    new_rows = np.flatnonzero(~np.isin(exemplar_ids, stored_ids))
    approximation = None
    if parameters is not None and stored is not None:
        neighbours = neighbours_in_order(_joined(known, new_neighbours), exemplar_ids[new_rows], support)
        computed = approximate(neighbours, support.support, parameters.knn)
        ids = np.concatenate([stored_ids, exemplar_ids[new_rows]])
        approximation = take_rows(_concatenated(stored, computed), positions(ids, exemplar_ids))
    return Approximated(classifier, exemplar_ids, complete_to, new_neighbours, parameters, approximation, new_rows)


def take_rows(approximation: Approximation, rows: IntArray) -> Approximation:
    return Approximation(
        logits=approximation.logits[rows],
        predicted=approximation.predicted[rows],
        match_count=approximation.match_count[rows],
        distance=approximation.distance[rows],
    )


def _concatenated(first: Approximation, second: Approximation) -> Approximation:
    return Approximation(
        logits=np.concatenate([first.logits, second.logits]),
        predicted=np.concatenate([first.predicted, second.predicted]),
        match_count=np.concatenate([first.match_count, second.match_count]),
        distance=np.concatenate([first.distance, second.distance]),
    )


def _joined(first: StoredNeighbours, second: StoredNeighbours) -> StoredNeighbours:
    return StoredNeighbours(
        exemplar_ids=np.concatenate([first.exemplar_ids, second.exemplar_ids]),
        neighbour_ids=np.concatenate([first.neighbour_ids, second.neighbour_ids]),
        distances=np.concatenate([first.distances, second.distances]),
    )


def neighbours_in_order(stored: StoredNeighbours, exemplar_ids: IntArray, support: CachedSupport) -> Neighbours:
    """The lists of the points asked for, in that order, with rows of the support in place of ids."""
    rows = positions(stored.exemplar_ids, exemplar_ids)
    return Neighbours(
        indices=np.searchsorted(support.ids, stored.neighbour_ids[rows]), distances=stored.distances[rows]
    )


def positions(ids: IntArray, wanted: IntArray) -> IntArray:
    """Where each wanted id stands among distinct ids, all of which are there; (len(wanted),) int64."""
    sorter = np.argsort(ids)
    return sorter[np.searchsorted(ids, wanted, sorter=sorter)].astype(np.int64)
