"""The decision on one vector, at once: by SQL from the current snapshot, and nothing is stored.

A job decides the same, in every bit, on an exemplar with this vector.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.service.core.approximation.knn import approximate
from venn_admit.service.core.types import Float32Array, IntArray
from venn_admit.service.flows.methods.method import PointsToDecide
from venn_admit.service.flows.methods.registry import METHODS
from venn_admit.service.store.calibrations import calibrations
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


class PointScorer:
    """Decides on vectors one at a time, by the method of the current snapshot."""

    def __init__(self, engine: Engine, cache: ArrayCache) -> None:
        self._engine = engine
        self._deciders = {name: method.point_decider(engine, cache) for name, method in METHODS.items()}

    def score(
        self,
        name: str,
        vector: Float32Array,
        *,
        logits: Float32Array | None = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        hnsw_ef_search: int | None = None,
    ) -> PointDecision:
        """Decide on a vector by the current snapshot.

        vector: (D,) float32, finite. logits: (C,) float32, the network's, which some methods need. weighted: by the
        localizer, or plain; None: as is usual for the method. require_full_match: reject q < K.
        hnsw_ef_search: search by the HNSW index, which may miss neighbours, with so many candidates; None: exactly.
        Raises NotReadyError before the first calibration, or where there is no such index; InvalidInputError if the
        method needs logits.
        """
        with consistent_view(self._engine) as connection:
            classifier = classifiers.by_name(connection, name)
            calibration = calibrations.latest(connection, classifier)
            parameters = approximations.parameters_by_id(connection, calibration.knn_parameters_id)
            near = _search(connection, classifier, vector, hnsw_ef_search)
            if weighted is None:
                weighted = METHODS[calibration.method].weighted_by_default
            points = PointsToDecide(
                approximate(*near.as_neighbours(), parameters.knn),
                vector[np.newaxis] if weighted else None,
                None if logits is None else logits[np.newaxis],
            )
            decide = self._deciders[calibration.method].look_up(connection, classifier, calibration, points)
        explained = decide(require_full_match=require_full_match)
        return PointDecision(
            classifier=classifier,
            calibration_id=calibration.id,
            fields=explained.fields,
            category_counts=explained.category_counts,
            nearest=near,
        )


def _search(
    connection: Connection, classifier: Classifier, vector: Float32Array, hnsw_ef_search: int | None
) -> NearestExemplars:
    if hnsw_ef_search is None:
        return nearest.exact_nearest(connection, classifier, vector)
    return nearest.hnsw_nearest(connection, classifier, vector, hnsw_ef_search)
