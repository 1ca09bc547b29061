"""Neighbours and KNN approximations of stored points: what is stored is used, and what is missing is computed.

If training exemplars were added since a point's neighbours were stored, only those are searched, and the point's list
is merged with them; a list that holds an exemplar that was removed is searched again as a whole.
"""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, BoolArray, Float32Array, IntArray, Neighbours, join_approximations
from venn_admit.errors import ConflictError, DatabaseError, NotFoundError
from venn_admit.flows.jobs.chunks import ChunkWork
from venn_admit.logger import log
from venn_admit.store.database.engine import connect, consistent_view, transaction
from venn_admit.store.exemplars import approximations, classifiers, exemplars, neighbours, support, support_changes
from venn_admit.store.exemplars.approximations import StoredParameters, positions
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.neighbours import StoredNeighbours
from venn_admit.store.exemplars.support_changes import SupportChanges
from venn_admit.store.search.support_files import CachedSupport
from venn_admit.store.work import recalibrations
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class Approximated:
    """Points with neighbours and, if parameters were given, their approximation, at a support version.

    classifier: as it was then. exemplar_ids: (n,) int64. new_neighbours: the lists that are new or changed.
    changed_ids: points whose list, or a label in it, changed, int64. approximation: of all n points, in order, or
    None without parameters. new_rows: the positions whose approximation was computed, int64.
    """

    classifier: Classifier
    exemplar_ids: IntArray
    new_neighbours: StoredNeighbours
    changed_ids: IntArray
    parameters: StoredParameters | None
    approximation: Approximation | None
    new_rows: IntArray

    def apply(self, connection: Connection) -> None:
        """Store what is new; SupportChangedError if the training exemplars have changed."""
        support.lock_for_results(connection, self.classifier)
        if len(self.changed_ids):
            approximations.delete_outdated_approximations(connection, self.classifier, self.changed_ids)
        if len(self.new_neighbours.exemplar_ids):
            neighbours.write(connection, self.classifier, self.new_neighbours)
        if self.parameters is not None and self.approximation is not None and len(self.new_rows):
            approximations.write_approximations(
                connection,
                self.classifier,
                self.exemplar_ids[self.new_rows],
                self.approximation.take(self.new_rows),
                self.parameters.id,
            )


def require_support(connection: Connection, classifier: Classifier) -> None:
    """Raise NotReadyError if there are fewer than K training exemplars, those that wait left out."""
    count = support.size(connection, classifier, at_most=classifier.neighbour_count)
    if count < classifier.neighbour_count:
        raise support.too_few(classifier, count)


def take_in_waiting(engine: Engine, of: str | Classifier | None = None, *, ended: int | None = None) -> None:
    """Let the training exemplars that wait join, of one classifier or of all, if they may.

    It is a transaction of its own, so that the rows that it locks are free at once. If the database fails, that is
    logged, and they join at the next occasion: what the caller did is done, and what it does next needs none of them.

    of: a name, or a classifier that was found. ended: the job of a calibration or a fit that is over, however it ended,
    so that nothing waits for it any more.
    """
    try:
        with transaction(engine) as connection:
            classifier = classifiers.by_name(connection, of) if isinstance(of, str) else of
            if ended is not None:
                support.release(connection, ended)
            recalibrations.take_in_waiting(connection, None if classifier is None else classifier.id)
    except (NotFoundError, ConflictError):  # nothing waits, or all is being deleted; what follows says so
        return
    except DatabaseError as error:  # which says what failed; its trace would say no more
        name = of.name if isinstance(of, Classifier) else of
        log.warning("training exemplars that wait could not join", classifier=name, error=str(error))


def held_classifier(connection: Connection, classifier: Classifier) -> Classifier:
    """Return a classifier as it is now; its training exemplars stay as they are until this transaction ends.

    Those that arrive later wait for the job that the transaction records. Raises ConflictError if the classifier is
    being deleted, and NotFoundError if it was.
    """
    support.lock(connection, classifier)
    return classifiers.usable(connection, classifier)


def points_to_approximate(
    connection: Connection,
    classifier: Classifier,
    splits: list[Split],
    parameters: StoredParameters | None,
    among: IntArray | None = None,
) -> IntArray:
    """Return the points that a job must compute so that all neighbour lists are up to date; ascending ids, int64.

    Among them are the points of these splits that have no approximation under the parameters, or no neighbours if no
    parameters are given. among: with parameters, the points that may lack one; None for all.
    """
    missing = (
        neighbours.without_neighbours(connection, classifier, splits)
        if parameters is None
        else approximations.without_approximation(connection, classifier, splits, parameters.id, among)
    )
    return np.union1d(missing, neighbours.outdated_neighbours(connection, classifier))


def approximate_points(
    workspace: Workspace,
    classifier: Classifier,
    exemplar_ids: IntArray,
    parameters: StoredParameters | None,
    *,
    vectors: Float32Array | None = None,
) -> Approximated:
    """Return the neighbours of n points, and their approximation under the parameters if they are given.

    Args:
        exemplar_ids: (n,) int64, distinct.
        parameters: The parameters of the KNN; None: only neighbours.
        vectors: (n, D), of the points, if they have been read.

    Raises:
        SupportChangedError: The training exemplars have changed since `classifier` was read.
    """
    # One view of what is stored and of the training exemplars it was computed from.
    with consistent_view(workspace.engine) as connection:
        support.require_version(connection, classifier)
        known = neighbours.read(connection, classifier, exemplar_ids)
        oldest = int(known.support_version.min(initial=classifier.support_version))
        changes = support_changes.after(connection, classifier, oldest)
        stored_ids, stored = (
            (exemplar_ids[:0], None)
            if parameters is None
            else approximations.read_approximations(connection, classifier, exemplar_ids, parameters.id)
        )
    search = _Search(
        workspace.engine,
        classifier,
        workspace.cache.support(workspace.engine, classifier),
        workspace.memory_budget,
        workspace.device,
    )
    merged, changed_lists, changed_labels = search.bring_up_to_date(known, changes)
    lacks = ~np.isin(exemplar_ids, merged.exemplar_ids)
    found = search.among_all(exemplar_ids[lacks], None if vectors is None else vectors[lacks])

    searched_again = exemplar_ids[lacks & np.isin(exemplar_ids, known.exemplar_ids)]
    changed_ids = np.concatenate([merged.exemplar_ids[changed_lists | changed_labels], searched_again])
    kept = ~np.isin(stored_ids, changed_ids)
    new_rows = np.flatnonzero(~np.isin(exemplar_ids, stored_ids[kept]))
    approximation = None
    if parameters is not None and stored is not None:
        lists = neighbours_in_order(merged.followed_by(found), exemplar_ids[new_rows], search.support)
        computed = approximate(lists, search.support.support, parameters.knn)
        ids = np.concatenate([stored_ids[kept], exemplar_ids[new_rows]])
        joined = join_approximations([stored.take(np.flatnonzero(kept)), computed])
        approximation = joined.take(positions(ids, exemplar_ids))
    return Approximated(
        classifier,
        exemplar_ids,
        merged.take(np.flatnonzero(changed_lists)).followed_by(found),
        changed_ids,
        parameters,
        approximation,
        new_rows,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ApproximateChunks:
    """Computes the chunks of jobs that bring neighbours and approximations up to date."""

    workspace: Workspace

    def __call__(self, work: ChunkWork) -> Approximated:
        """Return the neighbours of a chunk's exemplars, and their approximation if the job names parameters."""
        parameters = None
        if work.job.knn_parameters_id is not None:
            with connect(self.workspace.engine) as connection:
                parameters = approximations.parameters_by_id(connection, work.job.knn_parameters_id)
        return approximate_points(self.workspace, work.classifier, work.exemplar_ids, parameters)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Searches of stored points among the training exemplars."""

    engine: Engine
    classifier: Classifier
    support: CachedSupport
    memory_budget: int
    device: str

    def among_all(self, exemplar_ids: IntArray, vectors: Float32Array | None) -> StoredNeighbours:
        """Return the neighbours of n points, (n, K), whose vectors are read unless they are given."""
        queries = self._vectors(exemplar_ids) if vectors is None else vectors
        found = self._nearest(queries, self.support.vectors)
        return self._stored(exemplar_ids, found)

    def bring_up_to_date(
        self, known: StoredNeighbours, changes: SupportChanges
    ) -> tuple[StoredNeighbours, BoolArray, BoolArray]:
        """Merge n lists with the training exemplars added since; those that hold a removed one are left out.

        Returns m <= n lists, and (m,) bool each: whether the list changed, and whether a label in it did.
        """
        parts = []
        for support_version in np.unique(known.support_version).tolist():
            lists = known.take(np.flatnonzero(known.support_version == support_version))
            removed = changes.ids("removed", after=support_version)
            lists = lists.take(np.flatnonzero(~lists.holding(removed)))
            merged = self._merge(lists, changes.ids("added", after=support_version), support_version)
            changed = (merged.neighbour_ids != lists.neighbour_ids).any(axis=1)
            parts.append((merged, changed, merged.holding(changes.ids("relabelled", after=support_version))))
        merged = known.take(np.empty(0, dtype=np.int64))
        for part, _, _ in parts:
            merged = merged.followed_by(part)
        none = np.empty(0, dtype=np.bool_)
        return (
            merged,
            np.concatenate([none, *(changed for _, changed, _ in parts)]),
            np.concatenate([none, *(relabelled for _, _, relabelled in parts)]),
        )

    def _merge(self, lists: StoredNeighbours, added_ids: IntArray, support_version: int) -> StoredNeighbours:
        """Lists of n points, complete to a version, with the training exemplars that came after it."""
        from venn_admit.core.neighbours.search import merge_neighbours

        ids = self.support.ids
        added = np.flatnonzero((ids > support_version) | np.isin(ids, added_ids))
        if not added.size or not lists.exemplar_ids.size:
            return lists
        found = self._nearest(self._vectors(lists.exemplar_ids), self.support.vectors[added])
        return self._stored(
            lists.exemplar_ids,
            merge_neighbours(
                Neighbours(indices=np.searchsorted(ids, lists.neighbour_ids), distances=lists.distances),
                Neighbours(indices=added[found.indices], distances=found.distances),
            ),
        )

    def _vectors(self, exemplar_ids: IntArray) -> Float32Array:
        with connect(self.engine) as connection:
            return exemplars.vectors(connection, self.classifier, exemplar_ids)

    def _nearest(self, queries: Float32Array, vectors: Float32Array) -> Neighbours:
        from venn_admit.core.neighbours.on_device import neighbours_on

        count = min(self.classifier.neighbour_count, len(vectors))
        return neighbours_on(self.device, queries, vectors, count, memory_budget=self.memory_budget)

    def _stored(self, exemplar_ids: IntArray, found: Neighbours) -> StoredNeighbours:
        version = np.full(len(exemplar_ids), self.classifier.support_version)
        return StoredNeighbours(exemplar_ids, self.support.ids[found.indices], found.distances, version)


def neighbours_in_order(stored: StoredNeighbours, exemplar_ids: IntArray, support: CachedSupport) -> Neighbours:
    """Return the lists of these points, in this order, with rows of the support in place of ids."""
    rows = positions(stored.exemplar_ids, exemplar_ids)
    return Neighbours(
        indices=np.searchsorted(support.ids, stored.neighbour_ids[rows]), distances=stored.distances[rows]
    )
