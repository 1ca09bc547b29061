"""Bounds of shares: of binomial probabilities, exactly, and of ratios of means over documents.

A ratio of means over documents, whose points may depend on each other, is below r if the mean of the one less r times
the other is below 0. That is tested by a game whose stakes are the same for every r, so that a larger r is refused with
a smaller one.

Source: Clopper & Pearson (1934), *The use of confidence or fiducial limits illustrated in the case of the binomial*.
"""

import numpy as np

from venn_admit.core.calibrators.certified.hypothesis_tests import staked_p_values, stakes_of
from venn_admit.core.types import FloatArray, IntArray

MOST_STEPS = 60
NEARLY = 1e-7
"""Once the logarithm of the tail is as near to that of the level, one more step leaves about the square of this."""
LEAST_TERM = 1e-300
"""Takes the place of a zero in the continued fraction."""
ACCURACY = 1e-14
MOST_TERMS = 10_000
"""It takes about the square root of the number of trials."""
LARGEST_LOG_RATIO = 25.0
"""Bounds of the logarithms of ratios are no larger."""
HALVINGS = 40
"""How often the interval that holds them is halved."""


def least_probabilities(count: IntArray, trials: IntArray, level: float) -> FloatArray:
    """Return the exact lower bounds of binomial probabilities, each of which fails with probability `level` at most.

    Args:
        count: (n,) int64, each in [0, trials].
        trials: (n,) int64.
        level: In (0, 0.5].

    Returns:
        (n,) float64; 0 where nothing was counted.

    Examples:
        >>> least_probabilities(np.array([0, 8]), np.array([10, 10]), 0.05).round(4).tolist()
        [0.0, 0.4931]
    """
    pairs, place = np.unique(np.stack([count, trials]), axis=1, return_inverse=True)
    some = pairs[0] > 0
    bound = np.zeros(pairs.shape[1])
    if some.any():
        k, n = pairs[:, some]
        log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(n.max()) + 1)))])
        log_choices = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
        # In log p, the logarithm of the tail is concave, so that a step of Newton's method never passes the bound.
        log_p = np.log(k / n) - 1 / np.sqrt(k)
        for _ in range(MOST_STEPS):
            excess, slope = _log_upper_tails(k, n, log_p, log_choices - np.log(level))
            log_p -= excess / slope
            if (np.abs(excess) <= NEARLY).all():
                break
        bound[some] = np.exp(log_p)
    return bound[place.reshape(-1)]


def intervals(count: IntArray, trials: IntArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the exact bounds of binomial probabilities, each of which fails with probability `level` at most.

    Args:
        count: (n,) int64, each in [0, trials].
        trials: (n,) int64.
        level: In (0, 0.5].

    Returns:
        The lower and the upper ones, (n,) float64 each.
    """
    return least_probabilities(count, trials, level), 1 - least_probabilities(trials - count, trials, level)


def _log_upper_tails(
    k: IntArray, n: IntArray, log_p: FloatArray, log_factor: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Logarithm of P(X >= k), and its slope in log p, for binomial X and 0 < k <= n.

    log_factor: (n,) float64, the logarithm of n choose k, less one that the result is compared with.

    The tail is the incomplete beta function, by its continued fraction. Source: DLMF, 8.17.22, evaluated by the method
    of Lentz.
    """
    p = np.exp(log_p)
    a, b = k.astype(np.float64), (n - k + 1).astype(np.float64)
    upper = np.ones(len(a))
    lower = 1 / _away_from_zero(1 - (a + b) * p / (a + 1))
    fraction = lower.copy()
    for m in range(1, MOST_TERMS):
        for term in (
            m * (b - m) * p / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * p / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            lower = 1 / _away_from_zero(1 + term * lower)
            upper = _away_from_zero(1 + term / upper)
            step = upper * lower
            fraction *= step
        if (np.abs(step - 1) < ACCURACY).all():
            break
    return log_factor + a * log_p + b * np.log1p(-p) + np.log(fraction), a / ((1 - p) * fraction)


def _away_from_zero(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) < LEAST_TERM, LEAST_TERM, values)


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


def counted_as(counts: FloatArray, size: float) -> FloatArray:
    """Return the counts of documents of which those with more points count as one of this size.

    Args:
        counts: (documents, m) float64.
    """
    weighed: FloatArray = counts * np.minimum(1.0, size / counts.sum(axis=1, keepdims=True))
    return weighed


def largest_ratios(
    counts: tuple[FloatArray, FloatArray],
    known: tuple[FloatArray, FloatArray],
    *,
    size: float | FloatArray,
    level: float,
    uniform: float = 1.0,
) -> FloatArray:
    """Return bounds from above of ratios of means over documents, each of which fails with probability `level` at most.

    Args:
        counts: (documents, m) float64 each, the one, in [0, size], and the other, in an order without regard to them.
        known: The same of documents that propose.
        size: The points of the largest document; one number, or one for each of the first counts.

    Returns:
        (m,) float64.
    """
    of, to = (each / size for each in counts)
    known_of, known_to = (each / size for each in known)
    foretold = (known_of.sum(axis=0) + 0.5 / size) / (known_to.sum(axis=0) + 0.5 / size)
    stakes = stakes_of(of - foretold * to, known_of - foretold * known_to, level)
    low, high = np.full((2, of.shape[1]), LARGEST_LOG_RATIO) * [[-1], [1]]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refused = staked_p_values(of - np.exp(middle) * to, stakes, uniform) <= level
        low, high = np.where(refused, low, middle), np.where(refused, middle, high)
    ratios: FloatArray = np.exp(high)
    return ratios
