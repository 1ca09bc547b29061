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

Sources: Podkopaev & Ramdas (2021), *Distribution-free uncertainty quantification for classification under label
shift*; Si, Park, Lee, Dobriban & Bastani (2024), *PAC prediction sets under label shift*.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.binomial_bounds import intervals, least_probabilities
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

SHARES_PART = 0.1
"""The part of 1 - confidence that the bounds of the calibration data's own shares have."""
DEPARTURE_LEVEL = 0.01
"""How likely it is at most that traffic with the declared class shares is taken for other traffic."""


def costs_under_shares(
    loss: FloatArray, counts: IntArray, declared: ClassShares | EstimatedShares, *, alpha: float, level: float
) -> FloatArray:
    """Return what predictions cost at most within their predicted class under declared shares.

    Args:
        loss: (C, C) float64, by true and by predicted class.
        counts: (C,) int64, how many of some independent random points are of each class.
        declared: The shares.
        alpha: The largest mean loss.
        level: The probability that a bound of the calibration data's own shares does not hold.

    Returns:
        (C, C) float64, 0 on its diagonal.

    Raises:
        InvalidInputError: A class has no label.
    """
    if not counts.all():
        raise InvalidInputError(
            "class_shares: expected labels of every class on mc and vp, by which the shares of the calibration data "
            f"are bounded, got none of class {int(np.argmin(counts))}; label more points"
        )
    of_class = np.broadcast_to(counts[:, np.newaxis], loss.shape)
    pairs = len(loss) * (len(loss) - 1)
    least = least_probabilities(of_class.ravel(), (of_class + of_class.T).ravel(), level / pairs).reshape(loss.shape)
    ratio = np.where(
        loss > alpha,
        np.divide.outer(declared.most, declared.least) * (1 - least) / least,
        np.divide.outer(declared.least, declared.most) * least.T / (1 - least.T),
    )
    cost = alpha + ratio * (loss - alpha)
    return np.where(np.eye(len(loss), dtype=np.bool_), loss, np.maximum(cost, 0.0))


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


def departures(traffic: IntArray, confusion: IntArray, declared: ClassShares) -> list[Departure]:
    """Return the predicted classes whose share of traffic no declared class shares explain.

    If points of each class are like those of the calibration data and the class shares lie in their box, there is one
    with probability `DEPARTURE_LEVEL` at most.

    Args:
        traffic: (C,) int64, the points of traffic, one of each document, by predicted class.
        confusion: (C, C) int64, those of the calibration data, by predicted and by true class; some of each true one.
        declared: The shares.
    """
    class_count, total = len(traffic), int(traffic.sum())
    if not total:
        return []
    level = DEPARTURE_LEVEL / (2 * class_count * (1 + class_count))
    (low, high), (each_low, each_high) = mix_intervals(traffic, confusion, level)
    box = np.array(declared.least), np.array(declared.most)
    least, most = -largest_mean(-each_low, *box), largest_mean(each_high, *box)
    return [
        Departure(of, int(traffic[of]) / total, (float(low[of]), float(high[of])), (float(least[of]), float(most[of])))
        for of in np.flatnonzero((low > most) | (high < least)).tolist()
    ]


def confusion_counts(predicted: IntArray, label: IntArray, class_count: int) -> IntArray:
    """Return how many points are of each predicted and true class.

    Returns:
        (C, C) int64, by predicted and by true class.
    """
    return np.bincount(predicted * class_count + label, minlength=class_count**2).reshape(class_count, class_count)


def mix_intervals(
    traffic: IntArray, confusion: IntArray, level: float
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Return exact bounds, each of which fails with probability `level` at most.

    Args:
        traffic: (C,) int64, the points of traffic by predicted class; some.
        confusion: (C, C) int64, those of the calibration data by predicted and by true class; some of each true one.

    Returns:
        The lower and the upper ones of the share of each predicted class in traffic, (C,) float64 each, and of the
        share of each predicted class among the points of each true one, (C, C) float64 each.
    """
    count = len(traffic)
    low, high = intervals(confusion.ravel(), np.tile(confusion.sum(axis=0), count), level)
    return intervals(traffic, np.full(count, traffic.sum()), level), (
        low.reshape(count, count),
        high.reshape(count, count),
    )


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
