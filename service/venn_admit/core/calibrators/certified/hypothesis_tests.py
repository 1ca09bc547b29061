"""Tests of the promise for each class, on documents (docs/explanation/certificate.md).

For a class, let e be the sum of the losses and a the number of all admitted points of one document; by default, e is
the number of wrong ones. The hypothesis is E((e - alpha a) min(1, M / a)) >= 0 over documents: the mean loss of the
admitted points is alpha or more, where a document with more than M of them counts as M. M is the largest a of a
proposing document.

The betting test is a game against the hypothesis, valid in finite samples. Sources: Waudby-Smith & Ramdas (2024),
*Estimating means of bounded random variables by betting*; Browne (1999), *Reaching goals by a deadline: digital options
and continuous-time active portfolio management*; Ramdas & Manole (2023), *Randomized and exchangeable improvements of
Markov's, Chebyshev's and Chernoff's inequalities*.

Under class shares of traffic, what errors cost is only bounded, by labels that are tested. Then the stakes come from
costs that were foretold: wealth falls as costs rise, so that it is at most what it would be under the true ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from venn_admit.core.calibrators.certification import DocumentTest
from venn_admit.core.calibrators.certified.losses import LossRanges
from venn_admit.core.types import BoolArray, FloatArray, IntArray

VARIANCE_FACTOR = 1.6
"""How much the variance seen is enlarged in a bet: errors vary more at the boundary of the hypothesis than below."""
LARGEST_STEP_COUNT = 2000
"""Bets are renewed at most this often; beyond, several documents share one."""
MOST_TOGETHER = 1 << 20
"""How many numbers games that are played together have at most."""
_LOOK = 16
"""After how many batches it is looked whether anybody still plays."""


def class_p_values(
    excess: FloatArray,
    admitted: IntArray,
    *,
    known: FloatArray,
    bound: FloatArray,
    ranges: LossRanges,
    alpha: float,
    level: float,
    test: DocumentTest,
    generator: np.random.Generator,
    foretold: FloatArray | None = None,
) -> FloatArray:
    """Return the p-value of each class for documents of several points: small if the promise holds for it.

    A class of which nothing is admitted has the p-value 1, since nothing speaks for it; else one of which no point can
    cost more than alpha has 0.

    Args:
        known: (documents of `knn`, h) float64, the excess of the proposing documents; in parts of its bound if
            `foretold` is given.
        bound: (h,) float64, M times what one point exceeds alpha by at most.
        generator: Seeded by the content of the evidence; every call must get one in the same state, so that all
            policies are tested with the same order of documents and the same uniform number.
        foretold: (documents, h) float64 in parts of its bound, the excess at costs that do not rest on the evidence,
            if what errors cost does; else None.

    Returns:
        (h,) float64 in [0, 1].
    """
    nothing: BoolArray = admitted.sum(axis=0) == 0
    if test is DocumentTest.ASYMPTOTIC:
        deviation = np.sqrt(document_variance(excess, admitted, ranges, alpha))
        standardised = np.divide(
            excess.mean(axis=0) * math.sqrt(len(excess)), deviation, out=np.zeros(len(nothing)), where=~nothing
        )
        p_values = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in standardised])
    else:
        order = generator.permutation(len(excess))
        uniform = 1.0 - generator.random()
        if foretold is None:
            p_values = betting_p_values(excess[order], bound, known, level=level, uniform=uniform)
        else:
            p_values = staked_p_values(excess[order] / bound, stakes_of(foretold[order], known, level), uniform)
    return np.where(nothing, 1.0, np.where(ranges.most <= alpha, 0.0, p_values))


def document_excess(admitted: IntArray, loss: FloatArray, most: IntArray, alpha: float) -> FloatArray:
    """The excess loss of each document, e - alpha a, where more than M admitted points count as M.

    Args:
        loss: (documents, h) float64, e.
        most: (h,) int64 > 0, M.

    Returns:
        (documents, h) float64.

    Examples:
        >>> document_excess(np.array([[2], [10]]), np.array([[0.0], [10.0]]), np.array([2]), 0.1).tolist()
        [[-0.2], [1.8]]
    """
    return (loss - alpha * admitted) * np.minimum(1.0, most / np.maximum(admitted, 1))


def document_variance(excess: FloatArray, admitted: IntArray, ranges: LossRanges, alpha: float) -> FloatArray:
    """The variance of the excess over documents, at least the least of independent points whose mean loss is alpha.

    Returns:
        (h,) float64.
    """
    least = ranges.least_variance(alpha) * admitted.mean(axis=0)
    larger: FloatArray = np.maximum(np.var(excess, axis=0, ddof=1), least)
    return larger


def boundary_deviation(excess: FloatArray, admitted: IntArray, ranges: LossRanges, alpha: float) -> FloatArray:
    """The standard deviation of the excess that the finite-sample tests reckon with, (h,) float64."""
    seen = VARIANCE_FACTOR * np.var(excess, axis=0, ddof=1)
    deviation: FloatArray = np.sqrt(np.maximum(seen, ranges.least_variance(alpha) * admitted.mean(axis=0)))
    return deviation


def binomial_tail(count: int, trials: int, probability: float) -> float:
    """P(X <= count) for a binomial X.

    Args:
        count: In [0, trials].

    Examples:
        >>> round(binomial_tail(0, 29, 0.1), 4)
        0.0471
    """
    return float(binomial_tails(trials, probability, most=count)[count])


def binomial_tails(trials: int, probability: float, *, most: int) -> FloatArray:
    """P(X <= k) for a binomial X and k = 0, ..., most, summed in logarithms, (most + 1,) float64."""
    k = np.arange(1, most + 1)
    logs = np.zeros(most + 1)
    np.cumsum(np.log(trials - k + 1) - np.log(k) + math.log(probability) - math.log1p(-probability), out=logs[1:])
    logs += trials * math.log1p(-probability)
    largest = float(logs.max())
    tails: FloatArray = np.minimum(1.0, np.cumsum(np.exp(logs - largest)) * math.exp(largest))
    if most == trials:
        tails[-1] = 1.0
    return tails


def bounded_p_value(loss: float, count: int, most: float, alpha: float) -> float:
    """Return the p-value of independent points that cost from 0 to `most`, if they cost alpha on average or more.

    It grows with the loss and with `most`, so that it is valid too if both are bounds from above that rest on the same
    points.

    Source: Hoeffding (1963), *Probability inequalities for sums of bounded random variables*, theorem 1.

    Args:
        loss: What all of them cost.
        most: The largest loss of a point, >= loss / count.

    Examples:
        >>> round(bounded_p_value(0.0, 29, 1.0, 0.1), 4), bounded_p_value(2.9, 29, 1.0, 0.1)
        (0.0471, 1.0)
    """
    if most <= alpha:
        return 0.0 if count else 1.0
    if loss >= alpha * count:
        return 1.0
    seen, least = loss / (count * most), alpha / most
    of_costs = seen * math.log(seen / least) if seen else 0.0
    return min(1.0, math.exp(-count * (of_costs + (1 - seen) * math.log((1 - seen) / (1 - least)))))


@lru_cache(maxsize=1 << 14)  # a forecast asks for the same numbers of points again and again
def largest_passing(trials: int, probability: float, level: float) -> int:
    """Return the largest k with P(X <= k) <= level for a binomial X; -1 if there is none.

    Examples:
        >>> [largest_passing(trials, 0.1, 0.05) for trials in (28, 29, 46)]
        [-1, 0, 1]
    """
    # By Hoeffding's inequality the tail is above the level from here on.
    beyond = math.ceil(trials * probability + math.sqrt(-trials * math.log1p(-level) / 2))
    tails = binomial_tails(trials, probability, most=min(trials, beyond))
    return int(np.searchsorted(tails, level, side="right")) - 1


def betting_p_values(
    differences: FloatArray, bound: FloatArray, known: FloatArray, *, level: float, uniform: float | FloatArray
) -> FloatArray:
    """Test, for each of h statistics, the hypothesis that its mean over documents is at least 0.

    A gambler starts with wealth 1. Before each document it bets the part b in [0, 1 / bound] of its wealth against the
    hypothesis, and the wealth is multiplied by 1 - b min(z, bound). Under the hypothesis E min(z, bound) >= 0 no bet
    can win on average, whatever it was chosen by beforehand: the wealth is a non-negative supermartingale, so it
    reaches 1 / p at any time, or uniform / p at the end, with probability at most p. The end counts only if nothing was
    lost, so that no class passes by chance alone.

    The bet is the one that in the limit of small bets makes the chance to reach 1 / level by the last document as
    large as any test of that level can (Browne 1999): with a variance v per document, r documents to go and x such that
    Phi(x) = level * wealth, it is phi(x) / (Phi(x) sqrt(v r)). A gambler who has reached the goal stops.

    Args:
        differences: (n, h) float64, z of each document, in an order that is random given the documents.
        bound: (h,) float64 > 0, the largest value that z counts for, fixed without these documents.
        known: (m, h) float64, the same statistics of other documents, from which v is estimated to begin with.
        level: In (0, 1), the level that the bets aim at; the p-values are valid at every level.
        uniform: In (0, 1], drawn independently of the differences; one number, or one for each statistic.

    Returns:
        (h,) float64 in (0, 1].
    """
    (found,) = p_values_of_bets([Bets(differences, bound, known, uniform)], level=level)
    return found


def stakes_of(foretold: FloatArray, known: FloatArray, level: float) -> FloatArray:
    """Return the parts of the wealth that are staked before each document in games that `staked_p_values` is of.

    With a stake of u / sqrt(n v), n documents of the variance v lead to 1 / level soonest if u^2 / 2 = log(1 / level).

    Args:
        foretold: (n, h) float64 of at most 1, in the order of the game, which say v together with `known`.
        known: (m, h) float64, the same of other documents.

    Returns:
        (n, h) float64 in [0, 1]; each rests on the documents before alone.
    """
    count = len(foretold)
    step = math.ceil(count / LARGEST_STEP_COUNT)
    spread = _spread(foretold, known, np.ones(foretold.shape[1]), step)
    left = count - step * np.arange(len(spread))[:, np.newaxis]
    stakes = np.minimum(math.sqrt(-2 * math.log(level)) / (spread * np.sqrt(count / left)), 1.0)
    return np.repeat(stakes, step, axis=0)[:count]


def staked_p_values(differences: FloatArray, stakes: FloatArray, uniform: float) -> FloatArray:
    """Test, as `betting_p_values` does, hypotheses that means are at least 0, in games with given stakes.

    No p-value falls if a difference grows. So they are valid too for bounds from above of the differences that the
    hypotheses are about, whatever these bounds rest on.

    Args:
        differences: (n, h) float64 of at most 1.
        stakes: (n, h) float64 in [0, 1], each fixed by the documents before.

    Returns:
        (h,) float64 in [0, 1].

    Examples:
        >>> staked_p_values(np.array([[-1.0], [-1.0], [-1.0], [1.0]]), np.full((4, 1), 0.5), 1.0)
        array([0.2962963])
    """
    with np.errstate(divide="ignore"):  # of the logarithm of nothing
        wealth = np.cumsum(np.log(np.maximum(1 - stakes * differences, 0.0)), axis=0)
    end = wealth[-1]
    at_end = np.where(end >= 0, uniform * np.exp(-np.maximum(end, 0.0)), 1.0)
    p_values: FloatArray = np.minimum(np.exp(-np.maximum(wealth.max(axis=0), 0.0)), at_end)
    return p_values


@dataclass(frozen=True, slots=True, eq=False)
class Bets:
    """The arguments of `betting_p_values`."""

    differences: FloatArray
    bound: FloatArray
    known: FloatArray
    uniform: float | FloatArray

    @property
    def step(self) -> int:
        """How many documents share a bet."""
        return math.ceil(len(self.differences) / LARGEST_STEP_COUNT)


def p_values_of_bets(several: Sequence[Bets], *, level: float) -> list[FloatArray]:
    """Return what `betting_p_values` does for each of several, with the same bits; those of few documents in one go.

    Args:
        several: The games, each against hypotheses of its own.
    """
    found: list[FloatArray] = []
    together: list[Bets] = []
    for of in several:
        more = [*together, of]
        values = max(len(each.differences) for each in more) * sum(len(each.bound) for each in more)
        if together and (of.step != together[0].step or values > MOST_TOGETHER):
            found += _played(together, level)
            more = [of]
        together = more
    return found + (_played(together, level) if together else [])


def _played(several: Sequence[Bets], level: float) -> list[FloatArray]:
    """The same for bets that share a step. Games that are over go on with documents in which nothing is won or lost."""
    step, count = several[0].step, max(len(of.differences) for of in several)
    ends = np.cumsum([len(of.bound) for of in several]).tolist()
    counted, spread = np.zeros((count, ends[-1])), np.ones((math.ceil(count / step), ends[-1]))
    for of, first, end in zip(several, [0, *ends], ends, strict=False):
        own = np.minimum(of.differences, of.bound)
        counted[: len(own), first:end] = own
        of_batches = _spread(own, of.known, of.bound, step)
        spread[: len(of_batches), first:end] = of_batches
    batches = counted if step == 1 else [counted[start : start + step] for start in range(0, count, step)]
    largest_bet = 1 / np.concatenate([of.bound for of in several])
    wealth, most = np.ones(ends[-1]), np.ones(ends[-1])
    with np.errstate(divide="ignore"):  # of the logarithm of nothing
        for number, (batch, spread_to_end) in enumerate(zip(batches, spread, strict=True)):
            part_of_goal = level * wealth
            if number % _LOOK == 0 and not (part_of_goal < 1).any():
                break
            bet = np.minimum(_boldness(part_of_goal) / spread_to_end, largest_bet)
            kept = np.maximum(1 - bet * batch, 0.0)
            wealth = wealth * (kept if step == 1 else np.prod(kept, axis=0))
            most = np.maximum(most, wealth)
    uniform = np.concatenate([np.broadcast_to(of.uniform, of.bound.shape) for of in several])
    at_end = np.divide(uniform, wealth, out=np.ones(len(wealth)), where=wealth >= 1)
    return np.split(np.minimum(1 / most, at_end), ends[:-1])


def _spread(counted: FloatArray, known: FloatArray, bound: FloatArray, step: int) -> FloatArray:
    """Sqrt(v r) before each batch, (batches, h); v is estimated from the known documents and the batches before."""
    count = len(counted)
    # One after the other, as the game goes on.
    total, squares = (
        np.add.accumulate(np.vstack([of_known.sum(axis=0), _batch_sums(of_counted, step)]), axis=0)
        for of_known, of_counted in ((known, counted), (np.square(known), np.square(counted)))
    )
    passed = step * np.arange(len(total))[:, np.newaxis]
    seen = len(known) + passed
    variance = np.maximum(squares / seen - np.square(total / seen), np.square(bound) * 1e-12) * VARIANCE_FACTOR
    return np.sqrt(variance * (count - passed))


def _batch_sums(values: FloatArray, step: int) -> FloatArray:
    """The sums of all batches but the last, (batches - 1, h)."""
    if step == 1:
        return values[:-1]
    return np.array([values[start : start + step].sum(axis=0) for start in range(0, len(values) - step, step)])


def _boldness(part_of_goal: FloatArray) -> FloatArray:
    """phi(x) / Phi(x) at Phi(x) = the part of the goal that is reached; 0 from the whole goal on.

    Interpolated in a table: a bet is as valid if it is a little off.
    """
    boldness: FloatArray = np.interp(np.log(part_of_goal), _LOG_CDF, _RATIO)
    return boldness


_GRID = np.linspace(-15.0, 6.0, 2101)

_CDF = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in _GRID])

_RATIO = np.append(np.exp(-np.square(_GRID) / 2) / math.sqrt(2 * math.pi) / _CDF, 0.0)

_LOG_CDF = np.append(np.log(_CDF), 0.0)
