"""All that a report shows of one evaluation set, computed once for the terminal, the charts and the page."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.coverage_bands import CoverageBand, coverage_bands
from venn_admit.core.evaluation.curves import (
    AccuracyGrid,
    CoverageCurve,
    Reliability,
    RiskCurve,
    accuracy_grid,
    coverage_curve,
    coverage_curves,
    default_match_bins,
    reliability,
    risk_curve,
)
from venn_admit.core.evaluation.groups import GroupShare, group_shares
from venn_admit.core.evaluation.losses import MeanLosses, mean_losses
from venn_admit.core.evaluation.measures import (
    ClassTallies,
    MethodMeasures,
    PointAccuracy,
    measure_method,
    point_accuracy,
)
from venn_admit.core.evaluation.partitions import PartitionTable, partition_table
from venn_admit.core.evaluation.points import WEIGHTED_ADMIT, EvaluationPoints, PredictedPoints, standard_methods
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.report.evaluation.evaluated import EvaluatedCalibration

MOST_CLASSES = 6
"""At most this many classes are shown one by one."""


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Accuracy of one point prediction: the network's, the KNN's or the localizer's."""

    name: str
    accuracy: PointAccuracy


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationFigures:
    """What is measured of `mc` and `vp`, the points that the calibration rests on.

    accuracy: as in `DatasetReport`; the localizer predicts each point of vp by cross-fitting. partitions: as there.
    """

    point_count: int
    document_count: int | None
    accuracy: tuple[AccuracyRow, ...]
    partitions: PartitionTable | None


@dataclass(frozen=True, slots=True, eq=False)
class ClassCoverage:
    """Coverage against the admitted share, by true and by predicted class, C of each, and over all.

    admitted: the share right among what is admitted. curves_by_true_class, curves_by_predicted_class, curve_overall: as
    the least lower probability that admits falls. bands_by_true_class, bands_by_predicted_class, band_overall:
    intervals along them, of the shown classes by number. shown: the classes that are shown one by one, ascending.
    """

    admitted: ClassTallies
    curves_by_true_class: tuple[CoverageCurve, ...]
    curves_by_predicted_class: tuple[CoverageCurve, ...]
    curve_overall: CoverageCurve
    bands_by_true_class: dict[int, CoverageBand]
    bands_by_predicted_class: dict[int, CoverageBand]
    band_overall: CoverageBand
    shown: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DatasetReport:
    """One evaluation set, measured.

    alpha: exact decimal; the target is 1 - alpha. document_count: documents that hold the points, where those of one
    document are not independent; else None. neighbour_count: K; None if the classifier has logits only. own: the name
    of the method that is judged, which decided; baseline: that of the row that admits all of its predictions. accuracy,
    methods: rows in the order they are shown. partitions: None if the method that is judged has no bands.
    reliability_lower, reliability_upper: of its plain and of its weighted probabilities, by name, if it has them.
    set_methods: the names of the methods that give sets, or whose decisions the paper's tables show as sets.
    bands_part: whether the bands of ADMIT part the points. risk_curves: of every method that ranks its predictions.
    coverage: by the lower probability that it admits by. grid: of its predictions; None without q and d. parameters:
    name and text of what the comparison methods were given or fitted. left_out: rows of the evaluation set that are
    training or calibration data, and were not evaluated. chosen: evaluated rows whose label was selected, or given in a
    review, and so not that of a random sample. calibration: what decided, if the points were scored by one
    that is stored. groups: what it admits of the groups of each attribute that its certificate is for.
    losses: the mean loss of what it admits, if that is what its certificate is about. calibration_data: what is
    measured of the points that it rests on, beside the evaluated ones; None if they were not given.
    """

    name: str
    class_names: tuple[str, ...]
    alpha: Decimal
    neighbour_count: int | None
    point_count: int
    document_count: int | None
    own: str
    baseline: str
    accuracy: tuple[AccuracyRow, ...]
    partitions: PartitionTable | None
    methods: tuple[MethodMeasures, ...]
    reliability_lower: dict[str, Reliability]
    reliability_upper: dict[str, Reliability]
    coverage: ClassCoverage
    grid: AccuracyGrid | None
    set_methods: tuple[str, ...]
    bands_part: bool
    risk_curves: tuple[RiskCurve, ...]
    parameters: tuple[tuple[str, str], ...] = ()
    left_out: int = 0
    chosen: int = 0
    calibration: EvaluatedCalibration | None = None
    groups: tuple[GroupShare, ...] = ()
    losses: MeanLosses | None = None
    calibration_data: CalibrationFigures | None = None

    @property
    def target(self) -> Decimal:
        """1 - alpha."""
        return 1 - self.alpha

    def method(self, name: str) -> ClassTallies:
        """Share right among the singletons of the method of this name, which are what it admits."""
        return next(row.singletons for row in self.methods if row.name == name)

    def shown_classes(self, most: int = MOST_CLASSES) -> tuple[int, ...]:
        """All classes, ascending; of more than `most` only those doing worst under the method that is judged."""
        return worst_classes(self.method(self.own), self.method(self.baseline), self.alpha, most)


def build_dataset_report(
    name: str,
    class_names: tuple[str, ...],
    points: EvaluationPoints,
    neighbour_count: int | None,
    alpha: Decimal,
    parameters: tuple[tuple[str, str], ...] = (),
    left_out: int = 0,
    chosen: int = 0,
    calibration: EvaluatedCalibration | None = None,
    loss: FloatArray | None = None,
) -> DatasetReport:
    """Measure an evaluation set.

    neighbour_count: K; None, as is the view of the points, if the classifier has logits only. parameters, left_out,
    chosen, calibration: as in `DatasetReport`. loss: (C, C), what errors cost, if the calibration promises a mean loss.
    """
    if len(class_names) != points.class_count:
        raise InvalidInputError(
            f"expected {points.class_count} class names, one a column of the logits, got {len(class_names)}"
        )
    if (neighbour_count is None) != (points.view is None):
        raise InvalidInputError("expected K and the KNN's view of the points, or neither; pass both or neither")
    documents, own = points.documents, points.own
    label, predicted = points.label, own.predicted
    correct = predicted == label
    partitioned = None if neighbour_count is None or not own.has_bands else (neighbour_count, alpha)
    methods = tuple(measure_method(sets, label, documents) for sets in standard_methods(points, neighbour_count))
    singletons = {row.name: row.singletons for row in methods}
    shown = worst_classes(singletons[own.name], singletons[own.baseline], alpha)
    return DatasetReport(
        name=name,
        class_names=class_names,
        alpha=alpha,
        neighbour_count=neighbour_count,
        point_count=int(label.size),
        document_count=None if documents is None else documents.count,
        own=own.name,
        baseline=own.baseline,
        accuracy=_accuracies(points),
        partitions=None if partitioned is None else partition_table(points, *partitioned),
        methods=methods,
        reliability_lower={name: reliability(lower, correct, documents) for name, (lower, _) in own.bounds.items()},
        reliability_upper={name: reliability(upper, correct, documents) for name, (_, upper) in own.bounds.items()},
        coverage=class_coverage(
            label, predicted, own.confidence, documents, admitted=singletons[own.name], shown=shown
        ),
        grid=None
        if neighbour_count is None
        else accuracy_grid(
            points.knn.match_count, points.knn.distance, correct, neighbour_count, default_match_bins(neighbour_count)
        ),
        set_methods=tuple(row.name for row in methods[: len(methods) - len(points.selective)]),
        bands_part=points.bands_part,
        risk_curves=_risk_curves(points),
        parameters=parameters,
        left_out=left_out,
        chosen=chosen,
        calibration=calibration,
        groups=_group_shares(points, loss),
        losses=None if loss is None else mean_losses(loss, label, predicted, _admitted(points), documents),
        calibration_data=None
        if (data := points.calibration_data) is None
        else CalibrationFigures(
            point_count=int(data.label.size),
            document_count=None if data.documents is None else data.documents.count,
            accuracy=_accuracies(data),
            partitions=None if partitioned is None else partition_table(data, *partitioned),
        ),
    )


def _accuracies(points: PredictedPoints) -> tuple[AccuracyRow, ...]:
    return tuple(
        AccuracyRow(who, point_accuracy(points.label, said, points.class_count, points.documents))
        for who, said in points.predictions().items()
    )


def _admitted(points: EvaluationPoints) -> BoolArray:
    """(n,) bool, what a certified policy admits, which is a method that only admits or rejects."""
    return next(one.admitted for one in points.selective if one.name == points.own.name)


def _group_shares(points: EvaluationPoints, loss: FloatArray | None) -> tuple[GroupShare, ...]:
    """Only a certificate has groups."""
    if not points.groups:
        return ()
    admitted, predicted = _admitted(points), points.own.predicted
    return group_shares(points.groups, points.label, predicted, admitted, points.documents, loss)


def _risk_curves(points: EvaluationPoints) -> tuple[RiskCurve, ...]:
    """Return the curves of the selective methods that rank their predictions, then that of weighted Venn-ADMIT."""
    ranked = [(one.name, one.confidence, one.predicted) for one in points.selective if one.confidence is not None]
    if points.admit is not None:
        ranked.append((WEIGHTED_ADMIT, points.admit.lower_weighted, points.knn.predicted))
    return tuple(risk_curve(name, confidence, said == points.label) for name, confidence, said in ranked)


def class_coverage(
    label: IntArray,
    predicted: IntArray,
    confidence: FloatArray,
    documents: Documents | None,
    *,
    admitted: ClassTallies,
    shown: tuple[int, ...],
) -> ClassCoverage:
    """Measure n points, n >= 1.

    confidence: (n,) float64, the lower probability of each prediction; NaN for one that can never be admitted.
    documents: of the points; None if no two share one. admitted: the share right among what is admitted. shown:
    the classes whose curves get intervals.
    """
    correct, class_count = predicted == label, len(admitted.per_true_class)
    members = [*(label == c for c in shown), *(predicted == c for c in shown), np.ones(label.size, np.bool_)]
    *bands, band_overall = coverage_bands(confidence, correct, members, documents)
    return ClassCoverage(
        admitted=admitted,
        curves_by_true_class=coverage_curves(confidence, correct, label, class_count),
        curves_by_predicted_class=coverage_curves(confidence, correct, predicted, class_count),
        curve_overall=coverage_curve(confidence, correct),
        bands_by_true_class=dict(zip(shown, bands[: len(shown)], strict=True)),
        bands_by_predicted_class=dict(zip(shown, bands[len(shown) :], strict=True)),
        band_overall=band_overall,
        shown=shown,
    )


def worst_classes(
    admitted: ClassTallies, everything: ClassTallies, alpha: Decimal, most: int = MOST_CLASSES
) -> tuple[int, ...]:
    """Return all classes, ascending; of more than `most` those of which the worst is admitted.

    Those that miss the target, by true or by predicted class, come first, then those with the lowest share right.
    Classes of which too few points are admitted to judge come after the judged ones, in the order of the share
    correct of everything.
    """
    classes = range(len(admitted.per_true_class))

    def judged(measured: ClassTallies, c: int) -> list[Tally]:
        tallies = (measured.per_true_class[c], measured.per_predicted_class[c])
        return [tally for tally in tallies if not tally.is_few]

    def rank(c: int) -> tuple[bool, bool, float]:
        tallies = judged(admitted, c)
        missed = any(tally.verdict(alpha) is Verdict.MISSED for tally in tallies)
        shares = [tally.share for tally in tallies or judged(everything, c)]
        return (not missed, not tallies, min(shares, default=1.0))

    return tuple(classes) if len(classes) <= most else tuple(sorted(sorted(classes, key=rank)[:most]))
