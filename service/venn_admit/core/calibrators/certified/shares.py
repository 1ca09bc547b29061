"""Declared class shares: what errors cost if traffic has the classes in other shares than the calibration data.

Under label shift, points of a class are as they are in the calibration data, and the classes have shares q instead of
p. Let w_y = q_y / p_y. The mean loss among the admitted points of a predicted class c is below alpha in such traffic
if E(w_y (loss - alpha)) over them is below 0 in the calibration data. Divided by w_c, a right prediction counts as
before, and an error of true class y as if it cost alpha + (w_y / w_c) (loss - alpha): a loss like any other, by true
and by predicted class.

Neither p nor, within its box, q is known. The ratio p_c / p_y has an exact upper bound, since of the points of the two
classes a binomial number is of class y. These bounds rest on the labels that are tested, so that no bet of a game may
know them beforehand. The tests are tails instead, binomial ones or Hoeffding's, which grow with what errors cost: if
none costs less than it does under the true shares, the test holds wherever q lies in its box.

Sources: Podkopaev & Ramdas (2021), *Distribution-free uncertainty quantification for classification under label
shift*; Si, Park, Lee, Dobriban & Bastani (2024), *PAC prediction sets under label shift*.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.calibrators.class_shares import ClassShares
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

SHARES_PART = 0.1
"""The part of 1 - confidence that the bounds of the calibration data's own shares have."""
HALVINGS = 60
DEPARTURE_LEVEL = 0.01
"""How likely it is at most that traffic with the declared class shares is taken for other traffic."""


def costs_under_shares(
    loss: FloatArray, label: IntArray, declared: ClassShares, *, alpha: float, level: float
) -> FloatArray:
    """Return what predictions cost at most within their predicted class under declared shares.

    Args:
        loss: (C, C) float64, by true and by predicted class, with errors above alpha.
        label: (n,) int64, those of independent random points.
        declared: The shares.
        alpha: The largest mean loss.
        level: The probability that a bound of the calibration data's own shares does not hold.

    Returns:
        (C, C) float64, 0 on its diagonal.

    Raises:
        InvalidInputError: A class has no label.
    """
    counts = np.bincount(label, minlength=len(loss))
    if not counts.all():
        raise InvalidInputError(
            "class_shares: expected labels of every class on mc and vp, by which the shares of the calibration data "
            f"are bounded, got none of class {int(np.argmin(counts))}; label more points"
        )
    found = loss.copy()
    pairs = [(y, c) for y in range(len(loss)) for c in range(len(loss)) if y != c]
    for true, predicted in pairs:
        of_both = int(counts[true] + counts[predicted])
        least = least_probability(int(counts[true]), of_both, level / len(pairs))
        largest = float(declared.shares[true] + declared.within)
        ratio = largest / float(declared.shares[predicted] - declared.within) * (1 - least) / least
        found[true, predicted] = alpha + ratio * (loss[true, predicted] - alpha)
    return found


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
    of_class = confusion.sum(axis=0).tolist()
    found = []
    for predicted, count in enumerate(traffic.tolist()):
        low, high = _interval(count, total, level)
        of_labels = [_interval(*both, level) for both in zip(confusion[predicted].tolist(), of_class, strict=True)]
        least = -_largest_mean([-of_label for of_label, _ in of_labels], declared)
        most = _largest_mean([of_label for _, of_label in of_labels], declared)
        if low > most or high < least:
            found.append(Departure(predicted, count / total, (low, high), (least, most)))
    return found


def _interval(count: int, trials: int, level: float) -> tuple[float, float]:
    """The bounds of a binomial probability, each of which fails with probability `level` at most."""
    low, high = (least_probability(one, trials, level) if one else 0.0 for one in (count, trials - count))
    return low, 1 - high


def _largest_mean(values: Sequence[float], declared: ClassShares) -> float:
    """The largest mean of the classes' values under shares within the box that sum to 1."""
    within = float(declared.within)
    shares = [float(share) - within for share in declared.shares]
    left = 1 - math.fsum(shares)
    for number in sorted(range(len(values)), key=lambda one: values[one], reverse=True):
        taken = min(left, 2 * within)
        shares[number] += taken
        left -= taken
    return math.fsum(share * value for share, value in zip(shares, values, strict=True))


def least_probability(count: int, trials: int, level: float) -> float:
    """Return the exact lower bound of a binomial probability, which exceeds it with probability `level` at most.

    Source: Clopper & Pearson (1934), *The use of confidence or fiducial limits illustrated in the case of the
    binomial*.

    Args:
        count: In [1, trials].
        level: In (0, 1).

    Examples:
        >>> round(least_probability(8, 10, 0.05), 4)
        0.4931
    """
    low, high = 0.0, count / trials
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if 1 - binomial_tail(count - 1, trials, middle) <= level:
            low = middle
        else:
            high = middle
    return low
