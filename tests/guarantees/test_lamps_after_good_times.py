"""Simulated: games that start again with every document keep their level, and see harm that comes after good times.

Documents of the classes of a stream come in turn, so that each class has a game in which every document counts; the
games of all streams are played at once.
"""

from collections.abc import Callable
from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import binom

from venn_admit.core.monitoring.anytime.games import Further, Games, GamesFromStarts, excess_factors, go_on_from_starts
from venn_admit.core.monitoring.anytime.plan import LEVEL, RUN_LENGTH
from venn_admit.core.types import FloatArray, IntArray

ALPHA, BLOCK, STREAMS, STANDARD_ERRORS = 0.1, 50, 1000, 3.0
Errors = Callable[[np.random.Generator, int, tuple[int, int]], IntArray]
"""The wrong points of (n, g) documents from one number on, each of a game of its own."""


def at_border(size: int) -> Errors:
    """One point in ten is wrong, half of the documents of several points as a whole."""

    def errors(rng: np.random.Generator, _first: int, shape: tuple[int, int]) -> IntArray:
        alike = rng.random(shape) < (0.5 if size > 1 else 0.0)
        return np.where(alike, size * (rng.random(shape) < ALPHA), rng.binomial(size, ALPHA, shape))

    return errors


def played(games: Games, errors: Errors, documents: int, *, seed: int, least: float, size: int = 1) -> Games:
    """Play games, each with this many documents of a class."""
    rng, count = np.random.default_rng(seed), len(games.most)
    for first in range(0, documents, BLOCK):
        shape = min(BLOCK, documents - first), count
        factors = excess_factors(errors(rng, first, shape), np.full(shape, size), np.array([size]), ALPHA)
        if isinstance(games, GamesFromStarts):
            go_on_from_starts([Further(games, factors, np.ones(shape, dtype=np.bool_), least)], first)
        else:
            games.go_on(factors, first, least)
    return games


def from_starts(count: int, *, is_detector: bool = False) -> GamesFromStarts:
    return GamesFromStarts.before_the_first(count, is_detector=is_detector)


def lit(games: Games, classes: int) -> FloatArray:
    """The number of documents of all classes at which the first game of each stream was lit; inf if none was."""
    crossed = games.crossed.reshape(-1, classes)
    first: FloatArray = np.where(crossed > 0, crossed, inf).min(axis=1) * classes
    return first


def allowed(level: float, streams: int) -> float:
    return level + STANDARD_ERRORS * sqrt(level * (1 - level) / streams)


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("size", [1, 8])
def test_the_mixture_of_starts_is_rarely_ever_lit_by_chance(classes: int, size: int) -> None:
    """At the border of the promise, where that is most frequent."""
    games = from_starts(STREAMS * classes)
    played(games, at_border(size), 3000 // classes, seed=1, least=classes / LEVEL, size=size)
    most = games.most.reshape(-1, classes).max(axis=1)
    for level in (LEVEL, 0.05, 0.2):
        assert np.mean(most >= classes / level) <= allowed(level, STREAMS), level
    assert np.mean(most >= classes / 0.2) > 0.01, "nor is it never lit"


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("size", [1, 8])
def test_early_warnings_that_are_false_are_as_far_apart_as_stated(classes: int, size: int) -> None:
    """At the border of the promise, for a mean of 2,000 documents, since the one in use takes ten times as long."""
    stated, streams, watched = 2000, 200, 20_000
    games = from_starts(streams * classes, is_detector=True)
    played(games, at_border(size), watched // classes, seed=2, least=stated, size=size)
    times = np.minimum(lit(games, classes), watched)
    assert times.mean() - STANDARD_ERRORS * times.std() / sqrt(streams) >= stated
    assert times.mean() < 5 * stated, "nor do they never come"


def fallen(good: int) -> Errors:
    """.95 right of single points, and .85 after some good documents."""

    def errors(rng: np.random.Generator, first: int, shape: tuple[int, int]) -> IntArray:
        wrong = np.where(first + np.arange(shape[0]) < good, 0.05, 0.15)
        return (rng.random(shape) < wrong[:, None]).astype(np.int64)

    return errors


ONCE, MIXTURE, EARLY, LOOK = "games that start once", "mixture", "early warning", "one look"
# Labels of two classes after the change within which half and nine tenths of the streams are lit, by good labels.
SEEN: dict[int, dict[str, tuple[float, float]]] = {
    0: {ONCE: (724, 1_362), MIXTURE: (762, 1_476), EARLY: (666, 1_214), LOOK: (350, 820)},
    500: {ONCE: (1_884, 2_624), MIXTURE: (1_184, 1_946), EARLY: (656, 1_216), LOOK: (1_270, 1_810)},
    2_000: {ONCE: (inf, inf), MIXTURE: (1_374, 2_156), EARLY: (624, 1_094), LOOK: (3_280, 4_080)},
    5_000: {ONCE: (inf, inf), MIXTURE: (1_582, 2_400), EARLY: (620, 1_118), LOOK: (6_920, 8_040)},
}


@pytest.mark.parametrize("good", SEEN)
def test_harm_after_good_times_is_seen(good: int) -> None:
    classes, streams, after = 2, 400, 3000
    alarm, count = classes / LEVEL, streams * classes
    played_by: list[tuple[str, Games, float]] = [
        (ONCE, Games.of(count), alarm),
        (MIXTURE, from_starts(count), alarm),
        (EARLY, from_starts(count, is_detector=True), RUN_LENGTH),
    ]
    for name, games, least in played_by:
        documents = (good + after) // classes
        labels = lit(played(games, fallen(good // classes), documents, seed=3, least=least), classes) - good
        assert np.mean(labels <= 0) <= allowed(LEVEL, streams), "and not before"
        np.testing.assert_allclose(np.quantile(labels, [0.5, 0.9], method="inverted_cdf"), SEEN[good][name], rtol=0.1)


@pytest.mark.parametrize("good", SEEN)
def test_one_look_at_all_labels_sees_harm_later_the_longer_good_times_were(good: int) -> None:
    """The exact binomial test of each of two classes, at a number of labels that would have to be known beforehand."""
    assert tuple(labels_of_one_look(good // 2, chance) for chance in (0.5, 0.9)) == SEEN[good][LOOK]


def labels_of_one_look(good: int, chance: float) -> int:
    """The labels after the change with which the test of one of both classes rejects with some chance.

    good: those of each class before.
    """
    for bad in range(5, 10_000, 5):
        total = good + bad
        most = int(binom.isf(LEVEL / 2, total, ALPHA))  # the most errors with which it does not reject
        before = binom.pmf(np.arange(min(most, good) + 1), good, 0.05)
        missed = float(before @ binom.cdf(most - np.arange(len(before)), bad, 0.15))
        if 1 - missed**2 >= chance:
            return 2 * bad
    raise AssertionError("the test rejects at last")


class Bursts:
    """Errors in bursts, of a mean length in documents of a class; .05 are wrong outside, in all .1."""

    def __init__(self, wrong: float, length: int) -> None:
        self.wrong, self.share = wrong, (ALPHA - 0.05) / (wrong - 0.05)
        self.ends, self.begins = 1 / length, self.share / (1 - self.share) / length
        self.inside = np.zeros(0, dtype=np.bool_)

    def __call__(self, rng: np.random.Generator, first: int, shape: tuple[int, int]) -> IntArray:
        if first == 0:
            self.inside = rng.random(shape[1]) < self.share
        wrong = np.empty(shape, dtype=np.int64)
        for row in wrong:
            row[:] = rng.random(len(row)) < np.where(self.inside, self.wrong, 0.05)
            self.inside ^= rng.random(len(row)) < np.where(self.inside, self.ends, self.begins)
        return wrong


def mislabelled(good: int, labels: int) -> Errors:
    """.95 right, but after some good documents one label in five of a number is wrong."""

    def errors(rng: np.random.Generator, first: int, shape: tuple[int, int]) -> IntArray:
        after = first + np.arange(shape[0]) - good
        is_off = rng.random(shape) < np.where((after >= 0) & (after < labels), 0.2, 0.0)[:, None]
        return ((rng.random(shape) < 0.05) ^ is_off).astype(np.int64)

    return errors


def shares_lit(errors: Errors, documents: int, classes: int = 2) -> list[float]:
    """The share of streams in which each lamp is lit: games that start once, the mixture, and the early warning."""
    streams = 400
    count, found = streams * classes, []
    played_by: list[tuple[Games, float]] = [
        (Games.of(count), classes / LEVEL),
        (from_starts(count), classes / LEVEL),
        (from_starts(count, is_detector=True), RUN_LENGTH),
    ]
    for games, least in played_by:
        times = lit(played(games, errors, documents // classes, seed=4, least=least), classes)
        found.append(float(np.mean(times < inf)))
    return found


@pytest.mark.parametrize(
    ("wrong", "length", "shares"),
    [(0.15, 30, (0.06, 0.08, 0.37)), (0.2, 30, (0.21, 0.38, 0.84)), (0.5, 30, (0.61, 0.98, 1.0))],
)
def test_bursts_of_errors_light_lamps_though_the_promise_holds_on_average(
    wrong: float, length: int, shares: tuple[float, ...]
) -> None:
    """For 3,000 documents that depend on each other: what is promised, and what lamps say, is for independent ones."""
    np.testing.assert_allclose(shares_lit(Bursts(wrong, length), 3000), shares, atol=0.05)


@pytest.mark.parametrize(
    ("labels", "shares"), [(100, (0.0, 0.02, 0.29)), (200, (0.0, 0.24, 0.82)), (400, (0.0, 0.91, 1.0))]
)
def test_labels_that_are_wrong_for_a_time_light_lamps(labels: int, shares: tuple[float, ...]) -> None:
    """One in five of these after 2,000 good ones, until they are corrected."""
    np.testing.assert_allclose(shares_lit(mislabelled(1000, labels // 2), 4000), shares, atol=0.05)


@pytest.mark.parametrize(
    ("wrong", "sooner", "later", "shares"),
    [(0.1, 20, 200, (0.68, 0.6, 0.34)), (0.08, 20, 200, (0.32, 0.27, 0.08)), (0.05, 20, 200, (0.05, 0.04, 0.01))],
)
def test_errors_that_are_labelled_sooner_light_lamps_in_the_order_of_labels(
    wrong: float, sooner: int, later: int, shares: tuple[float, ...]
) -> None:
    """And in the order of decisions, they do not: 1,500 documents, labelled after a mean number of further ones."""
    streams, documents = 400, 1500
    rng = np.random.default_rng(5)
    errors = (rng.random((documents, streams)) < wrong).astype(np.int64)
    delay = rng.exponential(np.where(errors, sooner, later))
    order = np.argsort(np.arange(documents)[:, None] + delay, axis=0)
    by_label = np.take_along_axis(errors, order, axis=0)

    def ordered(all_of: IntArray) -> Errors:
        return lambda _rng, first, shape: all_of[first : first + shape[0]]

    np.testing.assert_allclose(shares_lit(ordered(by_label), documents, classes=1), shares, atol=0.05)
    assert max(shares_lit(ordered(errors), documents, classes=1)[:2]) <= allowed(LEVEL, streams)
