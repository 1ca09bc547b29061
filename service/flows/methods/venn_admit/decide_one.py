"""The decision of Venn-ADMIT on one point, from bands that SQL counts.

A job decides the same, in every bit. Weights need all of vp: its vectors, and the order of its categories, are read
when the first singleton is weighted under a snapshot, and kept.
"""

from dataclasses import dataclass
from functools import lru_cache, partial

from sqlalchemy import Connection, Engine

from venn_admit.service.core.approximation.localizer import category_weight
from venn_admit.service.core.calibrators.bands import bin_of
from venn_admit.service.core.calibrators.venn_admit.decide_one import decide_one
from venn_admit.service.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.service.core.types import AdmitSets, Approximation, Float32Array, FloatArray, Split
from venn_admit.service.flows.methods.method import DecideOne, Explained, PointsToDecide
from venn_admit.service.flows.methods.venn_admit.snapshot import DecidedByAdmit
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.calibrations.calibrations import BandEvidence, Calibration
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.exemplars import approximations, classifiers
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


@dataclass(frozen=True, slots=True, eq=False)
class _Localizer:
    """All of a snapshot's vp, its vectors in the order of the index."""

    eta_loc: float
    venn: VennIndex
    vectors: Float32Array

    def category_weight(self, vector: Float32Array, sets: AdmitSets, approximation: Approximation) -> FloatArray:
        """Psi' of one point, (1,); vector: (1, D)."""
        category = self.venn.categories(
            sets.singleton, approximation.predicted, approximation.match_count, approximation.distance
        )
        return category_weight(vector, self.vectors, category.low, category.high, self.eta_loc)


class AdmitPointDecider:
    """Decides on one point at a time; keeps what weighs categories of the snapshots used last."""

    def __init__(self, engine: Engine, cache: ArrayCache) -> None:
        self._engine = engine
        self._cache = cache
        self._localizer = lru_cache(maxsize=4)(self._load_localizer)

    def look_up(
        self, connection: Connection, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> DecideOne:
        """Read the evidence of the band; see the protocol `PointDecider`."""
        evidence = _evidence(connection, classifier, calibration, points.view)
        return partial(self._decide, classifier, calibration, points, evidence)

    def _decide(
        self,
        classifier: Classifier,
        calibration: Calibration,
        points: PointsToDecide,
        evidence: BandEvidence,
        *,
        require_full_match: bool,
    ) -> Explained:
        approximation, vectors = points.view, points.vectors
        decided = decide_one(
            approximation,
            calibration.settings,
            band_size=evidence.band_size,
            threshold_score=evidence.threshold_score,
            category_count=evidence.category_count,
            neighbour_count=classifier.neighbour_count,
            require_full_match=require_full_match,
            category_weight=None
            if vectors is None
            else lambda sets: self._localizer(classifier.id, calibration.id).category_weight(
                vectors, sets, approximation
            ),
        )
        return Explained(
            DecidedByAdmit(approximation, decided).fields, evidence.category_count * int(decided.sets.singleton[0])
        )

    def _load_localizer(self, classifier_id: int, calibration_id: int) -> _Localizer:
        with consistent_view(self._engine) as connection:
            classifier = classifiers.by_id(connection, classifier_id)
            calibration = calibrations.by_id(connection, classifier, calibration_id)
            parameters = approximations.parameters_by_id(connection, calibration.parameters_id)
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


def _evidence(
    connection: Connection, classifier: Classifier, calibration: Calibration, approximation: Approximation
) -> BandEvidence:
    return calibrations.band_evidence(
        connection,
        calibration,
        classifier.class_count,
        predicted=int(approximation.predicted[0]),
        q_bin=int(bin_of(approximation.match_count, calibration.settings.bin_edges)[0]),
        distance=float(approximation.distance[0]),
    )
