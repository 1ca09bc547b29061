"""Partitions of labelled points by q and d, and how far the KNN can be relied on in each.

Source: Schmaltz & Rasooly (2022), the table of thresholds by partition; docs/PROCEDURE.md, section 8. Symbols: q =
`match_count`, d = `distance`, pi = softmax of the KNN's logits.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.evaluation.points import PredictedPoints, check_predicted
from venn_admit.core.evaluation.tallies import Grouping, Tally, tally_groupings
from venn_admit.core.types import BoolArray


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
        median: The median of d over the points, in the units of the vectors.
    """

    median: float
    rows: tuple[PartitionRow, ...]


def partition_table(points: PredictedPoints, neighbour_count: int, alpha: Decimal) -> PartitionTable:
    """Return threshold, accuracy and n of N of the KNN in every partition: q = 0, q = K, any q; d below, above, any.

    The threshold is the empirical alpha-quantile (linear interpolation) of pi of the true class over the points of the
    class in the partition. It shows how far the partitions differ; no set is built from it. d counts as below if d <
    median, so that every point is on one side. Per class means per true class.
    """
    check_predicted(points)
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
