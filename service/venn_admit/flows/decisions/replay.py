"""Computing a stored decision again from its snapshot, with the evidence that it rests on.

If exemplars were forgotten since, a step that rested on one of them cannot be computed again: what it gave then is
taken as it is stored, and the steps after it are computed from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, Row

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.evaluation.category import Bounds
from venn_admit.core.evidence import EVIDENCE, VIEW
from venn_admit.core.types import Approximation, Float32Array, FloatArray, IntArray, Support
from venn_admit.flows.decisions.listing import ShownDecision
from venn_admit.flows.decisions.score_one import Near
from venn_admit.methods.method import AppliedPolicy, CellBasis, PointsToDecide, Snapshot
from venn_admit.methods.registry import load_snapshot
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.decisions import decisions
from venn_admit.store.exemplars import classifiers, exemplars, forgotten, support_changes
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.support_files import CachedSupport
from venn_admit.store.workspace import Workspace

LAST_DIGITS = 1e-9
"""The relative difference from which on numbers differ in more than their last digits."""


@dataclass(frozen=True, slots=True)
class ForgottenSince:
    """How many exemplars that a decision saw were forgotten since: training exemplars, and points of its calibration.

    training: how many of those trained at its time, whether or not they were among the nearest.
    """

    training: int
    mc: int
    vp: int

    @property
    def points(self) -> int:
        """Those of the calibration."""
        return self.mc + self.vp

    @property
    def total(self) -> int:
        """All of them."""
        return self.training + self.points


@dataclass(frozen=True, slots=True, eq=False)
class Replayed(ShownDecision):
    """What is stored and what is computed now, field by field.

    near: the nearest training exemplars of that time; none if one is gone. differing: the fields that are not equal,
    bit for bit. forgotten: what of its foundations is gone. not_recomputed: the fields that would need it, which
    are None in `computed`. category_counts: (C,) int64, points of each label in the category, 0 if the set is not a
    singleton; None if points of it are gone. policy: None if the calibration was asked for no certificate. basis: None
    unless the method has cells, and all points of the calibration are there. bounds: as in `category_shares`.
    """

    near: Sequence[Near]
    stored: dict[str, Any]
    computed: dict[str, Any]
    differing: tuple[str, ...]
    forgotten: ForgottenSince
    not_recomputed: tuple[str, ...]
    category_counts: IntArray | None
    policy: AppliedPolicy | None
    basis: CellBasis | None
    bounds: Bounds | None

    @property
    def is_rounding(self) -> bool:
        """Whether something differs, but in its last digits alone, as on another kind of processor."""
        pairs = [(self.stored[name], self.computed[name]) for name in self.differing]
        return bool(pairs) and all(
            isinstance(stored, float | list)
            and np.shape(stored) == np.shape(computed)
            and np.allclose(stored, computed, rtol=LAST_DIGITS, atol=0)
            for stored, computed in pairs
        )


def replay_newest(workspace: Workspace, name: str, external_id: str) -> Replayed:
    """Replay the newest decision on an exemplar; NotFoundError for an unknown classifier or exemplar."""
    with connect(workspace.engine) as connection:
        decision_id = decisions.newest(connection, classifiers.by_name(connection, name), external_id)
    return replay(workspace, decision_id)


def replay(workspace: Workspace, decision_id: int) -> Replayed:
    """Search, approximate and decide again, with the training exemplars and the snapshot of that time."""
    with connect(workspace.engine) as connection:
        row = decisions.by_id(connection, decision_id)
        classifier = classifiers.by_id(connection, row.classifier_id)
        logits = exemplars.network_logits(connection, classifier, np.array([row.exemplar_id]))
        gone = _gone(connection, classifier, row)
    snapshot = load_snapshot(workspace, classifier, row.calibration_id)
    with connect(workspace.engine) as connection:
        groups = exemplars.groups(connection, np.array([row.exemplar_id]), snapshot.calibration.group_attributes)
    seen, as_then = None, True
    if classifier.knn is not None:
        seen, as_then = _seen_then(workspace, classifier, snapshot, row, gone)
    points = PointsToDecide(None, None, logits, groups)
    if seen is not None:
        points = PointsToDecide(seen.approximation, seen.vector if row.weighted else None, logits, groups)
    explained = snapshot.explain(points, require_full_match=row.require_full_match)

    computed = dict(explained.fields)
    stored = {field: row._mapping[field] for field in computed}
    # A decision that is older than a field lacks it.
    younger = {field.name for field in EVIDENCE[snapshot.calibration.method].fields if field.nullable}
    absent = {name for name in younger if stored[name] is None}
    differing = [name for name in computed if computed[name] != stored[name] and name not in absent]
    not_recomputed = [] if as_then else [field.name for field in VIEW]
    if gone.points:  # what the calibration says is another thing without these points
        not_recomputed += differing
        differing = []
    computed |= dict.fromkeys(not_recomputed)
    near = _NONE if seen is None else seen.nearest
    with consistent_view(workspace.engine) as connection:
        forgotten_meanwhile = _gone(connection, classifier, row) != gone
        described = (
            []
            if forgotten_meanwhile
            else exemplars.described(connection, np.append(np.int64(row.exemplar_id), near.ids))
        )
    if forgotten_meanwhile:  # what differs may be no difference, and its reason would not be named
        return replay(workspace, decision_id)
    own, *neighbours = described
    return Replayed(
        classifier=classifier,
        row=row,
        attributes=own.attributes,
        network_logits=logits[0],
        near=list(zip(neighbours, near.labels.tolist(), near.distances.tolist(), strict=True)),
        stored=stored,
        computed=computed,
        differing=tuple(differing),
        forgotten=gone,
        not_recomputed=tuple(not_recomputed),
        category_counts=_whole_category(explained.category_counts, stored, gone),
        policy=explained.policy,
        basis=None if gone.points else explained.basis,
        bounds=explained.bounds,
    )


def _gone(connection: Connection, classifier: Classifier, row: Row[Any]) -> ForgottenSince:
    """How many exemplars that a decision saw have been forgotten by now."""
    lost = forgotten.lost_points(connection, row.calibration_id, after=row.created_at)
    trained = forgotten.trained_then(connection, classifier, row.support_version, after=row.created_at)
    return ForgottenSince(trained, lost.mc, lost.vp)


def _whole_category(counts: IntArray, stored: dict[str, Any], gone: ForgottenSince) -> IntArray | None:
    """The points of each label in the category, or None if some of it are gone."""
    size = stored.get("category_size")
    return None if gone.points and size is not None and int(counts.sum()) != size else counts


@dataclass(frozen=True, slots=True, eq=False)
class _Nearest:
    """The K nearest training exemplars of then: (K,) int64, (K,) int64 and (K,) float64."""

    ids: IntArray
    labels: IntArray
    distances: FloatArray


_NONE = _Nearest(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What the KNN saw of a point then; vector: (1, D)."""

    vector: Float32Array
    approximation: Approximation
    nearest: _Nearest


def _seen_then(
    workspace: Workspace, classifier: Classifier, snapshot: Snapshot, row: Row[Any], gone: ForgottenSince
) -> tuple[_Seen, bool]:
    """What the KNN saw of the point, computed again, and True; or as it is stored, and False, if too much is gone."""
    stored = Approximation(
        logits=np.array([row.logits]),
        predicted=np.array([int(np.argmax(row.logits))]),
        match_count=np.array([row.match_count]),
        distance=np.array([row.distance]),
    )
    if gone.training:
        with connect(workspace.engine) as connection:
            query = exemplars.vectors(connection, classifier, np.array([row.exemplar_id]))
        kept = _Seen(query, stored, _NONE)
        if _left_of_then(workspace, classifier, row.support_version) < classifier.neighbour_count:
            return kept, False
        seen = _search_again(workspace, classifier, snapshot, row)
        return (seen, True) if _same(seen.approximation, stored) else (kept, False)
    return _search_again(workspace, classifier, snapshot, row), True


def _same(one: Approximation, other: Approximation) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in VIEW)


def _left_of_then(workspace: Workspace, classifier: Classifier, version: int) -> int:
    """Return how many of the training exemplars of a version are left."""
    return len(
        _support_at(workspace.engine, workspace.cache.support(workspace.engine, classifier), classifier, version).ids
    )


def _search_again(workspace: Workspace, classifier: Classifier, snapshot: Snapshot, row: Row[Any]) -> _Seen:
    from venn_admit.core.neighbours.search import exact_neighbours

    with connect(workspace.engine) as connection:
        query = exemplars.vectors(connection, classifier, np.array([row.exemplar_id]))
    then = _support_at(
        workspace.engine, workspace.cache.support(workspace.engine, classifier), classifier, row.support_version
    )
    found = exact_neighbours(query, then.vectors, classifier.neighbour_count, memory_budget=workspace.memory_budget)
    rows = found.indices[0]
    return _Seen(
        query,
        approximate(found, then.support, snapshot.parameters.knn),
        _Nearest(then.ids[rows], then.support.labels[rows], found.distances[0]),
    )


def _support_at(engine: Engine, now: CachedSupport, classifier: Classifier, version: int) -> CachedSupport:
    """Return the training exemplars as they were at a version: later changes are undone, and later ones left out."""
    with connect(engine) as connection:
        changes = support_changes.after(connection, classifier, version)
        # The newest change comes first, so the oldest counts; -1 means that it was not a training exemplar before.
        label_then = dict(zip(changes.exemplar_ids.tolist(), changes.labels_before.tolist(), strict=True))
        if not label_then:
            rows = int(np.searchsorted(now.ids, version, side="right"))
            labelled = Support(now.support.logits[:rows], now.support.labels[:rows])
            return CachedSupport(now.ids[:rows], now.vectors[:rows], labelled)
        back = np.array([key for key, label in label_then.items() if label >= 0 and key <= version], dtype=np.int64)
        vectors = exemplars.vectors(connection, classifier, back)
        logits = exemplars.network_logits(connection, classifier, back)
    same = np.flatnonzero((now.ids <= version) & ~np.isin(now.ids, changes.exemplar_ids))
    ids = np.concatenate([now.ids[same], back])
    order = np.argsort(ids)
    labels = np.concatenate([now.support.labels[same], [label_then[key] for key in back.tolist()]]).astype(np.int64)
    return CachedSupport(
        ids=ids[order],
        vectors=np.concatenate([now.vectors[same], vectors])[order],
        support=Support(np.concatenate([now.support.logits[same], logits])[order], labels[order]),
    )
