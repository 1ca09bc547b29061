"""Localized conformal prediction on the score 1 - pi, without and with the mass at infinity.

Source: Guan (2022), *Localized Conformal Prediction: A Generalized Inference Framework for Conformal Prediction*, whose
weights are those of the localizer (venn_admit.core.approximation.localizer); docs/PROCEDURE.md, section 7.

A point x has a share of its own weights, exp(0) = 1, and its own score is not known. The base form leaves that share
out and guarantees no coverage. With the share at an infinite score and the quantile at 1 - alpha, sets are all classes
where the nearest points are several times eta_loc away, and still no coverage follows. The corrected form moves the
level of the quantile so that coverage does: it is full conformal prediction with the transformed scores below.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.approximation.distance_tiles import check_eta, distance_blocks
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.order_statistics import conformal_rank
from venn_admit.core.calibrators.settings import check_alpha
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import BoolArray, Float32Array, FloatArray
from venn_admit.errors import NotReadyError

TIE = 1e-12
"""Transformed scores that differ by a smaller part count as equal, so that rounding can only enlarge a set."""


_RUN = 2**9


def local_thresholds(
    queries: Float32Array,
    support: Float32Array,
    score: FloatArray,
    *,
    alpha: Decimal,
    eta_loc: float,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    on_points: Callable[[int], object] = lambda _: None,
) -> FloatArray:
    """Return the smallest calibration score at which the localizer's weights reach 1 - alpha, for each query.

        tau(x) = min { s : sum_j psi_j(x) [s_j <= s] >= 1 - alpha },    psi_j = e_j / sum_k e_k,
        e_j = exp(-dist(x, x_j) / eta_loc)

    This is the form without the mass at infinity, and guarantees no coverage in finite samples.

    A result is independent, bit for bit, of the other queries. The computation goes in blocks of queries, of a
    share of the budget or, if that is more, 512 bytes per calibration point.

    Returns:
        (m,) float64.

    Raises:
        NotReadyError: There are no calibration points.
    """
    _check(support, score, alpha, eta_loc)
    order = np.argsort(score, kind="stable")
    ordered = np.append(score[order], np.inf)  # (n + 1,)
    confidence = float(1 - Fraction(alpha))
    thresholds, weight = np.empty(len(queries)), np.empty(len(support))
    for start, block in distance_blocks(queries, support, memory_budget=memory_budget):
        for row, distances in enumerate(block, start):
            # The nearest distance is subtracted, so that no eta_loc is too small; a far point may weigh 0.
            np.subtract(distances, distances.min(), out=distances)
            np.take(_weight_at(distances, eta_loc), order, out=weight, mode="clip")
            # Equal scores are adjacent, so it does not matter at which of them the sum passes.
            thresholds[row] = ordered[_first_reaching(confidence, weight)]
        on_points(len(block))
    return thresholds


def _first_reaching(share: float, weight: FloatArray) -> int:
    """The first row at which the sum of the weights up to it reaches a share of their sum.

    The sums of runs say in which run it lies: adding up all weights one after the other takes ten times as long.
    """
    starts = np.arange(0, len(weight), _RUN)
    reached = np.cumsum(np.add.reduceat(weight, starts))
    wanted = share * reached[-1]
    run = int(np.searchsorted(reached, wanted))
    start, below = run * _RUN, reached[run - 1] if run else 0.0
    within = below + np.cumsum(weight[start : start + _RUN])
    # The sum of a run may be rounded up where its last partial sum is not.
    return start + min(int(np.searchsorted(within, wanted)), len(within) - 1)


class CorrectedLocal:
    """Localized conformal prediction with the mass at infinity and the correction for finite samples.

    With H(a, b) = exp(-dist(a, b) / eta_loc), V the scores of the n calibration points, and v = 1 - pi^c that of the
    point x under class c, every point has the weight, under its own localizer, of the points that score less:

        u_i(v) = (sum_j H(x_i, x_j) [V_j < V_i] + H(x_i, x) [v < V_i]) / (sum_j H(x_i, x_j) + H(x_i, x))
        u(v)   = sum_j H(x, x_j) [V_j < v] / (sum_j H(x, x_j) + 1)

        c in the set if and only if #{ i : u_i(v) < u(v) } < ceil((n + 1)(1 - alpha))

    For Guan, v is at most the quantile at level a of the weights of x with its own at infinity, a being the least level
    at which ceil((n + 1)(1 - alpha)) of all n + 1 points are at most their own quantile: the same set. The u of
    exchangeable points are exchangeable, so the label is in the set with probability 1 - alpha or more.
    """

    def __init__(
        self,
        support: Float32Array,
        score: FloatArray,
        *,
        alpha: Decimal,
        eta_loc: float,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        on_points: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Weigh the calibration points by each other, n^2 distances in blocks of rows.

        Raises:
            NotReadyError: There are no calibration points.
        """
        _check(support, score, alpha, eta_loc)
        self._eta_loc, self._memory_budget, self._on_points = eta_loc, memory_budget, on_points
        self._rank = int(conformal_rank(np.array([len(score)]), alpha)[0])
        self._order = np.argsort(score, kind="stable")
        self._support, self._score = support, score[self._order]
        self._below, self._all = np.empty(len(score)), np.empty(len(score))  # ascending by score, as all that follows
        fewer = np.searchsorted(self._score, score, side="left")
        place = np.argsort(self._order)
        for row, weight in self._weights(support):
            self._below[place[row]], self._all[place[row]] = weight[: fewer[row]].sum(), weight.sum()

    def sets(self, queries: Float32Array, logits: FloatArray) -> BoolArray:
        """Return the sets of some points, each with its prediction argmax pi: (m, C) bool.

        A result is independent, bit for bit, of the other queries.

        Args:
            logits: (m, C) float64, KNN(x), finite; may be a memory map.
        """
        check_lengths(queries=queries, logits=logits)
        included = np.zeros(logits.shape, dtype=np.bool_)
        for row, weight in self._weights(queries):
            value = 1.0 - softmax(logits[row : row + 1])[0]  # (C,)
            ranked = np.argsort(-logits[row], kind="stable")
            included[row, ranked[: self._size(weight, value[ranked])]] = True
        return included

    def _size(self, weight: FloatArray, value: FloatArray) -> int:
        """How many of the scores, (C,) ascending, are in the set; the least one is in any case.

        As v rises, u(v) does not fall and no u_i(v) rises, so that what is left out is left out of all that follow.
        """
        own, theirs = weight.sum() + 1.0, self._all + weight

        def is_out(value: float) -> bool:
            fewer = np.searchsorted(self._score, value, side="left")
            not_more = np.searchsorted(self._score, value, side="right")
            least = (1.0 - TIE) * weight[:fewer].sum() / own
            below = self._below.copy()
            below[not_more:] += weight[not_more:]
            return bool(np.count_nonzero(below < least * theirs) >= self._rank)

        return bisect_left(value, True, lo=1, key=is_out)

    def _weights(self, queries: Float32Array) -> Iterator[tuple[int, FloatArray]]:
        """Yield the number of each query and H(x, x_j), (n,), by ascending score, which those of the next overwrite."""
        weight = np.empty(len(self._support))
        for start, block in distance_blocks(queries, self._support, memory_budget=self._memory_budget):
            for row, distances in enumerate(block, start):
                yield row, np.take(_weight_at(distances, self._eta_loc), self._order, out=weight, mode="clip")
            self._on_points(len(block))


def _weight_at(distances: FloatArray, eta_loc: float) -> FloatArray:
    """Return exp(-dist / eta_loc), in place."""
    with np.errstate(over="ignore"):
        np.divide(distances, -eta_loc, out=distances)
    return np.exp(distances, out=distances)


def _check(support: Float32Array, score: FloatArray, alpha: Decimal, eta_loc: float) -> None:
    check_lengths(support=support, score=score)
    if not len(score):
        raise NotReadyError("expected labelled points to take thresholds from, got none; ingest held-out data")
    check_alpha(alpha)
    check_eta(eta_loc)
