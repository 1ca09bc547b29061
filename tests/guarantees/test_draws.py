"""What the sequential test of simulations shows, from the exact distribution of the draws that it makes."""

from collections import defaultdict
from math import sqrt

import pytest

from tests.guarantees.draws import LEAST, MOST, WRONG_OF_OFTEN, WRONG_OF_SELDOM, Draws
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail

EPS = 0.1


def settled(probability: float) -> tuple[float, float]:
    """How likely it is that what happens with a probability is called seldom, and how many draws that takes."""
    added = {happened: Draws(EPS) for happened in (True, False)}
    for has_happened, one in added.items():
        one.add(has_happened)
    open_, seldom, draws, times = {0: 1.0}, 0.0, 0.0, 0
    while sum(open_.values()) > 1e-9:
        times += 1
        following: dict[int, float] = defaultdict(float)
        for happened, weight in open_.items():
            following[happened + 1] += weight * probability
            following[happened] += weight * (1 - probability)
        evidence = {
            happened: happened * added[True].evidence + (times - happened) * added[False].evidence
            for happened in following
        }
        seldom += sum(weight for happened, weight in following.items() if evidence[happened] <= LEAST)
        open_ = {happened: weight for happened, weight in following.items() if LEAST < evidence[happened] < MOST}
        draws += times * (sum(following.values()) - sum(open_.values()))
    return seldom, draws


def by_fixed(draws: int, probability: float) -> float:
    """The same of a fixed number of draws, with a share of at most three standard errors above eps."""
    most = int(draws * (EPS + 3 * sqrt(EPS * (1 - EPS) / draws)))
    return binomial_tail(most, draws, probability)


def test_it_is_wrong_as_seldom_as_it_says() -> None:
    assert settled(EPS)[0] >= 1 - WRONG_OF_SELDOM
    assert settled(2.5 * EPS)[0] <= WRONG_OF_OFTEN


@pytest.mark.parametrize("probability", [0.2, 0.25])
def test_it_sees_what_150_draws_would_not(probability: float) -> None:
    assert settled(probability)[0] < by_fixed(150, probability)


@pytest.mark.parametrize(("probability", "draws"), [(0.0, 26), (0.05, 38), (0.1, 70)])
def test_it_takes_fewer_draws(probability: float, draws: float) -> None:
    assert settled(probability)[1] <= draws
