"""Simulated: labels that refute what a chain certified seldom do so by chance, and soon if too few are right."""

from dataclasses import replace

import numpy as np
import pytest

from tests.guarantees.draws import Draws, until_settled
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.monitoring.anytime.plan import LEVEL
from venn_admit.core.standing.chains import ClassChain, StandingChain
from venn_admit.core.standing.state import State, advance, initial_state, refuted
from venn_admit.core.types import FloatArray

ALPHA, CLASSES = 0.1, 2
STRICT = np.array([0.9, 0.5])
"""Two thresholds; half of the points lie between them, and are labelled in the same documents."""


def chain_of(size: int) -> StandingChain:
    one = ClassChain(STRICT, STRICT, np.full(2, max(size // 2, 1)), 0)
    return StandingChain(ALPHA, 0.1, (one,) * CLASSES)


def stream(seed: int, share: FloatArray, size: int) -> CertificatePoints:
    """Documents of points of both classes; share: (documents,) of right points of each. Half share one outcome."""
    rng, documents = np.random.default_rng(seed), len(share)
    document = np.repeat(np.arange(documents), size)
    shared, own = rng.random(documents)[document], rng.random(documents * size)
    outcome = np.where((rng.random(documents)[document] < 0.5) & (size > 1), shared, own)
    predicted = rng.integers(CLASSES, size=documents * size)
    label = np.where(outcome < share[document], predicted, 1 - predicted)
    score = np.where(rng.random(documents * size) < 0.5, 0.95, 0.6)
    return CertificatePoints(score, predicted, label, document)


def drawn(points: CertificatePoints, seed: int) -> CertificatePoints:
    """Those that are drawn: all of the less sure ones, half of the others, as two rules in turn do."""
    probability = np.where(points.score > 0.9, 0.5, 1.0)
    rows = np.random.default_rng([seed, 1]).random(len(probability)) < probability
    return replace(points, weight=0.5 / probability).take(rows)


def most(state: State) -> float:
    return max(1.0 if of.against is None else float(of.against.game.most[0]) for of in state)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "is_drawn"), [(1, False), (8, False), (1, True)])
def test_what_holds_is_rarely_ever_refuted_by_chance(size: int, is_drawn: bool) -> None:
    """Some good labels certify both thresholds; exactly 1 - alpha is right from then on, looked at after each label."""
    good, documents = 800, 1_600
    share = np.where(np.arange(documents) < good, 1.0, 1 - ALPHA)
    chain, largest = chain_of(size), list[float]()
    by_level = {level: Draws.as_sharp_as(1_000, level) for level in (LEVEL, 0.05, 0.2)}
    for seed in until_settled(by_level.values()):
        points = stream(seed, share, size)
        state = advance(chain, initial_state(chain), drawn(points, seed) if is_drawn else points)
        largest.append(most(state))
        assert bool(refuted(state)) == (largest[-1] >= CLASSES / LEVEL)
        assert all(of.against is not None for of in state), "both classes are certified"
        for level, draws in by_level.items():
            draws.add(largest[-1] >= CLASSES / level)
    assert [level for level, draws in by_level.items() if not draws.seldom] == []
    assert max(largest) >= CLASSES / 0.2, "nor is it never refuted"


STEP, STRIDE = 20, 200
SEEN = {(1_000, 0.75): (200, 320), (3_000, 0.75): (220, 320), (1_000, 0.85): (1_240, 2_060)}
"""Labels after the change within which half and nine tenths of the streams refute a class, by good ones and share."""


def refuting(chain: StandingChain, state: State, points: CertificatePoints, first: int, last: int) -> float:
    """The number of documents with which a class is refuted, in whole steps; inf if none is before the last one."""
    for start in range(first, last, STRIDE):
        stride = points.take((points.document >= start) & (points.document < start + STRIDE))
        after = advance(chain, state, stride)
        if refuted(after):  # within the stride, which is gone through again
            for step in range(start, start + STRIDE, STEP):
                state = advance(chain, state, stride.take((stride.document >= step) & (stride.document < step + STEP)))
                if refuted(state):
                    return step + STEP
        state = after
    return np.inf


@pytest.mark.parametrize(("good", "share"), SEEN)
def test_too_few_right_are_seen(good: int, share: float) -> None:
    """Both classes fall from .97; labels of both count."""
    streams, after, chain = 100, 4_000, chain_of(1)
    shares = np.where(np.arange(good + after) < good, 0.97, share)
    found = np.full(streams, np.inf)
    for seed in range(streams):
        points = stream(seed, shares, 1)
        state = advance(chain, initial_state(chain), points.take(points.document < good))
        assert refuted(state) == ()
        found[seed] = refuting(chain, state, points, good, good + after) - good
    np.testing.assert_allclose(np.quantile(found, [0.5, 0.9], method="inverted_cdf"), SEEN[good, share], rtol=0.1)
