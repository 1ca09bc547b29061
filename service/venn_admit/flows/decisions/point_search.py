"""The exact search for the neighbours of a few points at a time: by the database first, and by a copy of what it reads.

A scan by the database reads all training exemplars for each point. A process that is asked again and again copies them
into its cache instead, where points that are asked for at the same time share a pass, and each takes a fraction of the
time. The lists are the same to the last bit, and of the version that the transaction sees.
"""

import os
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from threading import Lock, Thread
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.neighbours.one_pass import MOST_QUERIES, OnePassSupport
from venn_admit.core.types import Float32Array
from venn_admit.logger import log
from venn_admit.methods.method import NotKeptError
from venn_admit.methods.shared_passes import SharedPasses
from venn_admit.store.database.engine import connect, unpooled
from venn_admit.store.exemplars import support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.support import SupportChangedError
from venn_admit.store.search import nearest
from venn_admit.store.search.nearest import NearestExemplars
from venn_admit.store.search.support_files import CachedSupport
from venn_admit.store.workspace import Workspace

# How many points of a version of the training exemplars the database searches; copying takes about as long.
POINTS_BY_SCAN = 128
# Vectors that take more than this many memory budgets are not copied: a machine for a service may be small.
_MOST_BUDGETS = 4
# The classifiers of which a process keeps the version that it searched last.
_MOST_CLASSIFIERS = 16
# A copy is tried on this number of its own exemplars, and used if a pass is certain of half of them.
_TRIED = 16

# For each point, or None if a pass is not certain of its neighbours.
_Passes = SharedPasses[Float32Array, list[NearestExemplars | None]]


@dataclass(slots=True, eq=False)
class _Version:
    """A version of a classifier's training exemplars.

    points: how many were searched in it, or are about to be. due: the number at which it is to be copied. passes: over
    the copy, once there is one.
    """

    number: int
    revision: UUID
    points: int = 0
    due: int = field(default_factory=lambda: POINTS_BY_SCAN)
    passes: _Passes | None = None
    counting: Lock = field(default_factory=Lock)

    def takes(self, points: int) -> bool:
        """Count points that are about to be searched; return whether a copy is due now."""
        with self.counting:
            before, self.points = self.points, self.points + points
            return before < self.due <= self.points

    def put_off(self) -> None:
        """Let a copy be due at twice as many points, so that what fails again and again costs little."""
        with self.counting:
            self.due = 2 * self.points


class PointSearch:
    """Finds the nearest training exemplars of some points at a time; threads may share it."""

    def __init__(self, workspace: Workspace) -> None:
        self._engine = workspace.engine
        self._cache = workspace.cache
        self._versions: OrderedDict[int, _Version] = OrderedDict()
        self._changing = Lock()
        self._threads = ThreadPoolExecutor(os.cpu_count(), "passes")

    def nearest(
        self, connection: Connection | None, classifier: Classifier, vectors: Sequence[Float32Array]
    ) -> list[NearestExemplars]:
        """Return the K nearest of each point, as `nearest.exact_nearest` does, whose errors are those of this.

        connection: None: NotKeptError is raised unless a copy is certain of them all.
        classifier: as the transaction of the connection sees it.
        """
        nearest.check_vectors(classifier, vectors)
        version = self._version(classifier)
        if connection is None and version.passes is None:
            raise NotKeptError
        if version.takes(len(vectors)):
            self._begin_copy(classifier, version)
        found: list[NearestExemplars] = []
        while len(found) < len(vectors):
            left = vectors[len(found) :]
            passes = version.passes
            asked = left if passes else left[:1]
            lists = self._passed(passes, asked) if passes else [None]
            found += [near or _scanned(connection, classifier, of) for of, near in zip(asked, lists, strict=True)]
        return found

    def _passed(self, passes: _Passes, vectors: Sequence[Float32Array]) -> list[NearestExemplars | None]:
        """What passes find; those of many points fill passes of their own, which take all processors."""
        parts = [np.stack(vectors[start : start + MOST_QUERIES]) for start in range(0, len(vectors), MOST_QUERIES)]
        lists = map(passes.ask, parts) if len(parts) == 1 else self._threads.map(passes.ask_alone, parts)
        return list(chain.from_iterable(lists))

    def _version(self, classifier: Classifier) -> _Version:
        """The version that a transaction sees; if it is not the newest that was searched, it is not kept."""
        number, revision = classifier.support_version, classifier.support_revision
        with self._changing:
            known = self._versions.get(classifier.id)
            if known is None or known.number < number:
                known = self._versions[classifier.id] = _Version(number, revision)
            self._versions.move_to_end(classifier.id)
            if len(self._versions) > _MOST_CLASSIFIERS:
                self._versions.popitem(last=False)
        return known if known.revision == revision else _Version(number, revision)

    def _begin_copy(self, classifier: Classifier, version: _Version) -> None:
        copying = Thread(target=self._copy, args=(classifier, version), daemon=True, name="copy of training exemplars")
        try:
            copying.start()
        except RuntimeError as error:  # the system has no more threads
            self._give_up(classifier, version, error)

    def _copy(self, classifier: Classifier, version: _Version) -> None:
        try:
            with unpooled(self._engine) as engine:
                version.passes = self._passes(engine, classifier)
        except SupportChangedError:  # if this transaction sees a newer version, the next requests will
            version.put_off()
        except Exception as error:  # which nobody else would hear of
            self._give_up(classifier, version, error)

    def _give_up(self, classifier: Classifier, version: _Version, error: Exception) -> None:
        log.warning("training exemplars are not copied", classifier=classifier.name, error=repr(error))
        version.put_off()

    def _passes(self, engine: Engine, classifier: Classifier) -> _Passes | None:
        """Passes over a copy; None if it would be too large, or if passes would not be certain."""
        with connect(engine) as connection:
            size = OnePassSupport.row_bytes(classifier.dimension) * support.size(connection, classifier)
        if size > _MOST_BUDGETS * self._cache.memory_budget:
            log.info("training exemplars are too many to copy", classifier=classifier.name, bytes=size)
            return None
        copy, neighbour_count = self._cache.support(engine, classifier), classifier.neighbour_count
        if len(copy.ids) < neighbour_count:
            return None
        prepared = OnePassSupport(copy.vectors, neighbour_count)
        tried = prepared.nearest(copy.vectors[:: -(-len(copy.ids) // _TRIED)], neighbour_count)
        if np.mean(tried.certain) < 0.5:
            log.info("training exemplars are too much alike to search a copy", classifier=classifier.name)
            return None
        return SharedPasses(partial(_answer, copy, prepared, neighbour_count), most=MOST_QUERIES)


def _scanned(connection: Connection | None, classifier: Classifier, vector: Float32Array) -> NearestExemplars:
    if connection is None:
        raise NotKeptError
    return nearest.exact_nearest(connection, classifier, vector)


def _answer(
    copy: CachedSupport, prepared: OnePassSupport, neighbour_count: int, together: Sequence[Float32Array]
) -> list[list[NearestExemplars | None]]:
    """The nearest exemplars of the vectors of some requests, by one pass."""
    searched = prepared.nearest(np.concatenate(together), neighbour_count)
    rows = searched.found.indices  # (n, K)
    of_each = zip(
        copy.ids[rows],
        searched.found.distances,
        copy.support.labels[rows],
        np.asarray(copy.support.logits[rows]),  # (n, K, C)
        strict=True,
    )
    lists = [
        NearestExemplars(*found) if is_certain else None
        for found, is_certain in zip(of_each, searched.certain, strict=True)
    ]
    ends = np.cumsum([len(vectors) for vectors in together])
    starts = ends - [len(vectors) for vectors in together]
    return [lists[start:end] for start, end in zip(starts, ends, strict=True)]
