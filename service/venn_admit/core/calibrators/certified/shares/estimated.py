"""Class shares of traffic, estimated without labels by the confusion of the network, with a box that holds them.

Let P(c | y) be how often points of class y are predicted as c, and mu_c how often traffic is. Under label shift,
mu = P q for the class shares q of traffic. Exact intervals of all P(c | y), from labels, and of all mu_c, from traffic,
hold together with a probability of at least 1 - level. For any numbers a, the sum of a_c mu_c is that of m_y q_y, with
m_y the sum of a_c P(c | y), so that the intervals bound both sides. With a row of the inverse of the confusion seen as
a, m_y is near 1 for one class and near 0 for the others: its share is bounded. That a rests on the same labels does
no harm, since the intervals hold for every a at once.

Source: Lipton, Wang & Smola (2018), *Detecting and correcting for label shift with black box predictors*, who have the
estimate; the box is that of docs/explanation/certificate.md.
"""

from dataclasses import replace

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.shares.mixes import Mixes, confusion_counts, largest_mean
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.types import FloatArray, IntArray

ROUNDS = 20
"""Bounds of each class tighten those of the others; far fewer rounds than these leave little to gain."""


def estimate_shares(mixes: Mixes, level: float) -> EstimatedShares | None:
    """Return the class shares that traffic has, with their box; None if no shares explain it under label shift.

    The box does not hold the shares, or there is none, with probability `level` at most, if points of each class in
    traffic are like those of the calibration data. There must be some traffic.
    """
    traffic, confusion = mixes.traffic, mixes.confusion
    class_count = len(traffic)
    # With two classes, the intervals of one predicted class are those of the other.
    one = level / (2 * (1 if class_count == 2 else class_count) * (1 + class_count))
    (low, high), (each_low, each_high) = mixes.intervals(one)
    inverse = np.linalg.pinv(confusion / np.maximum(confusion.sum(axis=0), 1))
    of_true = [(each_low[:, y], each_high[:, y]) for y in range(class_count)]
    sums = -largest_mean(-inverse, low, high), largest_mean(inverse, low, high)
    parts = (
        np.stack([-largest_mean(-inverse, *bounds) for bounds in of_true], axis=1),
        np.stack([largest_mean(inverse, *bounds) for bounds in of_true], axis=1),
    )
    least, most = np.zeros(class_count), np.ones(class_count)
    for _ in range(ROUNDS):
        for part, mix in ((parts[0], sums[1]), (-parts[1], -sums[0])):
            of_least, of_most = _bounds(part, mix, least, most)
            least, most = np.maximum(least, of_least), np.minimum(most, of_most)
            if (least > most).any() or not least.sum() <= 1 <= most.sum():
                return None
    shares = np.clip(inverse @ (traffic / traffic.sum()), least, most)
    bounds = tuple(least.tolist()), tuple(most.tolist())
    return EstimatedShares(tuple(shares.tolist()), *bounds, tuple(traffic.tolist()), level)


def foretell_confusion(proposing: CertificatePoints, points: int, class_count: int) -> IntArray:
    """Foretell how many of some number of points are of each predicted and true class: (C, C) int64 > 0."""
    seen = confusion_counts(proposing.predicted, proposing.label, class_count) + 1 / class_count
    found: IntArray = np.maximum(np.rint(seen * points / seen.sum()), 1).astype(np.int64)
    return found


def foretell_shares(declared: ClassShares | EstimatedShares, confusion: IntArray) -> ClassShares | EstimatedShares:
    """Return the class shares that would be declared or estimated on the labels that `foretell_confusion` foretells."""
    if isinstance(declared, ClassShares):
        return declared
    traffic = np.array(declared.traffic)
    found = estimate_shares(Mixes(traffic, confusion), declared.level)
    if found is not None and all(found.least):
        return found
    predicted = tuple(((traffic + 1) / (traffic + 1).sum()).tolist())
    return replace(declared, shares=predicted, least=predicted, most=predicted)


def _bounds(parts: FloatArray, mixes: FloatArray, least: FloatArray, most: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of shares q within a box if the sum of parts[y, j] q_j is at most mixes[y] for each y.

    parts: (C, C) float64. mixes, least, most: (C,) float64. Returns the least and the largest shares, (C,) float64.
    """
    own = np.diag(parts)
    others = np.where(np.eye(len(parts), dtype=np.bool_), np.inf, parts).min(axis=1)
    # All shares sum to 1, so that a number taken from each part is taken from the mix.
    rest = parts - others[:, np.newaxis]
    np.fill_diagonal(rest, 0.0)
    left, slope = mixes - others + largest_mean(-rest, least, most), own - others
    bound = np.divide(left, slope, out=np.zeros(len(own)), where=slope != 0)
    return np.where(slope < 0, bound, 0.0), np.where(slope > 0, bound, 1.0)
