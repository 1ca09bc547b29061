"""Exact bounds of many binomial probabilities at once.

Source: Clopper & Pearson (1934), *The use of confidence or fiducial limits illustrated in the case of the binomial*.
"""

import numpy as np

from venn_admit.core.types import FloatArray, IntArray

MOST_STEPS = 60
NEARLY = 1e-7
"""Once the logarithm of the tail is as near to that of the level, one more step leaves about the square of this."""
LEAST_TERM = 1e-300
"""Takes the place of a zero in the continued fraction."""
ACCURACY = 1e-14
MOST_TERMS = 10_000
"""It takes about the square root of the number of trials."""


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
