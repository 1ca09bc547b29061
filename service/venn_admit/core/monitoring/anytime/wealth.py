"""Games against a hypothesis, played by several gamblers at once: their mean wealth is an e-process.

Each gambler stakes a fixed part of what a document can cost it, so that nothing is tuned to the data. Wealth is a
product of simple fractions: no logarithm is taken, and a product that is continued has the same bits as one that was
never interrupted.

Sources: Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by betting*; Vovk, Gammerman &
Shafer (2022), *Algorithmic Learning in a Random World*, 2nd edition, chapter 8.
"""

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray

STAKES: FloatArray = np.array([0.8 / 2**halvings for halvings in range(9)])
"""(S,) float64 in (0, 1): the parts that gamblers stake. A stake that is wrong by a factor of the square root of two
grows at least five sixths as fast as the best one; the mean over nine costs log 9, about as much as one more error.
"""


def excess_factors(hits: IntArray, points: IntArray, largest: IntArray, share: float | FloatArray) -> FloatArray:
    """What a document multiplies wealth by in the game that hits are more than a share of the points.

    With x hits among a points, a at most M, and a stake c, the factor is 1 + c (x / share - a) / M, which is at least
    1 - c. If E(x) <= share E(a), its mean is at most 1.

    Args:
        hits: (n, g) int64, x.
        points: (n, g) int64, a, in [x, M].
        largest: (g,) int64 >= 1, M, fixed before the documents are seen.
        share: In (0, 1], or an array that broadcasts with the others.

    Returns:
        (n, g, S) float64.
    """
    gain = (hits / share - points) / largest  # (n, g)
    return 1.0 + gain[:, :, None] * STAKES


def rank_factors(hit: BoolArray, uniform: FloatArray, hits_before: IntArray, before: IntArray) -> FloatArray:
    """What a document multiplies wealth by in the game that hits become more frequent than they were.

    The conformal p-value of a document among those before it and itself, U smoothing the ties, is uniform on [0, 1]
    and independent of the earlier ones if the documents are exchangeable. The bet is on p <= h, with h the share of
    hits before: the factor is 1 + c (1[p <= h] / h - 1).

    Args:
        hit: (n,) bool, whether the document is a hit.
        uniform: (n,) float64 in [0, 1), U.
        hits_before: (n,) int64, how many documents before it were hits.
        before: (n,) int64, how many there were.

    Returns:
        (n, S) float64.
    """
    p_value = np.where(hit, uniform * (hits_before + 1), hits_before + uniform * (before - hits_before + 1))
    p_value = p_value / (before + 1)
    aim = (hits_before + 1) / (before + 2)
    gain = (p_value <= aim) / aim - 1.0
    factors: FloatArray = 1.0 + gain[:, None] * STAKES
    return factors


def play(wealth: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Continue games, and return the mean wealth after each document.

    Args:
        wealth: (g, S) float64, before the first document.
        factors: (n, g, S) float64, >= 0, n >= 1.

    Returns:
        The e-values (n, g) float64, and the wealth after the last document (g, S); both may overflow to inf.
    """
    with np.errstate(over="ignore", under="ignore"):
        path = np.multiply.accumulate(np.concatenate([wealth[None], factors]), axis=0)[1:]  # (n, g, S)
        # One after the other, so that the bits do not depend on how many documents there are.
        total = path[:, :, 0].copy()
        for stake in range(1, path.shape[2]):
            total += path[:, :, stake]
    return total / path.shape[2], path[-1]


def started(games: int) -> FloatArray:
    """The wealth of all gamblers before the first document, (games, S).

    Args:
        games: g.
    """
    return np.ones((games, len(STAKES)))
