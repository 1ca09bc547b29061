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
"""The wrong points of (n, g) documents from one number on, each of a game of its own; -1 if one does not count."""


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
        wrong = errors(rng, first, shape)
        counts = wrong >= 0
        factors = excess_factors(np.maximum(wrong, 0), size * counts, np.array([size]), ALPHA)
        if isinstance(games, GamesFromStarts):
            go_on_from_starts([Further(games, factors, counts, least)], first)
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


def delayed(wrong: FloatArray, streams: int, *, sooner: float = 20, later: float = 200) -> tuple[IntArray, FloatArray]:
    """Which documents of streams are wrong, and after how many further ones each is labelled; errors sooner."""
    rng = np.random.default_rng(5)
    errors = (rng.random((len(wrong), streams)) < wrong[:, None]).astype(np.int64)
    return errors, rng.exponential(np.where(errors, sooner, later))


def given(all_of: IntArray) -> Errors:
    return lambda _rng, first, shape: all_of[first : first + shape[0]]


def by_label(errors: IntArray, delay: FloatArray) -> tuple[IntArray, FloatArray]:
    """Documents in the order of their labels, and when each is labelled."""
    arrival = np.arange(len(errors))[:, None] + delay
    order = np.argsort(arrival, axis=0)
    return np.take_along_axis(errors, order, axis=0), np.take_along_axis(arrival, order, axis=0)


def by_deadline(errors: IntArray, delay: FloatArray, deadline: float) -> IntArray:
    return np.where(delay <= deadline, errors, -1)


# The share of streams of 1,500 documents of one class in which each lamp is lit, in the order of labels and by a
# deadline in documents: games that start once, lamp, early warning; and of documents without a label by then.
SOONER: dict[float, dict[float, tuple[float, float, float, float]]] = {
    0.1: {
        inf: (0.68, 0.6, 0.34, 0),
        200: (0.89, 0.88, 0.92, 0.33),
        600: (0.02, 0.01, 0.06, 0.04),
        1000: (0, 0, 0.04, 0),
    },
    0.08: {inf: (0.32, 0.27, 0.08, 0), 200: (0.15, 0.13, 0.24, 0.34), 600: (0, 0, 0, 0.05), 1000: (0, 0, 0, 0)},
    0.05: {inf: (0.05, 0.04, 0.01, 0), 200: (0, 0, 0, 0.35), 600: (0, 0, 0, 0.05), 1000: (0, 0, 0, 0)},
}


@pytest.mark.parametrize("wrong", SOONER)
def test_errors_that_are_labelled_sooner_light_lamps_in_the_order_of_labels(wrong: float) -> None:
    """And by a deadline they do not, unless it is so short that many right predictions have no label by then."""
    documents, streams = 1500, 400
    errors, delay = delayed(np.full(documents, wrong), streams)
    for deadline, expected in SOONER[wrong].items():
        kept = by_label(errors, delay)[0] if deadline == inf else by_deadline(errors, delay, deadline)
        found = [*shares_lit(given(kept), documents, classes=1), float(np.mean(kept < 0))]
        np.testing.assert_allclose(found, np.array(expected), atol=0.05)
    assert max(found[:2]) <= allowed(LEVEL, streams), "by the longest deadline"


# Documents after the change from .95 to .85 right within which half and nine tenths of the streams are lit, by the good
# ones before, if errors are labelled sooner: by lamp and early warning, in the order of labels and by a deadline.
SEEN_LATE: dict[int, dict[float, tuple[tuple[float, float], tuple[float, float]]]] = {
    0: {inf: ((63, 146), (101, 236)), 600: ((1015, 1400), (1013, 1318)), 1000: ((1469, 1951), (1466, 1864))},
    2000: {inf: ((955, 1456), (527, 871)), 600: ((1359, 1761), (983, 1286)), 1000: ((1887, 2350), (1439, 1787))},
}


@pytest.mark.parametrize("good", SEEN_LATE)
def test_a_deadline_has_harm_seen_later_by_as_much(good: int) -> None:
    documents, streams = good + 2500, 200
    errors, delay = delayed(np.where(np.arange(documents) < good, 0.05, 0.15), streams)
    ordered, arrival = by_label(errors, delay)
    for deadline, expected in SEEN_LATE[good].items():
        for is_detector, quantiles in zip((False, True), expected, strict=True):
            games, least = from_starts(streams, is_detector=is_detector), RUN_LENGTH if is_detector else 1 / LEVEL
            kept = ordered if deadline == inf else by_deadline(errors, delay, deadline)
            last = lit(played(games, given(kept), documents, seed=4, least=least), 1)
            rows = np.minimum(last, documents).astype(np.int64)[None] - 1
            shown = np.take_along_axis(arrival, rows, axis=0)[0] if deadline == inf else last + deadline
            after = np.where(last < inf, shown, inf) - good
            np.testing.assert_allclose(np.quantile(after, [0.5, 0.9], method="inverted_cdf"), quantiles, rtol=0.15)
