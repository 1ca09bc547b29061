"""Simulated: a certified policy falls short of its promise in at most eps of the draws of calibration data.

The laws are finite: a point has a predicted class and one of a few scores, and is right with a probability that
belongs to both, so that the share right under any policy is known exactly. The points of a document share their
outcomes to a degree. In the hard laws the largest admissible share right of one class is just below 1 - alpha.
"""

from dataclasses import dataclass
from decimal import Decimal
from math import sqrt

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from tests.guarantees.draws import Draws
from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.hypothesis_tests import betting_p_values, binomial_tail, class_p_values
from venn_admit.core.calibrators.certified.losses import LossRanges
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.types import FloatArray, IntArray

ALPHA, CONFIDENCE = Decimal("0.1"), Decimal("0.9")
EPS, ERROR_SHARE = 0.1, 0.1
LARGEST = 100
"""Points of the largest documents where sizes differ."""
LEVELS = np.array([0.95, 0.9, 0.85, 0.8, 0.7, 0.6])
PREDICTED, BOTH = (ClassKind.PREDICTED,), tuple(ClassKind)


@dataclass(frozen=True)
class Law:
    """A law of documents.

    weight: (C, 6), the probability of each predicted class and score.
    right: (C, 6), the probability that such a point is right; a wrong point is of the next class.
    size, documents: The points of a document, and the documents of evidence; a fifth as many propose.
    tail: The sizes of documents follow a power law with this exponent instead, up to `LARGEST`; None: all are equal.
    dependence: The probability that a point takes the uniform number of its document instead of its own.
    """

    weight: FloatArray
    right: FloatArray
    kinds: tuple[ClassKind, ...] = PREDICTED
    size: int = 1
    tail: float | None = None
    documents: int = 600
    dependence: float = 0.0

    def draw(self, rng: np.random.Generator, documents: int) -> CertificatePoints:
        sizes = np.full(documents, self.size)
        if self.tail is not None:
            sizes = np.minimum(rng.zipf(self.tail, documents), LARGEST)
        count = int(sizes.sum())
        class_count, level_count = self.weight.shape
        cell = rng.choice(self.weight.size, count, p=self.weight.ravel())
        predicted, level = np.divmod(cell, level_count)
        shared = np.repeat(rng.random(documents), sizes)
        uniform = np.where(rng.random(count) < self.dependence, shared, rng.random(count))
        label = np.where(uniform < self.right.ravel()[cell], predicted, (predicted + 1) % class_count)
        return CertificatePoints(LEVELS[level], predicted, label, np.repeat(np.arange(documents), sizes))

    def falls_short(self, policy: Policy) -> bool:
        """Whether a policy admits fewer than 1 - alpha right of some class of the kinds asked for."""
        least = np.array([np.inf if value is None else value for value in policy.thresholds])
        admitted = np.where(least[:, None] <= LEVELS, self.weight, 0.0)
        wrong = (admitted * (1 - self.right)).sum(axis=1)
        excess = []
        if ClassKind.PREDICTED in self.kinds:
            excess.append(wrong - ERROR_SHARE * admitted.sum(axis=1))
        if ClassKind.TRUE in self.kinds:
            missed = np.roll(wrong, 1)
            right = (admitted * self.right).sum(axis=1)
            excess.append((1 - ERROR_SHARE) * missed - ERROR_SHARE * right)
        return bool((np.concatenate(excess) > 1e-12).any())


def spread(*frequencies: float) -> FloatArray:
    return np.outer(frequencies, [0.3, 0.2, 0.15, 0.15, 0.1, 0.1])


GRADED = np.array([0.99, 0.95, 0.9, 0.85, 0.7, 0.6])
BELOW = np.full(6, 0.899)
LAWS = {
    "independent": Law(spread(0.5, 0.5), np.array([GRADED, GRADED])),
    "independent, both kinds": Law(spread(0.5, 0.5), np.array([GRADED, GRADED]), BOTH, documents=400),
    "strongly dependent": Law(spread(0.5, 0.5), np.array([GRADED, GRADED]), size=8, documents=100, dependence=0.7),
    "a class of 2 %": Law(spread(0.6, 0.38, 0.02), np.array([GRADED, GRADED, GRADED]), documents=1000),
    "ten classes, one just below": Law(spread(*[0.1] * 10), np.vstack([BELOW, *[GRADED + 0.01] * 9]), documents=3000),
    "twenty classes": Law(spread(*[0.05] * 20), np.array([GRADED] * 20), documents=6000),
    "a rare true class, both kinds": Law(
        spread(0.99, 0.01), np.array([np.full(6, 0.999), GRADED]), BOTH, documents=4000
    ),
    "just below": Law(spread(0.5, 0.5), np.array([BELOW, GRADED + 0.01])),
    "just below, dependent": Law(
        spread(0.5, 0.5), np.array([BELOW, GRADED + 0.01]), size=8, documents=100, dependence=0.5
    ),
    "just below, heavy-tailed sizes, strongly dependent": Law(
        spread(0.5, 0.5), np.array([BELOW, GRADED + 0.01]), tail=1.7, documents=300, dependence=0.8
    ),
    "just below, true class": Law(
        spread(0.5, 0.5), np.array([np.full(6, 0.891), np.full(6, 0.97)]), (ClassKind.TRUE,), documents=400
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_certified_policy_seldom_falls_short(name: str) -> None:
    law = LAWS[name]
    draws, certified = Draws(EPS), 0
    for draw in draws:
        rng = np.random.default_rng(draw)
        certificate = certify(
            law.draw(rng, law.documents // 5),
            law.draw(rng, law.documents),
            class_count=len(law.weight),
            alpha=ALPHA,
            kinds=law.kinds,
            confidence=CONFIDENCE,
        )
        certified += certificate.policy is not None
        draws.add(certificate.policy is not None and law.falls_short(certificate.policy))
    assert draws.seldom
    if not name.startswith(("just below", "a rare")):
        assert certified / draws.count > 0.5


GIANT = 60


@pytest.mark.slow
def test_a_rare_giant_that_is_all_wrong_counts_as_the_largest_document_that_proposed() -> None:
    """One document in 500 holds 60 times the points, all admitted and wrong: by points, .107 of them are wrong."""
    size, documents, share = 8, 800, 1 / 500
    draws, certified = Draws(EPS), 0
    for draw in draws:
        rng = np.random.default_rng(draw)
        largest = 0

        def drawn(count: int, rng: np.random.Generator = rng) -> CertificatePoints:
            nonlocal largest
            sizes = np.where(rng.random(count) < share, GIANT * size, size)
            largest = int(sizes.max())
            document = np.repeat(np.arange(count), sizes)
            wrong = (rng.random(len(document)) < 0.085) | (sizes[document] > size)
            zeros = np.zeros(len(document), dtype=np.int64)
            return CertificatePoints(np.full(len(document), 0.9), zeros, wrong.astype(np.int64), document)

        evidence = drawn(documents)
        proposing = drawn(documents // 5)
        found = certify(proposing, evidence, class_count=2, alpha=ALPHA, kinds=PREDICTED, confidence=CONFIDENCE)
        counted = min(largest, GIANT * size)
        excess = (1 - share) * (0.085 - ERROR_SHARE) * size + share * (1 - ERROR_SHARE) * counted
        certified += found.policy is not None
        draws.add(found.policy is not None and excess > 0)
    assert draws.seldom
    assert certified / draws.count > 0.2


REPETITIONS = 10_000
TEST_LEVEL = 0.05


def wrong_points(rng: np.random.Generator, documents: int, size: int, right: float, dependence: float) -> IntArray:
    """(documents, REPETITIONS), the wrong points of documents: beta-binomial, of a given correlation of two points."""
    if dependence:
        concentration = 1 / dependence - 1
        below = betabinom.cdf(np.arange(size), size, (1 - right) * concentration, right * concentration)
    else:
        below = binom.cdf(np.arange(size), size, 1 - right)
    # A look-up takes less than half of the time of a draw from each of both distributions.
    return np.searchsorted(below, rng.random((documents, REPETITIONS)), side="right")


def passing_rate(documents: int, size: int, right: float, dependence: float) -> float:
    """How often a class of which every point is admitted passes the finite-sample test."""
    rng = np.random.default_rng(documents + size)
    known, tested = (
        wrong_points(rng, documents, size, right, dependence).astype(np.float64) - ERROR_SHARE * size for _ in range(2)
    )
    p_values = betting_p_values(
        tested,
        np.full(REPETITIONS, (1 - ERROR_SHARE) * size),
        known,
        level=TEST_LEVEL,
        uniform=1 - rng.random(REPETITIONS),
    )
    return float((p_values <= TEST_LEVEL).mean())


SAMPLES = pytest.mark.parametrize(
    ("documents", "size", "dependence", "least_power"),
    [
        (300, 8, 0.1, 0.99),
        (300, 8, 0.3, 0.97),
        (300, 8, 0.5, 0.93),
        (300, 8, 0.9, 0.80),
        (80, 20, 0.1, 0.77),
        (80, 20, 0.3, 0.57),
        (80, 20, 0.6, 0.40),
        (60, 8, 0.1, 0.50),
    ],
)


@SAMPLES
def test_the_finite_sample_test_keeps_its_level_at_the_boundary(
    documents: int, size: int, dependence: float, least_power: float
) -> None:
    rate = passing_rate(documents, size, 1 - ERROR_SHARE, dependence)
    assert rate <= TEST_LEVEL + 3 * sqrt(TEST_LEVEL * (1 - TEST_LEVEL) / REPETITIONS)
    assert rate < least_power


@pytest.mark.slow
@SAMPLES
def test_the_finite_sample_test_has_the_power_that_is_documented(
    documents: int, size: int, dependence: float, least_power: float
) -> None:
    assert passing_rate(documents, size, 0.94, dependence) >= least_power


def test_a_rare_document_all_wrong_fools_the_asymptotic_test_only() -> None:
    """One draw in four holds no such document, and nothing in it tells that the promise fails."""
    documents, size = 30, 20
    rng = np.random.default_rng(0)

    def wrong() -> IntArray:
        lost = rng.random((documents, REPETITIONS)) < 0.043
        return np.where(lost, size, wrong_points(rng, documents, size, 0.94, 0.0))

    known, tested = wrong(), wrong()
    admitted = np.full((documents, REPETITIONS), size)
    assert tested.sum() > ERROR_SHARE * admitted.sum()
    bound = np.full(REPETITIONS, (1 - ERROR_SHARE) * size)
    excess, before = (of.astype(np.float64) - ERROR_SHARE * size for of in (tested, known))
    finite = betting_p_values(excess, bound, before, level=TEST_LEVEL, uniform=1 - rng.random(REPETITIONS))
    asymptotic = class_p_values(
        excess,
        admitted,
        known=before,
        bound=bound,
        ranges=LossRanges(np.ones(REPETITIONS), np.ones(REPETITIONS)),
        alpha=ERROR_SHARE,
        level=TEST_LEVEL,
        test=DocumentTest.ASYMPTOTIC,
        generator=rng,
    )
    assert (finite <= TEST_LEVEL).mean() <= TEST_LEVEL + 3 * sqrt(TEST_LEVEL * (1 - TEST_LEVEL) / REPETITIONS)
    assert (asymptotic <= TEST_LEVEL).mean() > 0.2


def test_the_binomial_test_keeps_its_level_at_the_boundary() -> None:
    """Exactly: the probabilities of the counts that pass, summed, at every number of points."""
    for trials in (10, 29, 100, 777):
        tails = [binomial_tail(count, trials, ERROR_SHARE) for count in range(trials + 1)]
        passing = [tail for tail in tails if tail <= TEST_LEVEL]
        assert max(passing, default=0.0) <= TEST_LEVEL
        assert tails == sorted(tails)
