"""As what traffic and points of each class are predicted, and traffic that class shares within a box do not explain."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.shares.bounds import counted_as, intervals, largest_ratios
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.types import FloatArray, IntArray

DEPARTURE_LEVEL = 0.01
"""How likely it is at most that traffic with the declared class shares is taken for other traffic."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixes:
    """As what traffic is predicted, and as what points of each class are, by independent points.

    Attributes:
        traffic: (C,) int64, the points of traffic by predicted class.
        confusion: (C, C) int64, those of the calibration data by predicted and by true class.
    """

    traffic: IntArray
    confusion: IntArray

    def intervals(self, level: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Return bounds, each of which fails with probability `level` at most.

        Returns:
            The lower and the upper ones of the share of each predicted class in traffic, (C,) float64 each, and of the
            share of each predicted class among the points of each true one, (C, C) float64 each.
        """
        count = len(self.traffic)
        trials = np.tile(self.confusion.sum(axis=0), count)
        low, high = intervals(self.confusion.ravel(), trials, level)
        return intervals(self.traffic, np.full(count, self.traffic.sum()), level), (
            low.reshape(count, count),
            high.reshape(count, count),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DocumentMixes(Mixes):
    """The same by documents whose points may depend on each other.

    Attributes:
        of_traffic: (documents, C) float64, the points of each by predicted class, in an order without regard to them.
        of_labels: (documents, C * C) float64, those of the calibration data by predicted and true class, the same way.
        proposing: The same of the documents that propose; one with more points than the largest of these counts as it.
        by_cell: Whether no document is taken to have more points of a cell than the largest one seen. That makes the
            intervals narrower where some documents are far larger than most, and is no theorem.
    """

    of_traffic: FloatArray
    of_labels: FloatArray
    proposing: FloatArray
    by_cell: bool

    def intervals(self, level: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Return what `Mixes.intervals` does."""
        class_count, largest = len(self.traffic), self.proposing.sum(axis=1).max()
        traffic, labels = self.of_traffic, self.of_labels
        if not self.by_cell:
            traffic, labels = counted_as(traffic, largest), counted_as(labels, largest)
        in_cells = [of.reshape(-1, class_count, class_count) for of in (labels, self.proposing)]
        by_predicted = traffic, in_cells[1].sum(axis=2)

        def most(counts: tuple[FloatArray, FloatArray], known: tuple[FloatArray, FloatArray]) -> FloatArray:
            seen = np.maximum(counts[0].max(axis=0), known[0].max(axis=0))
            size = np.maximum(seen, 1.0) if self.by_cell else largest
            return np.minimum(largest_ratios(counts, known, size=size, level=level), 1.0)

        def both(*counts: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
            return 1 - most(*((to - of, to) for of, to in counts)), most(*counts)

        of_mix = both(*((of, np.repeat(of.sum(axis=1, keepdims=True), class_count, axis=1)) for of in by_predicted))
        low, high = both(*((of.reshape(len(of), -1), np.tile(of.sum(axis=1), class_count)) for of in in_cells))
        return of_mix, (low.reshape(class_count, -1), high.reshape(class_count, -1))


@dataclass(frozen=True, slots=True)
class Departure:
    """A predicted class that traffic has in another share than the class shares within a box allow.

    Attributes:
        points: Those of traffic.
        seen: Its share of traffic.
        interval: What its share may be by this traffic.
        allowed: What its share may be under the class shares.
    """

    predicted: int
    points: int
    seen: float
    interval: tuple[float, float]
    allowed: tuple[float, float]


def departures(mixes: Mixes, shares: ClassShares | EstimatedShares) -> list[Departure]:
    """Return the predicted classes whose share of traffic no class shares within the box explain.

    If points of each class are like those of the calibration data, the class shares lie in their box and the intervals
    of the mixes have their level, there is one with probability `DEPARTURE_LEVEL` at most.
    """
    class_count, total = len(mixes.traffic), int(mixes.traffic.sum())
    if not total:
        return []
    level = DEPARTURE_LEVEL / (2 * class_count * (1 + class_count))
    (low, high), (each_low, each_high) = mixes.intervals(level)
    box = np.array(shares.least), np.array(shares.most)
    least, most = -largest_mean(-each_low, *box), largest_mean(each_high, *box)
    return [
        Departure(
            predicted=of,
            points=total,
            seen=int(mixes.traffic[of]) / total,
            interval=(float(low[of]), float(high[of])),
            allowed=(float(least[of]), float(most[of])),
        )
        for of in np.flatnonzero((low > most) | (high < least)).tolist()
    ]


def confusion_counts(predicted: IntArray, label: IntArray, class_count: int) -> IntArray:
    """Return how many points are of each predicted and true class.

    Returns:
        (C, C) int64, by predicted and by true class.
    """
    return np.bincount(predicted * class_count + label, minlength=class_count**2).reshape(class_count, class_count)


def largest_mean(values: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """Return the largest means of values under shares within a box that sum to 1.

    Args:
        values: (n, C) float64.
        least: (C,) float64, which sum to 1 at most.
        most: (C,) float64, which sum to 1 at least.

    Returns:
        (n,) float64.
    """
    order = np.argsort(-values, axis=1)
    width = (most - least)[order]
    before = np.cumsum(width, axis=1) - width
    taken = np.clip(1 - least.sum() - before, 0.0, width)
    found: FloatArray = values @ least + (taken * np.take_along_axis(values, order, axis=1)).sum(axis=1)
    return found
