"""All that a report shows of one evaluation set, computed once for the terminal, the charts and the page."""

from dataclasses import dataclass
from decimal import Decimal

from service.core.curves import (
    AccuracyGrid,
    CoverageCurve,
    Reliability,
    accuracy_grid,
    coverage_curve,
    coverage_curves,
    default_match_bins,
    reliability,
)
from service.core.evaluation import EvaluationPoints, PartitionTable, partition_table, standard_methods
from service.core.method_measures import ClassTallies, MethodMeasures, PointAccuracy, measure_method, point_accuracy
from service.core.tallies import Tally, Verdict
from service.errors import InvalidInputError

KNN = "KNN"
RECOMMENDED = "Venn-ADMIT weighted"
"""The method whose decisions the service records by default."""

MOST_CLASSES = 6


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Accuracy of one point prediction: the network's, the KNN's or the localizer's."""

    name: str
    accuracy: PointAccuracy


@dataclass(frozen=True, slots=True, eq=False)
class DatasetReport:
    """One evaluation set, measured.

    alpha: exact decimal; the target is 1 - alpha. document_count: documents that hold the points, where those of
    one document are not independent; else None. accuracy, methods: rows in the order they are shown.
    reliability_lower, reliability_upper: of the plain and of the weighted probabilities, by name.
    curves_by_true_class, curves_by_predicted_class (C each), curve_overall: by the weighted lower probability.
    grid: of the KNN. parameters: name and text of what the comparison methods were given or fitted.
    left_out: rows of the evaluation set that are training or calibration data, and were not evaluated.
    """

    name: str
    class_names: tuple[str, ...]
    alpha: Decimal
    neighbour_count: int
    point_count: int
    document_count: int | None
    accuracy: tuple[AccuracyRow, ...]
    partitions: PartitionTable
    methods: tuple[MethodMeasures, ...]
    reliability_lower: dict[str, Reliability]
    reliability_upper: dict[str, Reliability]
    curves_by_true_class: tuple[CoverageCurve, ...]
    curves_by_predicted_class: tuple[CoverageCurve, ...]
    curve_overall: CoverageCurve
    grid: AccuracyGrid
    parameters: tuple[tuple[str, str], ...] = ()
    left_out: int = 0

    @property
    def target(self) -> Decimal:
        """1 - alpha."""
        return 1 - self.alpha

    def method(self, name: str) -> ClassTallies:
        """Share correct among the singletons of the method of this name, which are what it admits."""
        return next(row.singletons for row in self.methods if row.name == name)

    def shown_classes(self, most: int = MOST_CLASSES) -> tuple[int, ...]:
        """All classes, ascending; of more than `most` only those doing worst under the recommended method.

        Worst is the lowest share correct, by true or by predicted class. Classes of which too few points are
        admitted to judge come after the judged ones, in the order of the KNN's accuracy.
        """
        class_count = len(self.class_names)
        if class_count <= most:
            return tuple(range(class_count))
        admitted, everything = self.method(RECOMMENDED), self.method(KNN)

        def rank(c: int) -> tuple[bool, float]:
            def judged(measured: ClassTallies) -> list[float]:
                tallies: tuple[Tally, Tally] = (measured.per_true_class[c], measured.per_predicted_class[c])
                return [t.share for t in tallies if t.verdict(self.alpha) is not Verdict.FEW]

            shares = judged(admitted)
            return (not shares, min(shares or judged(everything), default=1.0))

        return tuple(sorted(sorted(range(class_count), key=rank)[:most]))


def build_dataset_report(
    name: str,
    class_names: tuple[str, ...],
    points: EvaluationPoints,
    neighbour_count: int,
    alpha: Decimal,
    match_bins: tuple[int, ...] | None = None,
    parameters: tuple[tuple[str, str], ...] = (),
    left_out: int = 0,
) -> DatasetReport:
    """Measure an evaluation set.

    match_bins: lower edges of the bins of q in the heat map. parameters, left_out: as `DatasetReport` has them.
    """
    if len(class_names) != points.class_count:
        raise InvalidInputError(
            f"expected {points.class_count} class names, one a column of the logits, got {len(class_names)}"
        )
    documents = points.documents
    label, predicted, class_count = points.label, points.predicted, points.class_count
    correct = predicted == label
    predictions = {"network": points.network_predicted, KNN: predicted}
    if points.localizer_predicted is not None:
        predictions["localizer"] = points.localizer_predicted
    return DatasetReport(
        name=name,
        class_names=class_names,
        alpha=alpha,
        neighbour_count=neighbour_count,
        point_count=int(label.size),
        document_count=None if documents is None else documents.count,
        accuracy=tuple(
            AccuracyRow(who, point_accuracy(label, said, class_count, documents)) for who, said in predictions.items()
        ),
        partitions=partition_table(points, neighbour_count, alpha),
        methods=tuple(measure_method(sets, label, documents) for sets in standard_methods(points, neighbour_count)),
        reliability_lower={
            "plain": reliability(points.lower_plain, correct, documents),
            "weighted": reliability(points.lower_weighted, correct, documents),
        },
        reliability_upper={
            "plain": reliability(points.upper_plain, correct, documents),
            "weighted": reliability(points.upper_weighted, correct, documents),
        },
        curves_by_true_class=coverage_curves(points.lower_weighted, correct, label, class_count),
        curves_by_predicted_class=coverage_curves(points.lower_weighted, correct, predicted, class_count),
        curve_overall=coverage_curve(points.lower_weighted, correct),
        grid=accuracy_grid(
            points.match_count,
            points.distance,
            correct,
            neighbour_count,
            match_bins or default_match_bins(neighbour_count),
        ),
        parameters=parameters,
        left_out=left_out,
    )
