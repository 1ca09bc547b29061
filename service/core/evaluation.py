"""A labelled evaluation set: its points, the methods compared on it, and its partitions.

docs/PROCEDURE.md, section 8. Symbols: q = `match_count`, d = `distance`, pi = softmax of the KNN's logits,
y = `label`.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from service.core.tallies import Tally, check_classes, check_lengths
from service.core.types import BoolArray, FloatArray, IntArray
from service.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class MethodDecisions:
    """What a method of this name decides: (n,) int64, the admitted class or -1."""

    name: str
    decision: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationPoints:
    """The labelled, scored points of one evaluation set: columns, one row a point.

    label, network_predicted (argmax f), predicted (argmax KNN), match_count (q): (n,) int64.
    localizer_predicted: (n,) int64, or None where the localizer was not evaluated.
    distance (d): (n,) float64. logits: (n, C) float64, KNN(x). included: (n, C) bool, the ADMIT set.
    lower_plain, lower_weighted: (n,) float64, lower probability of `predicted`, NaN where no singleton.
    decision_plain, decision_weighted: (n,) int64, the class Venn-ADMIT admits or -1, whatever q is.
    comparisons: other methods on the same points.
    """

    label: IntArray
    network_predicted: IntArray
    predicted: IntArray
    localizer_predicted: IntArray | None
    match_count: IntArray
    distance: FloatArray
    logits: FloatArray
    included: BoolArray
    lower_plain: FloatArray
    lower_weighted: FloatArray
    decision_plain: IntArray
    decision_weighted: IntArray
    comparisons: tuple[MethodDecisions, ...] = ()

    @property
    def class_count(self) -> int:
        """C, from the logits."""
        return int(self.logits.shape[1])


@dataclass(frozen=True, slots=True)
class PartitionCell:
    """threshold: alpha-quantile of pi of the true class (NaN without points). tally: accuracy and n of N."""

    threshold: float
    tally: Tally


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition, and the KNN in it per true class (C long) and over all.

    matches: "q = 0", "q = K" or "any q". distances: "d < median", "d >= median" or "any d".
    """

    matches: str
    distances: str
    per_class: tuple[PartitionCell, ...]
    overall: PartitionCell


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """median: of d over the evaluation set, in the units of the vectors. rows: every q by d partition."""

    median: float
    rows: tuple[PartitionRow, ...]


def standard_methods(points: EvaluationPoints, neighbour_count: int) -> tuple[MethodDecisions, ...]:
    """KNN, ADMIT and the four Venn-ADMIT variants, then the comparisons, each as decisions.

    KNN admits every point, ADMIT every singleton; "q = K" rejects every point with q < K besides.
    """
    check_points(points)
    singleton = points.included.sum(axis=1) == 1
    full = points.match_count == neighbour_count

    def only(admitted: BoolArray, decision: IntArray) -> IntArray:
        return np.where(admitted, decision, -1)

    return (
        MethodDecisions("KNN", points.predicted),
        MethodDecisions("ADMIT", only(singleton, points.predicted)),
        MethodDecisions("Venn-ADMIT plain", points.decision_plain),
        MethodDecisions("Venn-ADMIT plain, q = K", only(full, points.decision_plain)),
        MethodDecisions("Venn-ADMIT weighted", points.decision_weighted),
        MethodDecisions("Venn-ADMIT weighted, q = K", only(full, points.decision_weighted)),
        *points.comparisons,
    )


def partition_table(points: EvaluationPoints, neighbour_count: int, alpha: Decimal) -> PartitionTable:
    """Threshold, accuracy and n of N of the KNN in every partition: q = 0, q = K, any q; d below, above, any.

    The threshold is the empirical alpha-quantile (linear interpolation) of pi of the true class over the
    points of the class in the partition: it shows how far the partitions differ, and no set is built from it.
    d counts as below where d < median, so every point is on one side. Per class means per true class.
    """
    check_points(points)
    shifted = points.logits - points.logits.max(axis=1, keepdims=True)
    probability = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)  # (n, C)
    true_probability = probability[np.arange(points.label.size), points.label]
    correct = points.predicted == points.label
    median = float(np.median(points.distance))

    def cell(chosen: BoolArray) -> PartitionCell:
        count = int(chosen.sum())
        threshold = float(np.quantile(true_probability[chosen], float(alpha))) if count else float("nan")
        return PartitionCell(threshold, Tally(int(correct[chosen].sum()), count, chosen.size))

    everything = np.ones(points.label.size, np.bool_)
    matches = {
        "q = 0": points.match_count == 0,
        "q = K": points.match_count == neighbour_count,
        "any q": everything,
    }
    near = points.distance < median
    distances = {"d < median": near, "d >= median": ~near, "any d": everything}
    of_class = [points.label == c for c in range(points.class_count)]
    rows = tuple(
        PartitionRow(
            matches=match_name,
            distances=distance_name,
            per_class=tuple(cell(by_match & by_distance & by_class) for by_class in of_class),
            overall=cell(by_match & by_distance),
        )
        for match_name, by_match in matches.items()
        for distance_name, by_distance in distances.items()
    )
    return PartitionTable(median, rows)


def check_points(points: EvaluationPoints) -> None:
    """Refuse points that are empty, unlabelled, of unequal length or out of range, saying which column."""
    n = points.label.size
    if n == 0:
        raise InvalidInputError("an evaluation set needs at least one labelled point, got none")
    decisions = {
        "decision_plain": points.decision_plain,
        "decision_weighted": points.decision_weighted,
        **{f"decision of {method.name!r}": method.decision for method in points.comparisons},
    }
    predictions = {"network_predicted": points.network_predicted, "predicted": points.predicted}
    if points.localizer_predicted is not None:
        predictions["localizer_predicted"] = points.localizer_predicted
    check_lengths(
        n,
        {
            "match_count": points.match_count,
            "distance": points.distance,
            "logits": points.logits,
            "included": points.included,
            "lower_plain": points.lower_plain,
            "lower_weighted": points.lower_weighted,
            **predictions,
            **decisions,
        },
    )
    if points.included.shape != points.logits.shape:
        raise InvalidInputError(
            f"included must have the shape of logits {points.logits.shape}, got {points.included.shape}"
        )
    check_classes(points.class_count, {"label": points.label, **predictions})
    check_classes(points.class_count, decisions, least=-1)
