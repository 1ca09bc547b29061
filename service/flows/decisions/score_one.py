"""The decision on one vector, at once: by SQL from the current snapshot, and nothing is stored.

A job decides the same, in every bit, on an exemplar with this vector. Weights need all of vp: its vectors, and the
order of its categories, are read when the first singleton is weighted under a snapshot, and kept.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.service.core.approximation.knn import approximate
from venn_admit.service.core.approximation.localizer import category_weight
from venn_admit.service.core.calibrators.bands import bin_of
from venn_admit.service.core.calibrators.venn_admit.decide_one import decide_one
from venn_admit.service.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.service.core.types import AdmitSets, Approximation, Float32Array, FloatArray, IntArray, Split
from venn_admit.service.flows.decisions.fields import decision_fields
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.calibrations.calibrations import BandEvidence
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.exemplars import approximations, classifiers
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search import nearest
from venn_admit.service.store.search.array_cache import ArrayCache
from venn_admit.service.store.search.nearest import NearestExemplars


@dataclass(frozen=True, slots=True, eq=False)
class PointDecision:
    """What is decided on one vector, and why.

    fields: by the names that a stored decision has them under. category_counts: (C,) int64, points of each label in
    the category, 0 where the set is no singleton. nearest: the K nearest training exemplars.
    """

    classifier: Classifier
    calibration_id: int
    fields: dict[str, Any]
    category_counts: IntArray
    nearest: NearestExemplars


@dataclass(frozen=True, slots=True, eq=False)
class _Localizer:
    """All of a snapshot's vp, its vectors in the order of the index."""

    eta_loc: float
    venn: VennIndex
    vectors: Float32Array

    def category_weight(self, vector: Float32Array, sets: AdmitSets, approximation: Approximation) -> FloatArray:
        """Psi' of one point, (1,)."""
        category = self.venn.categories(
            sets.singleton, approximation.predicted, approximation.match_count, approximation.distance
        )
        return category_weight(vector[np.newaxis], self.vectors, category.low, category.high, self.eta_loc)


class PointScorer:
    """Decides on vectors one at a time; keeps what weighs categories of the snapshots used last."""

    def __init__(self, engine: Engine, cache: ArrayCache) -> None:
        self._engine = engine
        self._cache = cache
        self._localizer = lru_cache(maxsize=4)(self._load_localizer)

    def score(
        self,
        name: str,
        vector: Float32Array,
        *,
        weighted: bool = True,
        require_full_match: bool = False,
        hnsw_ef_search: int | None = None,
    ) -> PointDecision:
        """Decide on a vector by the current snapshot.

        vector: (D,) float32, finite. weighted: by the localizer, or plain. require_full_match: reject q < K.
        hnsw_ef_search: search by the HNSW index, which may miss neighbours, with so many candidates; None: exactly.
        Raises NotReadyError before the first calibration, or where there is no such index.
        """
        with consistent_view(self._engine) as connection:
            classifier = classifiers.by_name(connection, name)
            calibration = calibrations.latest(connection, classifier)
            parameters = approximations.parameters_by_id(connection, calibration.knn_parameters_id)
            near = _search(connection, classifier, vector, hnsw_ef_search)
            approximation = approximate(*near.as_neighbours(), parameters.knn)
            evidence = _evidence(connection, classifier, calibration, approximation)

        decided = decide_one(
            approximation,
            calibration.settings,
            band_size=evidence.band_size,
            threshold_score=evidence.threshold_score,
            category_count=evidence.category_count,
            neighbour_count=classifier.neighbour_count,
            require_full_match=require_full_match,
            category_weight=(
                lambda sets: self._localizer(classifier.id, calibration.id).category_weight(vector, sets, approximation)
            )
            if weighted
            else None,
        )
        return PointDecision(
            classifier=classifier,
            calibration_id=calibration.id,
            fields=decision_fields(approximation, decided),
            category_counts=evidence.category_count * int(decided.sets.singleton[0]),
            nearest=near,
        )

    def _load_localizer(self, classifier_id: int, calibration_id: int) -> _Localizer:
        with consistent_view(self._engine) as connection:
            classifier = classifiers.by_id(connection, classifier_id)
            calibration = calibrations.by_id(connection, classifier, calibration_id)
            parameters = approximations.parameters_by_id(connection, calibration.knn_parameters_id)
            vp = calibrations.read_points(connection, calibration, Split.VP)
        venn = VennIndex(
            vp.points,
            vp.singleton,
            class_count=classifier.class_count,
            settings=calibration.settings,
            omega=calibration.radius.omega,
        )
        vectors = self._cache.localizer_vectors(self._engine, classifier, calibration, vp.exemplar_ids[venn.order])
        return _Localizer(parameters.eta_loc, venn, vectors)


def _search(
    connection: Connection, classifier: Classifier, vector: Float32Array, hnsw_ef_search: int | None
) -> NearestExemplars:
    if hnsw_ef_search is None:
        return nearest.exact_nearest(connection, classifier, vector)
    return nearest.hnsw_nearest(connection, classifier, vector, hnsw_ef_search)


def _evidence(
    connection: Connection,
    classifier: Classifier,
    calibration: calibrations.Calibration,
    approximation: Approximation,
) -> BandEvidence:
    return calibrations.band_evidence(
        connection,
        calibration,
        classifier.class_count,
        predicted=int(approximation.predicted[0]),
        q_bin=int(bin_of(approximation.match_count, calibration.settings.bin_edges)[0]),
        distance=float(approximation.distance[0]),
    )
