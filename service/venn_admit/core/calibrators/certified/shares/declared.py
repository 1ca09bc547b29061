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

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.shares.bounds import (
    counted_as,
    document_counts,
    largest_ratios,
    least_probabilities,
)
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.types import FloatArray, IntArray

SHARES_PART = 0.1
"""The part of 1 - confidence that the bounds of the calibration data's own shares have."""


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

    A document with more points than the largest proposing one counts as that one.

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
    counts = counted_as(counts, size)[generator.permutation(len(counts))]
    uniform, each = 1.0 - generator.random(), level / (class_count * (class_count - 1))
    ratios = np.ones((class_count, class_count))
    for y in range(class_count):
        parts = ((of, np.repeat(of[:, [y]], class_count, axis=1)) for of in (counts, known))
        ratios[y] = largest_ratios(*parts, size=size, level=each, uniform=uniform)
    np.fill_diagonal(ratios, 1.0)
    return ratios


def costs_of_points(
    loss: FloatArray, shares: ClassShares | EstimatedShares, ratios: FloatArray, *, alpha: float
) -> FloatArray:
    """Return what predictions cost at most within their predicted class under declared shares.

    Args:
        loss: (C, C) float64, by true and by predicted class.
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
