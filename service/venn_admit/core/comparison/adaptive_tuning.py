"""The choice of k_reg and lambda of RAPS, on a part of the calibration points that is set aside for it.

Source: Angelopoulos, Bates, Malik & Jordan (2021), *Uncertainty Sets for Image Classifiers using Conformal Prediction*,
section 3 and the appendix on choosing parameters, and the authors' published script. As in the script, k_reg is chosen
first, and then lambda by calibrating and measuring on the same tuning part; the rest gives the threshold.

The script differs from this module in these points. It takes the plain 1 - alpha quantile of the scores ("higher" of
its two neighbours), without the finite-sample correction, so that its threshold is often one order statistic lower than
ours of rank ceil((n + 1)(1 - alpha)), and it takes k_reg in the same way. It fits the temperature by a few gradient
steps, again for every lambda. It draws a new U in every run. It cuts the data at random rather than by document.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.calibrators.order_statistics import conformal_rank
from venn_admit.core.checks import check_lengths
from venn_admit.core.comparison.adaptive import BLOCK_ELEMENTS, AdaptiveRule, LabelScores, set_sizes
from venn_admit.core.comparison.split import conformal_threshold
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray

TUNING_SHARE = Fraction(3, 10)
SIZE_PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)
ADAPTIVENESS_PENALTIES = (0.0, 1e-5, 1e-4, 8e-4, 9e-4, 1e-3, 1.5e-3, 2e-3)
STRATA = (0, 2, 4, 7, 11, 101)
"""Least set sizes of the strata [0,1], [2,3], [4,6], [7,10], [11,100], [101,1000]; the last is open above."""


@dataclass(frozen=True, slots=True)
class TunedRules:
    """RAPS with two choices of lambda.

    Attributes:
        adaptiveness: The lambda under which the worst stratum is nearest to 1 - alpha.
        size: The lambda under which sets are smallest.
    """

    adaptiveness: AdaptiveRule
    size: AdaptiveRule


def tuning_part(keys: Sequence[str], *, seed: int) -> BoolArray:
    """Choose the calibration points to tune on, about 30 %, by a hash of (seed, key) and so never by position.

    Returns:
        (n,) bool.
    """
    return hash_keys(keys, seed=seed, purpose="raps tuning") < np.uint64(int(TUNING_SHARE * 2**64))


def tuned_rules(
    logits: Float32Array,
    draws: FloatArray,
    scores: LabelScores,
    tuning: BoolArray,
    *,
    temperature: float,
    alpha: Decimal,
) -> TunedRules:
    """Take k_reg and lambda from the points to tune on, and thresholds from the others.

    Either part may be empty. Without points to tune on, k_reg is C, which leaves no penalty; without others, the
    thresholds are inf.
    """
    check_lengths(logits=logits, draws=draws, rank=scores.rank, tuning=tuning)
    tuned, rest = scores.part(tuning), scores.part(~tuning)
    k_reg = choose_k_reg(tuned.rank, alpha, class_count=logits.shape[1])
    candidates = [_calibrated(tuned, k_reg, penalty, alpha) for penalty in SIZE_PENALTIES + ADAPTIVENESS_PENALTIES]
    sizes = _tuning_sizes(logits, draws, np.flatnonzero(tuning), temperature, candidates)  # (candidates, n tuned)
    for_size, for_adaptiveness = np.split(sizes, [len(SIZE_PENALTIES)])
    by_size = smallest_sets(for_size)
    by_adaptiveness = most_adaptive(for_adaptiveness, tuned.rank, alpha)
    return TunedRules(
        adaptiveness=_calibrated(rest, k_reg, ADAPTIVENESS_PENALTIES[by_adaptiveness], alpha),
        size=_calibrated(rest, k_reg, SIZE_PENALTIES[by_size], alpha),
    )


def choose_k_reg(rank: IntArray, alpha: Decimal, class_count: int) -> int:
    """Return the 1 - alpha quantile of the ranks of the true labels: the ceil((n + 1)(1 - alpha))-th smallest.

    Args:
        rank: (n,) int64 in [1, C].

    Returns:
        In [1, C]; it is C if the place of the quantile exceeds n.

    Examples:
        >>> choose_k_reg(np.array([1, 1, 1, 2, 2, 2, 2, 3, 5]), Decimal("0.2"), class_count=6)
        3
    """
    place = int(conformal_rank(np.array([len(rank)]), alpha)[0])
    return int(np.partition(rank, place - 1)[place - 1]) if place <= len(rank) else class_count


def smallest_sets(sizes: IntArray) -> int:
    """Return the candidate whose sets are smallest on average, the first if several tie."""
    return int(sizes.sum(axis=1).argmin())


def most_adaptive(sizes: IntArray, rank: IntArray, alpha: Decimal) -> int:
    """Return the candidate with the least worst violation |coverage - (1 - alpha)| over size strata.

    It is the first if several tie. Strata without points are left out. The arithmetic is exact.

    Args:
        sizes: (candidates, n) int64, of sets that hold the ranks up to their size.
        rank: (n,) int64, the ranks of the labels.
    """

    def worst_violation(of_candidate: IntArray) -> Fraction:
        stratum = np.searchsorted(STRATA, of_candidate, side="right") - 1
        count = np.bincount(stratum, minlength=len(STRATA)).tolist()
        covered = np.bincount(stratum[rank <= of_candidate], minlength=len(STRATA)).tolist()
        shares = [Fraction(right, points) for right, points in zip(covered, count, strict=True) if points]
        return max((abs(share - (1 - Fraction(alpha))) for share in shares), default=Fraction(0))

    violations = [worst_violation(of_candidate) for of_candidate in sizes]
    return violations.index(min(violations))


def _calibrated(scores: LabelScores, k_reg: int, penalty: float, alpha: Decimal) -> AdaptiveRule:
    return AdaptiveRule(k_reg, penalty, conformal_threshold(scores.score(k_reg, penalty), alpha))


def _tuning_sizes(
    logits: Float32Array, draws: FloatArray, rows: IntArray, temperature: float, candidates: Sequence[AdaptiveRule]
) -> IntArray:
    """`set_sizes` of some rows, without copying all their logits at once."""
    sizes = np.empty((len(candidates), len(rows)), dtype=np.int64)
    step = max(1, BLOCK_ELEMENTS // logits.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        sizes[:, start : start + step] = set_sizes(logits[part], draws[part], temperature, candidates)
    return sizes
