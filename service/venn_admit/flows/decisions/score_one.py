"""The decision on one point, or on each of some, at once, from the snapshot in use; nothing is stored.

A job decides the same, in every bit, on an exemplar with this vector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.evaluation.category import Bounds
from venn_admit.core.groups import group_values
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import Code, InvalidInputError, NotFoundError, VennAdmitError
from venn_admit.files.inputs import OF_NETWORK
from venn_admit.files.records import Stated, taken_logits
from venn_admit.flows.data.ingest import require_extractor
from venn_admit.flows.decisions.logits_only import point_of_logits, require_decidable
from venn_admit.flows.decisions.point_search import PointSearch
from venn_admit.methods.method import AppliedPolicy, DecideEach, Explained, NotKeptError, PointsToDecide
from venn_admit.methods.recent import Recent
from venn_admit.methods.registry import METHODS, settled_weights
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration, LatestKey
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import approximations, classifiers, exemplars
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.exemplars import DescribedExemplar
from venn_admit.store.search import nearest
from venn_admit.store.search.nearest import NearestExemplars
from venn_admit.store.workspace import Workspace

# What is kept of training exemplars as users know them, for each of this many classifiers; and of one without texts.
_DESCRIBED_BYTES, _DESCRIBED_CLASSIFIERS, _EMPTY_BYTES = 32 << 20, 4, 400
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
    classifier has logits only. policy: None if the calibration was asked for no certificate. bounds: as in
    `category_shares`.
    """

    point: GivenPoint
    classifier: Classifier
    calibration_id: int
    fields: dict[str, Any]
    category_counts: IntArray
    nearest: NearestExemplars | None
    neighbours: Sequence[DescribedExemplar]
    policy: AppliedPolicy | None
    bounds: Bounds | None

    @property
    def near(self) -> list[Near]:
        """The neighbours that were asked for, each with its label and its distance."""
        count = len(self.neighbours)
        if self.nearest is None or count == 0:
            return []
        labels, distances = self.nearest.labels[:count], self.nearest.distances[:count]
        return list(zip(self.neighbours, labels.tolist(), distances.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Current:
    """A snapshot with the parameters that it was made under, and its classifier.

    The classifier is as it was when they were read: what changes of it later, and is not in the key, no decision asks
    for. parameters: None if it has logits only.
    """

    key: LatestKey
    classifier: Classifier
    calibration: Calibration
    parameters: StoredParameters | None


@dataclass(frozen=True, slots=True, eq=False)
class AskedPoints:
    """What one request asks for, as `PointScorer.score_each` says.

    key_id: the key of the HTTP service that it shows, which must still be valid; None: that was seen before.
    """

    points: Sequence[GivenPoint]
    weighted: bool | None = None
    require_full_match: bool = False
    hnsw_ef_search: int | None = None
    neighbours: int | None = None
    stated: Stated | None = None
    key_id: int | None = None

    @property
    def way(self) -> tuple[object, ...]:
        """What requests have in common that are decided together."""
        have_logits = all(point.logits is not None for point in self.points)
        return self.weighted, self.require_full_match, self.hnsw_ef_search, have_logits


@dataclass(frozen=True, slots=True, eq=False)
class _LookedUp:
    """What decides on some points, and the nearest exemplars of each, None if there are no vectors."""

    decide: DecideEach
    near: Sequence[NearestExemplars | None]

    def ids(self, together: Sequence[AskedPoints]) -> list[list[int]]:
        """The exemplars that are described with each point."""
        counts = [asked.neighbours for asked in together for _ in asked.points]
        each = zip(self.near, counts, strict=True)
        return [[] if near is None else near.ids[:count].tolist() for near, count in each]


class _Descriptions:
    """What training exemplars are, which never changes while there are the same ones, up to `_DESCRIBED_BYTES`."""

    def __init__(self) -> None:
        self.known: dict[int, DescribedExemplar] = {}
        self._left = _DESCRIBED_BYTES

    def add(self, found: Mapping[int, DescribedExemplar]) -> None:
        """Keep what some are, if there is room."""
        for key, one in found.items():
            size = _EMPTY_BYTES + sum(_EMPTY_BYTES + len(str(value)) for value in one.attributes.values())
            if size <= self._left and self.known.setdefault(key, one) is one:
                self._left -= size


class PointScorer:
    """Decides on some points at a time, by the method of the snapshot in use; keeps what it read of snapshots.

    Threads may share it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._engine = workspace.engine
        self._search = PointSearch(workspace)
        self._snapshots: Recent[LatestKey, _Current] = Recent()
        # What decided last, by the name that was asked for.
        self._last: dict[str, _Current] = {}
        self._descriptions: Recent[tuple[int, UUID], _Descriptions] = Recent(most=_DESCRIBED_CLASSIFIERS)
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
        """Decide on one point by the snapshot in use; arguments and errors are those of `score_each`."""
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
        """Decide on each of some points by the snapshot in use, the same one for all, as if each were alone.

        weighted: by the localizer, or plain; None: as is usual for the method. require_full_match: reject q < K.
        hnsw_ef_search: search by the HNSW index, which may miss neighbours, with this number of candidates; None:
            exactly.
        neighbours: how many of the nearest exemplars, at most K, are described with a decision; None: all.
        stated: what is stated of the points; None: that was checked before.
        Raises NotReadyError before the first calibration, or where there is no such index; ConflictError if the points
        come from another extractor than the classifier's; InvalidInputError if the method needs logits, if something
        needs vectors and there are none, if weights are asked for of a certified calibration, or as in `as_logits`.
        """
        return self.score_asked(
            name, AskedPoints(points, weighted, require_full_match, hnsw_ef_search, neighbours, stated)
        )

    def score_asked(self, name: str, asked: AskedPoints) -> list[PointDecision]:
        """Decide on the points of a request whose key is valid, if it shows one. Raises as `score_each` does."""
        (decided,) = self.score_kept(name, [replace(asked, key_id=None)])
        if decided is None:
            asked = _settled(asked)
        while decided is None:
            decided = self._by_view(name, asked)
        return decided

    def score_kept(self, name: str, together: Sequence[AskedPoints]) -> list[list[PointDecision] | None]:
        """Decide on the points of several requests by what was read before, and see that it is current, in a statement.

        None for a request that `score_each` must decide on, or refuse, once its key was looked up.

        Args:
            name: The classifier's name.
            together: Requests with the same `way`; each is decided as if it were alone.

        Raises:
            DatabaseError: The statement failed.
        """
        current = self._last.get(name)
        if current is None:
            return [None] * len(together)
        try:
            asked = [_settled(one) for one in together]
            for one in asked:
                _require_extractor(current, one)
            points = [point for one in asked for point in one.points]
            looked_up = self._look_up(None, current, replace(asked[0], points=points))
            explained = looked_up.decide(require_full_match=asked[0].require_full_match)
        except (NotKeptError, VennAdmitError):  # which may be an error of an older snapshot, or of one of them
            return [None] if len(together) == 1 else [self.score_kept(name, [one])[0] for one in together]
        ids, key_ids = looked_up.ids(asked), {one.key_id for one in asked if one.key_id is not None}
        revision = current.classifier.id, current.classifier.support_revision
        descriptions = self._descriptions.get(revision, _Descriptions)
        unknown = list({one for some in ids for one in some if one not in descriptions.known})
        latest = calibrations.latest_with(self._engine, name, unknown, list(key_ids))
        if latest.key != current.key or len(latest.described) < len(unknown):
            return [None] * len(together)
        found = dict(zip(unknown, latest.described, strict=True))
        described = [[found.get(one) or descriptions.known[one] for one in some] for some in ids]
        descriptions.add(found)
        all_decided = iter(_decisions(current, points, explained, looked_up, described))
        of_each = [list(islice(all_decided, len(one.points))) for one in asked]
        refused = key_ids.difference(latest.valid_keys)
        return [None if one.key_id in refused else decided for one, decided in zip(asked, of_each, strict=True)]

    def _by_view(self, name: str, asked: AskedPoints) -> list[PointDecision] | None:
        """Decide by the snapshot in use of a view; None if it was deleted meanwhile, so that there is a newer one."""
        with consistent_view(self._engine) as connection:
            current = self._current(connection, name)
            looked_up = self._look_up(connection, current, asked)
            ids = looked_up.ids([asked])
            keys = np.array(list({one for some in ids for one in some}), np.int64)
            found = dict(zip(keys.tolist(), exemplars.described(connection, keys), strict=True)) if len(keys) else {}
        try:
            explained = looked_up.decide(require_full_match=asked.require_full_match)
        except NotFoundError as error:
            if error.code is not Code.UNKNOWN_CALIBRATION:
                raise
            return None
        self._last[name] = current
        described = [[found[one] for one in some] for some in ids]
        return _decisions(current, asked.points, explained, looked_up, described)

    def _look_up(self, connection: Connection | None, current: _Current, asked: AskedPoints) -> _LookedUp:
        """Return what decides. connection: a view in which the snapshot is in use; None as in `PointDecider`."""
        classifier, points = current.classifier, asked.points
        _require_extractor(current, asked)
        weights = settled_weights(current.calibration, asked.weighted)
        _require_decidable(current, points, weighted=weights, require_full_match=asked.require_full_match)
        near = self._near(connection, current, points, asked.hnsw_ef_search)
        decide = self._deciders[current.calibration.method].look_up(
            connection, classifier, current.calibration, _to_decide(current, points, near, weights)
        )
        return _LookedUp(decide, near)

    def _near(
        self, connection: Connection | None, current: _Current, points: Sequence[GivenPoint], hnsw_ef_search: int | None
    ) -> Sequence[NearestExemplars | None]:
        classifier = current.classifier
        if current.parameters is None:
            if hnsw_ef_search is not None:
                classifiers.require_vectors(classifier, "a search")
            return [None] * len(points)
        vectors = [point.vector for point in points if point.vector is not None]
        if len(vectors) < len(points):
            raise InvalidInputError(f"expected a vector, which classifier {classifier.name!r} decides on, got none")
        if hnsw_ef_search is None:
            return self._search.nearest(connection, classifier, vectors)
        if connection is None:
            raise NotKeptError
        return [nearest.hnsw_nearest(connection, classifier, vector, hnsw_ef_search) for vector in vectors]

    def _current(self, connection: Connection, name: str) -> _Current:
        """The current snapshot of the classifier of this name, or an error that says what is missing."""
        key = calibrations.latest_key(connection, name)

        def read() -> _Current:
            classifier = classifiers.by_name(connection, name)
            calibration = calibrations.latest(connection, classifier)
            calibrations.require_whole(connection, classifier, calibration)
            parameters = approximations.parameters_of(connection, calibration.knn_parameters_id)
            assert key is not None, "a classifier with a snapshot has the key of one"
            return _Current(key, classifier, calibration, parameters)

        return read() if key is None else self._snapshots.get(key, read)


def _settled(asked: AskedPoints) -> AskedPoints:
    """What is asked for, with logits where probabilities are stated."""
    return asked if asked.stated is None else replace(asked, points=as_logits(asked.points, asked.stated.probabilities))


def _require_extractor(current: _Current, asked: AskedPoints) -> None:
    if asked.stated is not None:
        require_extractor(current.classifier, asked.stated.extractor, "the request")


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
        raise InvalidInputError(f"{where}: expected {length} numbers, got {len(values)}; {OF_NETWORK}")


def _to_decide(
    current: _Current, points: Sequence[GivenPoint], near: Sequence[NearestExemplars | None], weighted: bool
) -> PointsToDecide:
    """All points at once, each with the bits that it has alone."""
    groups = group_values(current.calibration.group_attributes, [point.attributes for point in points])
    if current.parameters is None:
        alone = [point_of_logits(current.classifier, point.vector, point.logits) for point in points]
        return PointsToDecide(None, None, np.concatenate([point.require_logits() for point in alone]), groups)
    found = nearest.as_neighbours([one for one in near if one is not None])
    vectors = [point.vector for point in points if point.vector is not None]
    logits = [point.logits for point in points if point.logits is not None]
    return PointsToDecide(
        approximate(*found, current.parameters.knn),
        np.stack(vectors) if weighted else None,
        np.stack(logits) if len(logits) == len(points) else None,
        groups,
    )


def _decisions(
    current: _Current,
    points: Sequence[GivenPoint],
    explained: Sequence[Explained],
    looked_up: _LookedUp,
    described: Sequence[Sequence[DescribedExemplar]],
) -> list[PointDecision]:
    return [
        PointDecision(
            point=point,
            classifier=current.classifier,
            calibration_id=current.calibration.id,
            fields=one.fields,
            category_counts=one.category_counts,
            nearest=near,
            neighbours=neighbours,
            policy=one.policy,
            bounds=one.bounds,
        )
        for point, one, near, neighbours in zip(points, explained, looked_up.near, described, strict=True)
    ]
