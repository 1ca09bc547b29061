"""The decision on one point, or on each of some, at once, from the current snapshot; nothing is stored.

A job decides the same, in every bit, on an exemplar with this vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.groups import group_values
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import Code, InvalidInputError, NotFoundError
from venn_admit.files.records import Stated, taken_logits
from venn_admit.flows.data.ingest import require_extractor
from venn_admit.flows.decisions.logits_only import point_of_logits, require_decidable
from venn_admit.flows.decisions.point_search import PointSearch
from venn_admit.methods.method import AppliedPolicy, Explained, PointsToDecide
from venn_admit.methods.recent import Recent
from venn_admit.methods.registry import METHODS, settled_weights
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import approximations, classifiers, exemplars
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.exemplars import DescribedExemplar
from venn_admit.store.search import nearest
from venn_admit.store.search.nearest import NearestExemplars
from venn_admit.store.workspace import Workspace

# A training exemplar, its label, and its distance.
Near = tuple[DescribedExemplar, int, float]


@dataclass(frozen=True, slots=True, eq=False)
class GivenPoint:
    """A point to decide on.

    vector: (D,) float32, finite; None if the classifier has logits only. logits: (C,) float32, the network's, which
    some methods need. attributes: what else is known of it; a certificate for groups decides by some of them.
    external_id: what it is called; None if it has no id.
    """

    vector: Float32Array | None
    logits: Float32Array | None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    external_id: str | None = None


def as_logits(points: Sequence[GivenPoint], probabilities: bool | None) -> list[GivenPoint]:
    """Return points with their logits, as `Stated.probabilities` says of these.

    Raises InvalidInputError if all look like probabilities, or if one of those that are stated to be does not.
    """
    given = [point.logits for point in points if point.logits is not None]
    if not given or len({len(logits) for logits in given}) > 1:
        return list(points)
    taken = iter(taken_logits("the points, logits", np.array(given), probabilities).astype(np.float32))
    return [one if one.logits is None else replace(one, logits=next(taken)) for one in points]


@dataclass(frozen=True, slots=True, eq=False)
class PointDecision:
    """What is decided on one point, and why.

    fields: by the names that a stored decision has them under. category_counts: (C,) int64, points of each label in
    the category, 0 where the set is no singleton. nearest: the K nearest training exemplars, nearest first, as the
    decision sees them. neighbours: as many of them as were asked for, as users know them. None and none if the
    classifier has logits only. policy: None if the calibration was asked for no certificate.
    """

    point: GivenPoint
    classifier: Classifier
    calibration_id: int
    fields: dict[str, Any]
    category_counts: IntArray
    nearest: NearestExemplars | None
    neighbours: Sequence[DescribedExemplar]
    policy: AppliedPolicy | None

    @property
    def near(self) -> list[Near]:
        """The neighbours that were asked for, each with its label and its distance."""
        if self.nearest is None:
            return []
        count = len(self.neighbours)
        labels, distances = self.nearest.labels[:count], self.nearest.distances[:count]
        return list(zip(self.neighbours, labels.tolist(), distances.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Current:
    """A snapshot with the parameters that it was made under, and its classifier.

    The classifier is as it was when they were read: what changes of it later, and is not in `calibrations.latest_key`,
    no decision asks for. parameters: None if it has logits only.
    """

    classifier: Classifier
    calibration: Calibration
    parameters: StoredParameters | None


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The nearest exemplars of one point, as in `PointDecision`."""

    near: NearestExemplars | None
    neighbours: Sequence[DescribedExemplar]


class PointScorer:
    """Decides on some points at a time, by the method of the current snapshot; keeps what it read of snapshots.

    Threads may share it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._engine = workspace.engine
        self._search = PointSearch(workspace)
        self._snapshots: Recent[tuple[str, int, UUID, str, str | None, UUID], _Current] = Recent()
        self._deciders = {name: method.point_decider(workspace) for name, method in METHODS.items()}

    def score(
        self,
        name: str,
        vector: Float32Array | None,
        *,
        logits: Float32Array | None = None,
        attributes: Mapping[str, Any] | None = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        hnsw_ef_search: int | None = None,
        neighbours: int | None = None,
    ) -> PointDecision:
        """Decide on one point by the current snapshot; arguments and errors are those of `score_each`."""
        (decision,) = self.score_each(
            name,
            [GivenPoint(vector, logits, attributes or {})],
            weighted=weighted,
            require_full_match=require_full_match,
            hnsw_ef_search=hnsw_ef_search,
            neighbours=neighbours,
        )
        return decision

    def score_each(
        self,
        name: str,
        points: Sequence[GivenPoint],
        *,
        weighted: bool | None = None,
        require_full_match: bool = False,
        hnsw_ef_search: int | None = None,
        neighbours: int | None = None,
        stated: Stated | None = None,
    ) -> list[PointDecision]:
        """Decide on each of some points by the current snapshot, the same one for all, as if each were alone.

        weighted: by the localizer, or plain; None: as is usual for the method. require_full_match: reject q < K.
        hnsw_ef_search: search by the HNSW index, which may miss neighbours, with this number of candidates; None:
            exactly.
        neighbours: how many of the nearest exemplars, at most K, are described with a decision; None: all.
        stated: what is stated of the points; None: that was checked before.
        Raises NotReadyError before the first calibration, or where there is no such index; ConflictError if the points
        come from another extractor than the classifier's; InvalidInputError if the method needs logits, if something
        needs vectors and there are none, if weights are asked for of a certified calibration, or as in `as_logits`.
        """
        if stated is not None:
            points = as_logits(points, stated.probabilities)
        while True:
            with consistent_view(self._engine) as connection:
                current = self._current(connection, name)
                if stated is not None:
                    require_extractor(current.classifier, stated.extractor, "the request")
                weights = settled_weights(current.calibration, weighted)
                _require_decidable(current, points, weighted=weights, require_full_match=require_full_match)
                found = self._look_up(connection, current, points, hnsw_ef_search, neighbours)
                decide = self._deciders[current.calibration.method].look_up(
                    connection, current.classifier, current.calibration, _to_decide(current, points, found, weights)
                )
            try:
                explained = decide(require_full_match=require_full_match)
            except NotFoundError as error:
                if error.code is not Code.UNKNOWN_CALIBRATION:
                    raise
                continue  # the snapshot was retired and deleted in between, so there is a newer one
            return [_decision(current, *one) for one in zip(points, explained, found, strict=True)]

    def _look_up(
        self,
        connection: Connection,
        current: _Current,
        points: Sequence[GivenPoint],
        hnsw_ef_search: int | None,
        neighbours: int | None,
    ) -> list[_Found]:
        classifier = current.classifier
        if current.parameters is None:
            if hnsw_ef_search is not None:
                classifiers.require_vectors(classifier, "a search")
            return [_Found(None, ())] * len(points)
        vectors = [point.vector for point in points if point.vector is not None]
        if len(vectors) < len(points):
            raise InvalidInputError(f"expected a vector, which classifier {classifier.name!r} decides on, got none")
        if hnsw_ef_search is None:
            found = self._search.nearest(connection, classifier, vectors)
        else:
            found = [nearest.hnsw_nearest(connection, classifier, vector, hnsw_ef_search) for vector in vectors]
        if neighbours == 0:
            return [_Found(near, ()) for near in found]
        described = exemplars.described(connection, np.concatenate([near.ids[:neighbours] for near in found]))
        count = len(described) // len(found)
        return [_Found(near, described[row * count : (row + 1) * count]) for row, near in enumerate(found)]

    def _current(self, connection: Connection, name: str) -> _Current:
        """The current snapshot of the classifier of this name, or an error that says what is missing."""

        def read() -> _Current:
            classifier = classifiers.by_name(connection, name)
            calibration = calibrations.latest(connection, classifier)
            calibrations.require_whole(connection, classifier, calibration)
            parameters = approximations.parameters_of(connection, calibration.knn_parameters_id)
            return _Current(classifier, calibration, parameters)

        key = calibrations.latest_key(connection, name)
        return read() if key is None else self._snapshots.get((name, *key), read)


def _require_decidable(
    current: _Current, points: Sequence[GivenPoint], *, weighted: bool, require_full_match: bool
) -> None:
    """Raise InvalidInputError unless points are as their classifier and what is asked for need them."""
    classifier = current.classifier
    if current.parameters is None:
        require_decidable(classifier, weighted=weighted, require_full_match=require_full_match)
    for row, point in enumerate(points):
        place = f"points[{row}]." if len(points) > 1 else ""
        if point.vector is not None and classifier.knn is not None:
            _require_length(f"{place}vector", point.vector, classifier.dimension)
        if point.logits is not None:
            _require_length(f"{place}logits", point.logits, classifier.class_count)


def _require_length(where: str, values: Float32Array, length: int) -> None:
    if len(values) != length:
        raise InvalidInputError(f"{where}: expected {length} numbers, got {len(values)}")


def _to_decide(
    current: _Current, points: Sequence[GivenPoint], found: Sequence[_Found], weighted: bool
) -> PointsToDecide:
    """All points at once, each with the bits that it has alone."""
    groups = group_values(current.calibration.group_attributes, [point.attributes for point in points])
    if current.parameters is None:
        alone = [point_of_logits(current.classifier, point.vector, point.logits) for point in points]
        return PointsToDecide(None, None, np.concatenate([point.require_logits() for point in alone]), groups)
    near = nearest.as_neighbours([one.near for one in found if one.near is not None])
    vectors = [point.vector for point in points if point.vector is not None]
    logits = [point.logits for point in points if point.logits is not None]
    return PointsToDecide(
        approximate(*near, current.parameters.knn),
        np.stack(vectors) if weighted else None,
        np.stack(logits) if len(logits) == len(points) else None,
        groups,
    )


def _decision(current: _Current, point: GivenPoint, explained: Explained, found: _Found) -> PointDecision:
    return PointDecision(
        point=point,
        classifier=current.classifier,
        calibration_id=current.calibration.id,
        fields=explained.fields,
        category_counts=explained.category_counts,
        nearest=found.near,
        neighbours=found.neighbours,
        policy=explained.policy,
    )
