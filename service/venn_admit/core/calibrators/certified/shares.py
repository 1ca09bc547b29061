"""Declared class shares: what errors cost if traffic has the classes in other shares than the calibration data.

Under label shift, points of a class are as they are in the calibration data, and the classes have shares q instead of
p. Let w_y = q_y / p_y. The mean loss among the admitted points of a predicted class c is below alpha in such traffic
if E(w_y (loss - alpha)) over them is below 0 in the calibration data. Divided by w_c, a right prediction counts as
before, and an error of true class y as if it cost alpha + (w_y / w_c) (loss - alpha): a loss like any other, by true
and by predicted class. Where that is below 0, it counts as 0, which is more.

Neither p nor, within its box, q is known. The ratio p_c / p_y has exact bounds, since of the points of the two classes
a binomial number is of class y: the upper one counts for errors that cost more than alpha, the lower one for others.
These bounds rest on the labels that are tested, so that no bet of a game may know them beforehand. The tests are tails
instead, binomial ones or Hoeffding's, which grow with what errors cost: if none costs less than it does under the true
shares, the test holds wherever q lies in its box.

Points of one document may depend on each other. p_y is then how many points of class y a document has on average, over
that of all classes, and w_y counts each point of a document. The bounds of p_c / p_y are those of a ratio of two means
over documents, and the tests are games whose stakes come from costs that were foretold without these labels: the more
errors cost, the less is won, so that the bounds may rest on the labels that are tested.

Sources: Podkopaev & Ramdas (2021), *Distribution-free uncertainty quantification for classification under label
shift*; Si, Park, Lee, Dobriban & Bastani (2024), *PAC prediction sets under label shift*.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.binomial_bounds import intervals, least_probabilities
from venn_admit.core.calibrators.certified.hypothesis_tests import staked_p_values, stakes_of
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.types import FloatArray, IntArray

SHARES_PART = 0.1
"""The part of 1 - confidence that the bounds of the calibration data's own shares have."""
LARGEST_LOG_RATIO = 25.0
"""Bounds of the logarithms of ratios are no larger."""
HALVINGS = 40
"""How often the interval that holds them is halved."""
DEPARTURE_LEVEL = 0.01
"""How likely it is at most that traffic with the declared class shares is taken for other traffic."""


def point_ratios(counts: IntArray, level: float) -> FloatArray:
    """Return bounds from above of the ratios of class shares, by independent points.

    Args:
        counts: (C,) int64 > 0, how many of the points are of each class.
        level: The probability that one of the bounds does not hold is this at most.

    Returns:
        (C, C) float64, at [y, c] that of p_c / p_y; 1 on the diagonal.
    """
    of_class = np.broadcast_to(counts[:, np.newaxis], (len(counts), len(counts)))
    pairs = len(counts) * (len(counts) - 1)
    least = least_probabilities(of_class.ravel(), (of_class + of_class.T).ravel(), level / pairs)
    ratios = ((1 - least) / least).reshape(of_class.shape)
    np.fill_diagonal(ratios, 1.0)
    return ratios


def document_ratios(
    evidence: CertificatePoints,
    proposing: CertificatePoints,
    class_count: int,
    level: float,
    generator: np.random.Generator,
) -> FloatArray:
    """Return bounds from above of the ratios of class shares, by documents whose points may depend on each other.

    A ratio is below r if documents have fewer points of class c on average than r times those of class y. That is
    tested at the largest r which is not refused. A document with more points than the largest proposing one counts as
    that one.

    Args:
        evidence: In canonical order, with points of each class.
        proposing: In canonical order.
        level: As in `point_ratios`.
        generator: As `canonical` gives it.

    Returns:
        As `point_ratios`.
    """
    counts, known = (document_counts(points.document, points.label, class_count) for points in (evidence, proposing))
    size = known.sum(axis=1).max()
    counts = _counted_as(counts, size)[generator.permutation(len(counts))]
    uniform, each = 1.0 - generator.random(), level / (class_count * (class_count - 1))
    ratios = np.ones((class_count, class_count))
    for y in range(class_count):
        parts = ((of, np.repeat(of[:, [y]], class_count, axis=1)) for of in (counts, known))
        ratios[y] = _largest_ratios(*parts, size=size, level=each, uniform=uniform)
    np.fill_diagonal(ratios, 1.0)
    return ratios


def document_counts(document: IntArray, cell: IntArray, cell_count: int) -> FloatArray:
    """Return how many points of each document are in each cell, (documents, cell_count) float64.

    Args:
        document: (n,) int64, the number of the document of each point, from 0.
        cell: (n,) int64 in [0, cell_count).

    Examples:
        >>> document_counts(np.array([0, 0, 1]), np.array([1, 1, 0]), 2).tolist()
        [[0.0, 2.0], [1.0, 0.0]]
    """
    found = np.bincount(document * cell_count + cell, minlength=(1 + int(document.max(initial=-1))) * cell_count)
    return found.reshape(-1, cell_count).astype(np.float64)


def _counted_as(counts: FloatArray, size: float) -> FloatArray:
    """Return the counts of documents of which those with more points count as one of this size."""
    weighed: FloatArray = counts * np.minimum(1.0, size / counts.sum(axis=1, keepdims=True))
    return weighed


def _largest_ratios(
    counts: tuple[FloatArray, FloatArray],
    known: tuple[FloatArray, FloatArray],
    *,
    size: float,
    level: float,
    uniform: float = 1.0,
) -> FloatArray:
    """Bounds from above of m ratios of means over documents, each of which fails with probability `level` at most.

    counts: (documents, m) float64 in [0, size] each, the one and the other, in an order that is random given them.
    known: The same of documents that propose. Returns (m,) float64.
    """
    of, to = (each / size for each in counts)
    known_of, known_to = (each / size for each in known)
    # A ratio is tested by the same stakes wherever it lies, so that a larger one is always refused with a smaller one.
    foretold = (known_of.sum(axis=0) + 0.5 / size) / (known_to.sum(axis=0) + 0.5 / size)
    stakes = stakes_of(of - foretold * to, known_of - foretold * known_to, level)
    low, high = np.full((2, of.shape[1]), LARGEST_LOG_RATIO) * [[-1], [1]]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refused = staked_p_values(of - np.exp(middle) * to, stakes, uniform) <= level
        low, high = np.where(refused, low, middle), np.where(refused, middle, high)
    ratios: FloatArray = np.exp(high)
    return ratios


def costs_of_points(
    loss: FloatArray, shares: ClassShares | EstimatedShares, ratios: FloatArray, *, alpha: float
) -> FloatArray:
    """Return what predictions cost at most within their predicted class under declared shares.

    Args:
        loss: (C, C) float64, by true and by predicted class.
        shares: The shares.
        ratios: Bounds, as in `point_ratios`.
        alpha: The largest mean loss.

    Returns:
        (C, C) float64, 0 on its diagonal.
    """
    weight = _largest_weights(shares, ratios)
    cost = alpha + np.where(loss > alpha, weight, 1 / weight.T) * (loss - alpha)
    return np.where(np.eye(len(loss), dtype=np.bool_), loss, np.maximum(cost, 0.0))


def costs_of_documents(
    loss: FloatArray, shares: ClassShares | EstimatedShares, ratios: FloatArray, *, alpha: float
) -> FloatArray:
    """Return what predictions cost at most, as `costs_of_points` does, if the largest cost counts as a unit.

    In a game, what is staked is a part of the most that a point can cost beyond alpha. In that unit no point may cost
    less than it does under the true shares. A right prediction gains least where the unit is largest, and an error
    costs most, next to the dearest one of its predicted class, by the ratio of the weights of both.
    """
    weight, excess = _largest_weights(shares, ratios), loss - alpha
    found = costs_of_points(loss, shares, ratios, alpha=alpha)
    for c in range(len(loss)):
        dear = np.flatnonzero(excess[:, c] > 0)
        if dear.size:
            unit = (weight[dear, c] * excess[dear, c]).max()
            of_dear = excess[:, [c]] / excess[dear, c]  # (C, dear)
            parts = np.where(of_dear > 0, of_dear * weight[:, dear], of_dear / weight[dear].T)
            found[:, c] = np.maximum(alpha + unit * np.where(excess[:, c] > 0, parts.min(axis=1), parts.max(axis=1)), 0)
            found[c, c] = loss[c, c]
    return found


def _largest_weights(shares: ClassShares | EstimatedShares, ratios: FloatArray) -> FloatArray:
    """At [y, c], the largest w_y / w_c, (C, C) float64; 1 on the diagonal."""
    weights: FloatArray = np.divide.outer(shares.most, shares.least) * ratios
    np.fill_diagonal(weights, 1.0)
    return weights


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
    """

    of_traffic: FloatArray
    of_labels: FloatArray
    proposing: FloatArray

    def intervals(self, level: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Return what `Mixes.intervals` does."""
        class_count, size = len(self.traffic), self.proposing.sum(axis=1).max()
        in_cells = [
            of.reshape(-1, class_count, class_count) for of in (_counted_as(self.of_labels, size), self.proposing)
        ]
        by_predicted = _counted_as(self.of_traffic, size), in_cells[1].sum(axis=2)

        def both(*counts: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
            high = _largest_ratios(*counts, size=size, level=level)
            others = _largest_ratios(*((to - of, to) for of, to in counts), size=size, level=level)
            return 1 - np.minimum(others, 1.0), np.minimum(high, 1.0)

        of_mix = both(*((of, np.repeat(of.sum(axis=1, keepdims=True), class_count, axis=1)) for of in by_predicted))
        low, high = both(*((of.reshape(len(of), -1), np.tile(of.sum(axis=1), class_count)) for of in in_cells))
        return of_mix, (low.reshape(class_count, -1), high.reshape(class_count, -1))


@dataclass(frozen=True, slots=True)
class Departure:
    """A predicted class that traffic has in another share than the declared class shares allow.

    Attributes:
        seen: Its share of traffic.
        interval: What its share may be by this traffic.
        allowed: What its share may be under the declared class shares.
    """

    predicted: int
    seen: float
    interval: tuple[float, float]
    allowed: tuple[float, float]


def departures(mixes: Mixes, declared: ClassShares) -> list[Departure]:
    """Return the predicted classes whose share of traffic no declared class shares explain.

    If points of each class are like those of the calibration data and the class shares lie in their box, there is one
    with probability `DEPARTURE_LEVEL` at most.

    Args:
        mixes: What is known of traffic and of the calibration data.
        declared: The shares.
    """
    class_count, total = len(mixes.traffic), int(mixes.traffic.sum())
    if not total:
        return []
    level = DEPARTURE_LEVEL / (2 * class_count * (1 + class_count))
    (low, high), (each_low, each_high) = mixes.intervals(level)
    box = np.array(declared.least), np.array(declared.most)
    least, most = -largest_mean(-each_low, *box), largest_mean(each_high, *box)
    return [
        Departure(
            of, int(mixes.traffic[of]) / total, (float(low[of]), float(high[of])), (float(least[of]), float(most[of]))
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
