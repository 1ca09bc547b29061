"""What the sequential test of simulations shows, from the exact distribution of the draws that it makes."""

from collections import defaultdict
from dataclasses import replace
from math import sqrt

import pytest

from tests.guarantees.draws import LEAST, MOST, WRONG_OF_OFTEN, WRONG_OF_SELDOM, Draws, until_settled
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail

EPS = 0.1


def settled(probability: float, unsettled: Draws | None = None) -> tuple[float, float]:
    """How likely it is that what happens with a probability is called seldom, and how many draws that takes."""
    added = {happened: replace(unsettled or Draws(EPS)) for happened in (True, False)}
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


def by_fixed(draws: int, probability: float, eps: float = EPS) -> float:
    """The same of a fixed number of draws, with a share of at most three standard errors above eps."""
    most = int(draws * (eps + 3 * sqrt(eps * (1 - eps) / draws)))
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


@pytest.mark.parametrize(("eps", "draws"), [(0.01, 660), (0.05, 510), (0.1, 490), (0.2, 490)])
def test_it_is_as_sharp_as_a_thousand_draws_and_takes_fewer(eps: float, draws: float) -> None:
    unsettled = Draws.as_sharp_as(1000, eps)
    often = unsettled.often * eps
    assert settled(often, unsettled)[0] <= WRONG_OF_OFTEN < by_fixed(1000, often, eps)
    right, taken = settled(eps, unsettled)
    assert right >= 1 - WRONG_OF_SELDOM
    assert taken <= draws


def test_what_is_settled_stays_so_while_others_are_open() -> None:
    sure, unsure = Draws(0.1), Draws(0.01)
    for number in until_settled([sure, unsure]):
        sure.add(number > 40)
        unsure.add(False)
    assert (sure.seldom, sure.count) == (True, 26)
    assert (unsure.seldom, unsure.count) == (True, 302)
