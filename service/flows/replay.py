"""A stored decision computed once more from its snapshot, with the evidence it rests on."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Engine, Row

from service.core.approximation import approximate
from service.core.decide import Localizer, decide
from service.core.neighbors import exact_neighbours
from service.core.types import FloatArray, Reason, Support
from service.flows.score import load_snapshot
from service.store import classifiers, decisions, exemplars
from service.store.array_cache import ArrayCache
from service.store.classifiers import Classifier
from service.store.engine import connect


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """What is stored and what comes out now, field by field, and the nearest training exemplars.

    differing: the fields that are not equal, bit for bit. neighbours: K rows (external_id, label,
    network_predicted, attributes), nearest first; distances: (K,) float64.
    """

    classifier: Classifier
    external_id: str
    label: int | None
    calibration_id: int
    stored: dict[str, Any]
    computed: dict[str, Any]
    differing: tuple[str, ...]
    neighbours: tuple[Row[Any], ...]
    distances: FloatArray


def replay(engine: Engine, cache: ArrayCache, decision_id: int) -> Replayed:
    """Search, approximate and decide again, among the training exemplars and in the snapshot of the time."""
    with connect(engine) as connection:
        row = decisions.by_id(connection, decision_id)
        classifier = classifiers.by_id(connection, row.classifier_id)
        query = exemplars.vectors(connection, classifier, np.array([row.exemplar_id]))
    snapshot = load_snapshot(engine, cache, classifier, row.calibration_id)
    support = cache.support(engine, classifier)
    then = int(np.searchsorted(support.ids, row.complete_to, side="right"))

    found = exact_neighbours(query, support.vectors[:then], classifier.neighbour_count)
    approximation = approximate(
        found, Support(support.support.logits[:then], support.support.labels[:then]), snapshot.parameters.knn
    )
    decided = decide(
        snapshot.admit,
        snapshot.venn,
        approximation,
        snapshot.calibration.settings,
        neighbour_count=classifier.neighbour_count,
        require_full_match=row.require_full_match,
        localizer=Localizer(snapshot.parameters.eta_loc, query, snapshot.localizer_vectors) if row.weighted else None,
    )

    sets, probabilities, selection = decided.sets, decided.probabilities, decided.selection
    decision, reason = int(selection.decision[0]), int(selection.reason[0])
    computed = {
        "predicted": int(approximation.predicted[0]),
        "match_count": int(approximation.match_count[0]),
        "distance": float(approximation.distance[0]),
        "logits": approximation.logits[0].tolist(),
        "admit_set": "".join("1" if included else "0" for included in sets.included[0].tolist()),
        "band_size": sets.band_size[0].tolist(),
        "threshold": sets.threshold[0].tolist(),
        "category_size": int(probabilities.category_size[0]),
        "upweight": _null_if_nan(probabilities.upweight[0]),
        "lower": _null_if_nan(probabilities.lower[0]),
        "upper": _null_if_nan(probabilities.upper[0]),
        "decision": None if decision < 0 else decision,
        "reason": None if reason < 0 else str(tuple(Reason)[reason]),
    }
    stored = {field: row._mapping[field] for field in computed}
    with connect(engine) as connection:
        neighbours = exemplars.described(connection, support.ids[found.indices[0]])
    return Replayed(
        classifier=classifier,
        external_id=row.external_id,
        label=row.label,
        calibration_id=row.calibration_id,
        stored=stored,
        computed=computed,
        differing=tuple(field for field in computed if computed[field] != stored[field]),
        neighbours=tuple(neighbours),
        distances=found.distances[0],
    )


def _null_if_nan(value: np.float64) -> float | None:
    return None if math.isnan(value) else float(value)
