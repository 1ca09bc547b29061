"""A labelled evaluation set: its points, the methods compared on it, and its partitions.

docs/PROCEDURE.md, section 8. Symbols: q = `match_count`, d = `distance`, pi = softmax of the KNN's logits,
y = `label`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from service.core.checks import check_classes, check_rows
from service.core.documents import Documents
from service.core.evaluation.tallies import Grouping, Tally, tally_groupings
from service.core.types import BoolArray, FloatArray, IntArray, MethodSets
from service.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationPoints:
    """The labelled, scored points of one evaluation set: columns, one row a point.

    label, network_predicted (argmax f), predicted (argmax KNN), match_count (q): (n,) int64.
    localizer_predicted: (n,) int64, or None where the localizer was not evaluated.
    distance (d): (n,) float64. logits: (n, C) float64, KNN(x). included: (n, C) bool, the ADMIT set.
    lower_plain, upper_plain, lower_weighted, upper_weighted: (n,) float64, probabilities of `predicted`, NaN where
    no singleton. admitted_plain, admitted_weighted: (n,) bool, whether Venn-ADMIT admits `predicted`, whatever q is.
    comparisons: other methods on the same points, in the order shown. documents: of the points, where those of
    one document are not independent.
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
    upper_plain: FloatArray
    lower_weighted: FloatArray
    upper_weighted: FloatArray
    admitted_plain: BoolArray
    admitted_weighted: BoolArray
    comparisons: tuple[MethodSets, ...] = ()
    documents: Documents | None = None

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


def standard_methods(points: EvaluationPoints, neighbour_count: int) -> Iterator[MethodSets]:
    """KNN, the comparisons, ADMIT and the four Venn-ADMIT variants, each as prediction sets.

    KNN's sets are its predictions. What Venn-ADMIT rejects it says nothing about: the set is all classes.
    "q = K" rejects every point with q < K besides.
    """
    check_points(points)
    predicted = points.predicted
    alone = predicted[:, np.newaxis] == np.arange(points.class_count)  # (n, C)
    full = points.match_count == neighbour_count

    def admitting(name: str, admitted: BoolArray) -> MethodSets:
        return MethodSets(name, predicted, alone | ~admitted[:, np.newaxis])

    yield MethodSets("KNN", predicted, alone)
    yield from points.comparisons
    yield MethodSets("ADMIT", predicted, points.included)
    for name, admitted in (("plain", points.admitted_plain), ("weighted", points.admitted_weighted)):
        yield admitting(f"Venn-ADMIT {name}", admitted)
        yield admitting(f"Venn-ADMIT {name}, q = K", admitted & full)


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

    everything = np.ones(points.label.size, np.bool_)
    matches = {
        "q = 0": points.match_count == 0,
        "q = K": points.match_count == neighbour_count,
        "any q": everything,
    }
    near = points.distance < median
    distances = {"d < median": near, "d >= median": ~near, "any d": everything}
    partitions = [(q, d) for q in matches for d in distances]

    def row(q: str, d: str) -> PartitionRow:
        chosen = matches[q] & distances[d]
        per_class, (overall,) = tally_groupings(
            [
                Grouping(np.where(chosen, points.label, -1), correct, points.class_count),
                Grouping(np.where(chosen, 0, -1), correct, 1),
            ],
            points.documents,
        )

        def cell(tally: Tally, members: BoolArray) -> PartitionCell:
            values = true_probability[members]
            return PartitionCell(float(np.quantile(values, float(alpha))) if tally.count else float("nan"), tally)

        return PartitionRow(
            matches=q,
            distances=d,
            per_class=tuple(cell(tally, chosen & (points.label == c)) for c, tally in enumerate(per_class)),
            overall=cell(overall, chosen),
        )

    return PartitionTable(median, tuple(row(q, d) for q, d in partitions))


def check_points(points: EvaluationPoints) -> None:
    """Refuse points that are empty, unlabelled, of unequal length or out of range, saying which column."""
    n = points.label.size
    if n == 0:
        raise InvalidInputError("an evaluation set needs at least one labelled point, got none")
    predictions = {"network_predicted": points.network_predicted, "predicted": points.predicted}
    if points.localizer_predicted is not None:
        predictions["localizer_predicted"] = points.localizer_predicted
    check_rows(
        n,
        {
            "match_count": points.match_count,
            "distance": points.distance,
            "logits": points.logits,
            "included": points.included,
            "lower_plain": points.lower_plain,
            "upper_plain": points.upper_plain,
            "lower_weighted": points.lower_weighted,
            "upper_weighted": points.upper_weighted,
            "admitted_plain": points.admitted_plain,
            "admitted_weighted": points.admitted_weighted,
            **predictions,
        },
    )
    if points.included.shape != points.logits.shape:
        raise InvalidInputError(
            f"included must have the shape of logits {points.logits.shape}, got {points.included.shape}"
        )
    check_classes(points.class_count, {"label": points.label, **predictions})
