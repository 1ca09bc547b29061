"""Tests of the promise for each class, on documents (docs/explanation/certificate.md).

For a class, let e be the number of wrong and a that of all admitted points of one document. The hypothesis is
E(e - alpha a) >= 0 over documents: fewer than 1 - alpha of the admitted points are right, or exactly as many.
"""

import math
from enum import StrEnum

import numpy as np

from venn_admit.core.calibrators.certified.betting import VARIANCE_FACTOR, betting_p_values
from venn_admit.core.types import BoolArray, FloatArray, IntArray


class DocumentTest(StrEnum):
    """How documents of several points are tested."""

    FINITE_SAMPLE = "finite-sample"
    ASYMPTOTIC = "asymptotic"


def class_p_values(
    admitted: IntArray,
    wrong: IntArray,
    *,
    mc_admitted: IntArray,
    mc_wrong: IntArray,
    single_points: bool,
    alpha: float,
    level: float,
    test: DocumentTest,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the p-value of each class: small if the promise holds for it.

    A class of which nothing is admitted has the p-value 1, since nothing speaks for it.

    Args:
        admitted: (documents, h) int64, the admitted points of each document of `vp` and each class.
        wrong: (documents, h) int64, those of them that are wrong.
        mc_admitted: (documents of `mc`, h) int64.
        mc_wrong: (documents of `mc`, h) int64.
        single_points: Whether every document of `vp` is one point.
        alpha: The error level.
        level: 1 - confidence, which bets aim at.
        test: For documents of several points.
        generator: Seeded by the content of `vp`; every call must get one in the same state, so that all policies are
            tested with the same order of documents and the same uniform number.

    Returns:
        (h,) float64 in [0, 1].
    """
    if single_points:
        tails = [
            binomial_tail(int(k), int(n), alpha) for k, n in zip(wrong.sum(axis=0), admitted.sum(axis=0), strict=True)
        ]
        return np.array(tails)
    differences = wrong - alpha * admitted
    nothing: BoolArray = admitted.sum(axis=0) == 0
    if test is DocumentTest.ASYMPTOTIC:
        deviation = np.sqrt(document_variance(admitted, wrong, alpha))
        standardised = np.divide(
            differences.mean(axis=0) * math.sqrt(len(admitted)), deviation, out=np.zeros(len(nothing)), where=~nothing
        )
        p_values = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in standardised])
    else:
        order = generator.permutation(len(differences))
        p_values = betting_p_values(
            differences[order],
            largest_excess(mc_admitted, alpha),
            mc_wrong - alpha * mc_admitted,
            level=level,
            uniform=1.0 - generator.random(),
        )
    return np.where(nothing, 1.0, p_values)


def largest_excess(mc_admitted: IntArray, alpha: float) -> FloatArray:
    """The largest e - alpha a that a document counts for: that of one as large as any of `mc`, all wrong.

    Args:
        mc_admitted: (documents of `mc`, h) int64.
        alpha: The error level.

    Returns:
        (h,) float64 > 0.
    """
    largest: FloatArray = (1 - alpha) * np.maximum(mc_admitted.max(axis=0), 1)
    return largest


def document_variance(admitted: IntArray, wrong: IntArray, alpha: float) -> FloatArray:
    """The variance of e - alpha a over documents, at least that of independent points of which alpha are wrong.

    Args:
        admitted: (documents, h) int64.
        wrong: (documents, h) int64.
        alpha: The error level.

    Returns:
        (h,) float64.
    """
    seen = np.var(wrong - alpha * admitted, axis=0, ddof=1)
    least = alpha * (1 - alpha) * admitted.mean(axis=0)
    larger: FloatArray = np.maximum(seen, least)
    return larger


def boundary_deviation(admitted: IntArray, wrong: IntArray, alpha: float) -> FloatArray:
    """The standard deviation of e - alpha a that the finite-sample tests reckon with, (h,) float64.

    Args:
        admitted: (documents, h) int64.
        wrong: (documents, h) int64.
        alpha: The error level.
    """
    seen = VARIANCE_FACTOR * np.var(wrong - alpha * admitted, axis=0, ddof=1)
    deviation: FloatArray = np.sqrt(np.maximum(seen, alpha * (1 - alpha) * admitted.mean(axis=0)))
    return deviation


def binomial_tail(count: int, trials: int, probability: float) -> float:
    """P(X <= count) for a binomial X, summed in logarithms.

    Args:
        count: In [0, trials].
        trials: >= 0.
        probability: In (0, 1).

    Examples:
        >>> round(binomial_tail(0, 29, 0.1), 4)
        0.0471
    """
    if count >= trials:
        return 1.0
    k = np.arange(1, count + 1)
    ratios = np.log(trials - k + 1) - np.log(k) + math.log(probability) - math.log1p(-probability)
    logs = trials * math.log1p(-probability) + np.r_[0.0, np.cumsum(ratios)]
    largest = float(logs.max())
    return min(1.0, math.exp(largest + math.log(math.fsum(np.exp(logs - largest)))))
