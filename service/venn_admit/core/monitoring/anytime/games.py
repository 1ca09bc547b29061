"""Games against hypotheses, each played by several gamblers, whose mean wealth is an e-process.

Each gambler stakes a fixed part of what a document can cost it, so that nothing is tuned to the data. Wealth is a
product of simple fractions: no logarithm is taken, and a product that is continued has the same bits as one that was
never interrupted. Games may start again with every document, so that what good times cost is no loss to later ones.

Sources: Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by betting*; Vovk, Gammerman &
Shafer (2022), *Algorithmic Learning in a Random World*, 2nd edition, chapter 8; Shin, Ramdas & Rinaldo (2023),
*E-detectors: a nonparametric framework for sequential change detection*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray

BLOCK_VALUES = 1 << 20
"""About how many factors are computed at a time."""
FEW_VALUES = 512
"""Up to this number of values, sums go on faster along one axis than along three, though factors are copied for it."""
STAKES: FloatArray = np.array([0.8 / 2**halvings for halvings in range(9)])
"""(S,) float64 in (0, 1): the parts that gamblers stake. A stake that is wrong by a factor of the square root of two
grows at least five sixths as fast as the best one; the mean over nine costs log 9, about as much as one more error.
"""
FIRST_START = 0.5
"""The weight of the start before the first document, so that harm from the start on is seen nearly as soon as by a game
that starts once: it takes twice the e-value."""
EARLY_STARTS = 200
"""The weight of the starts that are still to come has fallen to a half after three times as many documents."""


def excess_factors(
    hits: IntArray | FloatArray,
    points: IntArray | FloatArray,
    largest: IntArray,
    share: float | FloatArray,
    stakes: FloatArray = STAKES,
) -> FloatArray:
    """What a document multiplies wealth by in the game that hits are more than a share of the points.

    With x hits among a points, a at most M, and a stake c, the factor is 1 + c (x / share - a) / M, which is at least
    1 - c. If E(x) <= share E(a), its mean is at most 1.

    Args:
        hits: (n, g), x.
        points: (n, g), a, in [x, M].
        largest: (g,) int64 >= 1, M, fixed before the documents are seen.
        share: In (0, 1], or an array that broadcasts with the others.
        stakes: (S,) float64 in (0, 1).

    Returns:
        (n, g, S) float64.
    """
    gain = (hits / share - points) / largest  # (n, g)
    factors: FloatArray = gain[:, :, None] * stakes
    factors += 1.0  # in place: fresh pages would cost more than the arithmetic
    return factors


def rank_factors(hit: BoolArray, uniform: FloatArray, hits_before: IntArray, before: IntArray) -> FloatArray:
    """What a document multiplies wealth by in the game that hits become more frequent than they were, (n, S) float64.

    The conformal p-value of a document among those before it and itself, U smoothing the ties, is uniform on [0, 1]
    and independent of the earlier ones if the documents are exchangeable. The bet is on p <= h, with h the share of
    hits before: the factor is 1 + c (1[p <= h] / h - 1).

    Args:
        hit: (n,) bool, whether the document is a hit.
        uniform: (n,) float64 in [0, 1), U.
        hits_before: (n,) int64, how many documents before it were hits.
        before: (n,) int64, how many there were.
    """
    p_value = np.where(hit, uniform * (hits_before + 1), hits_before + uniform * (before - hits_before + 1))
    p_value = p_value / (before + 1)
    aim = (hits_before + 1) / (before + 2)
    gain = (p_value <= aim) / aim - 1.0
    return 1.0 + gain[:, None] * STAKES


def play(wealth: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Continue games, and return the mean wealth after each document.

    Args:
        wealth: (g, S) float64, before the first document.
        factors: (n, g, S) float64, >= 0, n >= 1; overwritten, since a copy would cost more than the arithmetic.

    Returns:
        The e-values (n, g) float64, and the wealth after the last document (g, S); both may overflow to inf.
    """
    with np.errstate(over="ignore", under="ignore"):
        factors[0] *= wealth
        np.multiply.accumulate(factors, axis=0, out=factors)
        return mean_wealth(factors), factors[-1].copy()


def mean_wealth(wealth: FloatArray) -> FloatArray:
    """Return the mean over gamblers.

    They are added one after the other, so that its bits do not depend on other axes.

    Args:
        wealth: (..., S) float64.
    """
    total = wealth[..., 0].copy()
    for stake in range(1, wealth.shape[-1]):
        total += wealth[..., stake]
    mean: FloatArray = total / wealth.shape[-1]
    return mean


@dataclass(slots=True, eq=False)
class Games:
    """The games of one lamp.

    Attributes:
        wealth: (g, S) float64, of each gambler.
        most: (g,) float64, the largest e-value so far.
        crossed: (g,) int64, the number of documents at which `most` reached the level of the game; 0 if it has not.
    """

    wealth: FloatArray
    most: FloatArray
    crossed: IntArray

    @classmethod
    def of(cls, count: int) -> "Games":
        """Return games that have not begun."""
        return cls(np.ones((count, len(STAKES))), np.ones(count), np.zeros(count, dtype=np.int64))

    @property
    def e_value(self) -> FloatArray:
        """(g,) float64, the mean wealth now."""
        return mean_wealth(self.wealth)

    def go_on(self, factors: FloatArray, before: int, least: float) -> None:
        """Play on.

        Args:
            factors: (n, g, S) float64, n >= 1; overwritten.
            before: The number of documents so far.
            least: The e-value that a game must reach.
        """
        e_values, self.wealth = play(self.wealth, factors)
        reached = e_values >= least
        new = reached.any(axis=0) & (self.crossed == 0)
        self.crossed = np.where(new, before + 1 + reached.argmax(axis=0), self.crossed)
        self.most = np.maximum(self.most, e_values.max(axis=0))


def still_to_start(counted: IntArray) -> FloatArray:
    """Return the weight of the starts that come after given numbers of documents; after none it is 1 - `FIRST_START`.

    It falls by a square root, so that a start after n documents has about n ** -1.5: good times cost the logarithm of
    their length. A square root is rounded alike by every processor.
    """
    return (1 - FIRST_START) * np.sqrt(EARLY_STARTS / (EARLY_STARTS + counted))


def play_from_starts(wealth: FloatArray, joining: FloatArray, factors: FloatArray) -> FloatArray:
    """Continue the sums of games of which further ones start before each document, and return them after each.

    Args:
        wealth: (m, g, S) float64, of m sums, before the first document.
        joining: (n, m, g) float64, what starts before each document in each sum.
        factors: (n, g, S) float64, >= 0.

    Returns:
        (n, m, g, S) float64; it may overflow to inf.
    """
    path = rows = np.empty((len(factors), *wealth.shape))
    path[:] = joining[..., None]
    if wealth.size <= FEW_VALUES:
        factors = np.broadcast_to(factors[:, np.newaxis], path.shape).reshape(len(path), wealth.size)
        rows, wealth = path.reshape(factors.shape), wealth.ravel()
    with np.errstate(over="ignore", under="ignore"):
        for sums, factor in zip(rows, factors, strict=True):
            np.add(sums, wealth, out=sums)
            wealth = np.multiply(sums, factor, out=sums)
    return path


@dataclass(slots=True, eq=False)
class GamesFromStarts(Games):
    """The games of one lamp, of which another one starts with every document that counts in them.

    The mixture is the mean of all of these by weights that are fixed beforehand and add up to 1, so it is an e-process:
    if what is promised holds, it ever reaches 1 / level with a chance of at most the level. The e-detector is the sum
    of all that have started (Shiryaev and Roberts): less the documents that count it is a supermartingale, so if what
    is promised holds, on average at least N documents count before it first reaches N.

    Attributes:
        is_detector: Whether it is the e-detector.
        moment: (g, S) float64, the wealth of each game times the number of documents before it started, summed.
        counted: (g,) int64, the documents that count in each game.
        since: (g,) int64, the number of the document with which the games started that lit the lamp, by the mean over
            their wealth; 0 if it is not lit.
    """

    is_detector: bool
    moment: FloatArray
    counted: IntArray
    since: IntArray

    @classmethod
    def before_the_first(cls, count: int, *, is_detector: bool) -> "GamesFromStarts":
        """Return games that have not begun.

        Args:
            count: How many.
            is_detector: Whether they are the e-detector.
        """
        zeros, none = np.zeros((count, len(STAKES))), np.zeros(count, dtype=np.int64)
        first, most = (0.0, 0.0) if is_detector else (FIRST_START, 1.0)
        return cls(zeros + first, np.zeros(count) + most, none.copy(), is_detector, zeros, none.copy(), none)

    @property
    def e_value(self) -> FloatArray:
        """(g,) float64, the mixture, or the sum, now."""
        return mean_wealth(self.wealth) + self.to_come(self.counted)

    def to_start(self, counted: IntArray) -> FloatArray:
        """Return the weight of the start before the last of the documents that count.

        Args:
            counted: How many count, any shape.
        """
        return np.ones(counted.shape) if self.is_detector else still_to_start(counted - 1) - still_to_start(counted)

    def to_come(self, counted: IntArray) -> FloatArray:
        """Return the weight of the games that have not started yet; it is kept.

        Args:
            counted: How many documents count, any shape.
        """
        return np.zeros(counted.shape) if self.is_detector else still_to_start(counted)


@dataclass(frozen=True, slots=True, eq=False)
class Further:
    """What further documents are to the games of a lamp.

    Attributes:
        factors: (n, g, S) float64, n >= 1; 1 where a document does not count.
        counts: (n, g) bool, whether a document counts in a game.
        least: The value that lights the lamp.
    """

    games: GamesFromStarts
    factors: FloatArray
    counts: BoolArray
    least: float


def go_on_from_starts(several: Sequence[Further], before: int) -> None:
    """Play on with the games of several lamps at once.

    Args:
        several: What the documents are to the games of each lamp.
        before: The number of documents so far.
    """
    wealth, joining, counted = [], [], []
    for of in several:
        counts = of.games.counted + np.cumsum(of.counts, axis=0)  # (n, g)
        joins = np.where(of.counts, of.games.to_start(counts), 0.0)
        joining.append(np.stack([joins, joins * (before + np.arange(len(joins)))[:, None]], axis=1))  # (n, 2, g)
        wealth.append(np.stack([of.games.wealth, of.games.moment]))  # (2, g, S)
        counted.append(counts)
    factors = np.concatenate([of.factors for of in several], axis=1)
    path = play_from_starts(np.concatenate(wealth, axis=1), np.concatenate(joining, axis=2), factors)
    means, ends = mean_wealth(path), np.cumsum([len(of.games.most) for of in several])
    for of, counts, place in zip(several, counted, np.split(np.arange(ends[-1]), ends[:-1]), strict=True):
        games, now, moment = of.games, means[:, 0, place], means[:, 1, place]  # (n, g) each
        values = now + games.to_come(counts)
        reached = values >= of.least
        new, at = reached.any(axis=0) & (games.crossed == 0), reached.argmax(axis=0)
        games.crossed = np.where(new, before + 1 + at, games.crossed)
        lit = np.flatnonzero(new)
        games.since[lit] = 1 + np.round(moment[at[lit], lit] / now[at[lit], lit])
        games.most = np.maximum(games.most, values.max(axis=0))
        games.wealth, games.moment, games.counted = path[-1, 0, place], path[-1, 1, place], counts[-1]
