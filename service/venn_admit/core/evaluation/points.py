"""A labelled evaluation set: its points, the methods compared on it, and its partitions.

Source: docs/PROCEDURE.md, section 8. Symbols: q = `match_count`, d = `distance`, pi = softmax of the KNN's logits, y =
`label`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from venn_admit.core.checks import check_classes, check_rows
from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.tallies import Grouping, Tally, tally_groupings
from venn_admit.core.types import (
    AdmitOutcome,
    Approximation,
    BoolArray,
    FloatArray,
    IntArray,
    MethodSets,
    SelectiveMethod,
)
from venn_admit.errors import InvalidInputError

KNN, NETWORK = "KNN", "network"
"""The rows that admit every prediction of the KNN, or of the network."""

WEIGHTED_ADMIT = "Venn-ADMIT weighted"


@dataclass(frozen=True, slots=True, eq=False)
class OwnMethod:
    """The method of the calibration that is evaluated, whose verdicts are given.

    Attributes:
        baseline: The row that admits all of its predictions, `KNN` or `NETWORK`.
        confidence: (n,) float64, the lower probability that it admits by; NaN for a point that it can never admit.
        bounds: Its lower and upper probabilities, (n,) float64 each, by the weights that they are taken with.
        has_bands: Whether partitions by q and d, as bands have them, say something about it.
    """

    name: str
    baseline: str
    predicted: IntArray
    confidence: FloatArray
    bounds: Mapping[str, tuple[FloatArray, FloatArray]]
    has_bands: bool


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationPoints:
    """The labelled, scored points of one evaluation set: columns with one row per point.

    Attributes:
        network_predicted: (n,) int64, argmax f.
        view: The KNN's; None if the classifier has logits only, where the method that is judged must be given.
        localizer_predicted: (n,) int64, or None if the localizer was not evaluated.
        admit: The results of ADMIT and Venn-ADMIT; None if they are left out.
        comparisons: Other methods that give sets, on the same points, in the order shown.
        calibrated_by: The method that is judged, one of those above; None for weighted Venn-ADMIT.
        groups: The group of each point by the attributes that the certificate is for; None for a point in none.
    """

    label: IntArray
    class_count: int
    network_predicted: IntArray
    view: Approximation | None
    localizer_predicted: IntArray | None
    admit: AdmitOutcome | None
    comparisons: tuple[MethodSets, ...] = ()
    selective: tuple[SelectiveMethod, ...] = ()
    documents: Documents | None = None
    calibrated_by: OwnMethod | None = None
    groups: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    @property
    def knn(self) -> Approximation:
        """The KNN's view, if there are vectors."""
        assert self.view is not None, "a classifier with logits only has no KNN"
        return self.view

    @property
    def own(self) -> OwnMethod:
        """The method that is judged."""
        if self.calibrated_by is not None:
            return self.calibrated_by
        outcome = self.admit
        assert outcome is not None, "weighted Venn-ADMIT is judged, but was left out"
        return OwnMethod(
            name=WEIGHTED_ADMIT,
            baseline=KNN,
            predicted=self.knn.predicted,
            confidence=outcome.lower_weighted,
            bounds={
                "plain": (outcome.lower_plain, outcome.upper_plain),
                "weighted": (outcome.lower_weighted, outcome.upper_weighted),
            },
            has_bands=True,
        )


@dataclass(frozen=True, slots=True)
class PartitionCell:
    """One cell of a partition table.

    Attributes:
        threshold: The alpha-quantile of pi of the true class; NaN without points.
    """

    threshold: float
    tally: Tally


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition, with the KNN's results in it per true class and over all points.

    Attributes:
        matches: "q = 0", "q = K" or "any q".
        distances: "d < median", "d >= median" or "any d".
        per_class: C long, by true class.
    """

    matches: str
    distances: str
    per_class: tuple[PartitionCell, ...]
    overall: PartitionCell


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """The KNN's results in every partition.

    Attributes:
        median: The median of d over the evaluation set, in the units of the vectors.
    """

    median: float
    rows: tuple[PartitionRow, ...]


def standard_methods(points: EvaluationPoints, neighbour_count: int | None) -> Iterator[MethodSets]:
    """Yield KNN, the comparisons, ADMIT, the four Venn-ADMIT variants and the selective methods, as prediction sets.

    The sets of KNN are its predictions; the network stands beside it if the method that is judged decides on the
    network's. Venn-ADMIT and the selective methods make no statement about a point that they reject: the set is all
    classes. The variants "q = K" also reject every point with q < K. Without vectors there is no KNN.
    """
    check_points(points)

    def admitting(name: str, predicted: IntArray, admitted: BoolArray) -> MethodSets:
        alone = predicted[:, np.newaxis] == np.arange(points.class_count)  # (n, C)
        return MethodSets(name, predicted, alone | ~admitted[:, np.newaxis])

    everything = np.ones(points.label.size, np.bool_)
    if points.view is not None:
        yield admitting(KNN, points.view.predicted, everything)
    if points.own.baseline == NETWORK:
        yield admitting(NETWORK, points.network_predicted, everything)
    yield from points.comparisons
    if points.admit is not None:
        predicted, full = points.knn.predicted, points.knn.match_count == neighbour_count
        yield MethodSets("ADMIT", predicted, points.admit.included)
        outcomes = {"Venn-ADMIT plain": points.admit.admitted_plain, WEIGHTED_ADMIT: points.admit.admitted_weighted}
        for name, admitted in outcomes.items():
            yield admitting(name, predicted, admitted)
            yield admitting(f"{name}, q = K", predicted, admitted & full)
    for method in points.selective:
        yield admitting(method.name, method.predicted, method.admitted)


def partition_table(points: EvaluationPoints, neighbour_count: int, alpha: Decimal) -> PartitionTable:
    """Return threshold, accuracy and n of N of the KNN in every partition: q = 0, q = K, any q; d below, above, any.

    The threshold is the empirical alpha-quantile (linear interpolation) of pi of the true class over the points of the
    class in the partition. It shows how far the partitions differ; no set is built from it. d counts as below if d <
    median, so that every point is on one side. Per class means per true class.
    """
    check_points(points)
    view = points.knn
    shifted = view.logits - view.logits.max(axis=1, keepdims=True)
    probability = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)  # (n, C)
    true_probability = probability[np.arange(points.label.size), points.label]
    correct = view.predicted == points.label
    median = float(np.median(view.distance))

    everything = np.ones(points.label.size, np.bool_)
    matches = {"q = 0": view.match_count == 0, "q = K": view.match_count == neighbour_count, "any q": everything}
    near = view.distance < median
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
    """Check an evaluation set."""
    n = points.label.size
    if n == 0:
        raise InvalidInputError(
            "an evaluation set needs at least one labelled point, got none; label some of its points"
        )
    predictions = {"network_predicted": points.network_predicted}
    evidence: dict[str, IntArray | FloatArray] = {}
    if (view := points.view) is not None:
        predictions["predicted"] = view.predicted
        evidence = {"match_count": view.match_count, "distance": view.distance, "logits": view.logits}
    if points.localizer_predicted is not None:
        predictions["localizer_predicted"] = points.localizer_predicted
    check_rows(
        n,
        {
            **evidence,
            **({} if points.admit is None else {name: getattr(points.admit, name) for name in AdmitOutcome.__slots__}),
            **predictions,
            **{f"admitted of {method.name!r}": method.admitted for method in points.selective},
        },
    )
    if points.view is not None and points.view.logits.shape[1:] != (points.class_count,):
        raise InvalidInputError(
            f"expected logits of {points.class_count} classes, got shape {points.view.logits.shape}; pass those of the "
            "same classifier"
        )
    if points.admit is not None and points.admit.included.shape != points.knn.logits.shape:
        raise InvalidInputError(
            f"included must have the same shape as logits, {points.knn.logits.shape}; got {points.admit.included.shape}"
        )
    check_classes(points.class_count, {"label": points.label, **predictions})
