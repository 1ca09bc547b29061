"""What a method is asked of its snapshots for reports, evaluations and what-if questions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.comparison.held_out import HeldOut
from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.measures import ClassTallies, measure_admission
from venn_admit.core.evaluation.points import OwnMethod
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.partitions import PartitionMap, PlacedPoints, map_rows, partition_map
from venn_admit.core.monitoring.traffic import Comparison
from venn_admit.core.split_names import Split
from venn_admit.core.types import (
    AdmitOutcome,
    BoolArray,
    CalibrationPoints,
    Float32Array,
    FloatArray,
    IntArray,
    SelectiveMethod,
)
from venn_admit.report.calibration.report import MethodPart
from venn_admit.report.evaluation.dataset import ClassCoverage, class_coverage, worst_classes
from venn_admit.report.evaluation.evaluated import SettingsShown
from venn_admit.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.store.decisions.evaluations import EvaluatedRows
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationToDescribe:
    """A calibration, and recent traffic.

    decided_documents: of its points; None if no two share one. quartiles: (3,) float64, of d over all points of the
    calibration; None if the classifier has logits only.
    """

    classifier: Classifier
    calibration: Calibration
    decided: DecidedPoints
    decided_documents: Documents | None
    quartiles: FloatArray | None

    @property
    def label_count(self) -> float:
        """The number of random labels so far, by the share of them that goes to mc."""
        known, classifier = self.calibration, self.classifier
        if known.method_settings.undivided:
            return known.vp_count / (1 - float(classifier.knn_share))
        return known.mc_count / float(classifier.mc_share)

    @property
    def map_rows(self) -> tuple[int, ...]:
        """The lower edges of the groups of q of the partition map; empty if the classifier has logits only."""
        if self.classifier.knn is None:
            return ()
        return map_rows(self.calibration.method_settings.q_bins, self.classifier.neighbour_count)

    def coverage_of(
        self, points: CalibrationPoints, ranking: FloatArray, admitted: BoolArray, documents: Documents | None
    ) -> ClassCoverage:
        """Return what is right of what is admitted of n points of the calibration, class by class.

        ranking: (n,) float64, the probability by which points are admitted, the greatest first; NaN for one that can
        never be. admitted: (n,) bool. documents: of the points; None if no two share one.
        """
        class_count = self.classifier.class_count

        def right_of(chosen: BoolArray) -> ClassTallies:
            return measure_admission(points.label, points.predicted, chosen, class_count, documents).right

        right, everything = right_of(admitted), right_of(np.ones_like(admitted))
        shown = worst_classes(right, everything, self.calibration.method_settings.alpha)
        return class_coverage(points.label, points.predicted, ranking, documents, admitted=right, shown=shown)

    def map_of(self, calibrated: PlacedPoints) -> PartitionMap | None:
        """Return the map of these points of the calibration; None if the classifier has logits only."""
        if self.quartiles is None:
            return None
        recent = self.decided.approximation.take(np.flatnonzero(self.decided.comparable))
        return partition_map(
            calibrated,
            (recent.match_count, recent.distance),
            match_edges=self.map_rows,
            neighbour_count=self.classifier.neighbour_count,
            distance_edges=self.quartiles,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """What the method says.

    comparison: of recent traffic with its calibration data; None if nothing is comparable. map: of its calibration data
    and recent traffic; None if the classifier has logits only. coverage: of its calibration data.
    """

    part: MethodPart
    comparison: Comparison | None
    map: PartitionMap | None
    coverage: ClassCoverage


@dataclass(frozen=True, slots=True, eq=False)
class PointsToJudge:
    """Labelled points, the decisions on them, and the held-out data that other methods are calibrated on.

    rows: n points. vectors: (n, D) float32; None if the classifier has logits only. vp_vectors: returns the vectors of
    rows of `held_out.vp`, (m, D) float32, in the order in which they are given, (m,) int64, if there are vectors. All
    of these may be memory maps.
    """

    classifier: Classifier
    rows: EvaluatedRows
    vectors: Float32Array | None
    held_out: HeldOut
    vp_vectors: Callable[[IntArray], Float32Array]

    @property
    def own_vectors(self) -> Float32Array:
        """Those of the points, if there are vectors."""
        assert self.vectors is not None, "a classifier with logits only has no vectors"
        return self.vectors


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What the method of a snapshot makes of the points.

    own: None for weighted Venn-ADMIT. admit: what ADMIT and Venn-ADMIT make of them; None if they are left out.
    localizer_predicted: (n,) int64, or None. selective: what the method itself admits, in place of the rival of the
    same name, if it has one. parameters: name and words of what was computed besides.
    """

    own: OwnMethod | None
    settings: SettingsShown
    admit: AdmitOutcome | None
    localizer_predicted: IntArray | None = None
    selective: tuple[SelectiveMethod, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()


def points_of_split(rows: CalibrationRows, split: Split) -> SnapshotPoints:
    """Return one split of a snapshot's rows as `calibrations.read_points` returns it, ordered by band."""
    wanted = np.flatnonzero(rows.in_vp == (split == Split.VP))
    ids, distance = rows.exemplar_ids[wanted], rows.points.distance[wanted]
    order = wanted[np.lexsort((ids, distance, rows.bins[wanted]))]
    points = rows.points
    return SnapshotPoints(
        exemplar_ids=rows.exemplar_ids[order],
        points=CalibrationPoints(
            label=points.label[order],
            predicted=points.predicted[order],
            match_count=points.match_count[order],
            distance=points.distance[order],
            score=points.score[order],
        ),
        singleton=np.bitwise_count(rows.packed_sets[order]).sum(axis=1) == 1,
        logits=None if rows.logits is None else rows.logits[order],
    )
