"""Simulated: of certificates that look at the same labels some falls short far too often, and in a family seldom."""

from decimal import Decimal
from math import sqrt

import numpy as np
import pytest
from scipy.stats import binom

from venn_admit.core.calibrators.certified.family import confidence_of_next

ALPHA, CONFIDENCE, TRIES, DRAWS, LABELS = 0.1, Decimal("0.9"), 16, 500, 1000


def falls_short(levels: list[float], *, seed: int) -> float:
    """The share of draws in which a certificate of two classes passes that falls short; each try has another score.

    Each score admits half of the points, which are right with a probability of .899 whatever it says.
    """
    rng = np.random.default_rng(seed)
    predicted, wrong = rng.integers(0, 2, (DRAWS, LABELS)), rng.random((DRAWS, LABELS)) < 0.101
    fails = np.zeros(DRAWS, dtype=np.bool_)
    for level in levels:
        admitted = rng.random((DRAWS, LABELS)) < 0.5
        for number in range(2):
            of_class = admitted & (predicted == number)
            p_values = binom.cdf((of_class & wrong).sum(axis=1), of_class.sum(axis=1), ALPHA)
            fails |= p_values <= level / 2
    return float(fails.mean())


def levels_of_family() -> list[float]:
    spent, levels = Decimal(0), []
    for looks in range(TRIES):
        confidence = confidence_of_next(CONFIDENCE, spent, looks)
        assert confidence is not None
        levels.append(float(1 - confidence))
        spent += 1 - confidence
    assert spent < 1 - CONFIDENCE
    return levels


def test_the_best_of_sixteen_holds_with_the_confidence_of_the_family() -> None:
    eps = float(1 - CONFIDENCE)
    found = [falls_short(levels, seed=1) for levels in ([eps], [eps] * TRIES, levels_of_family())]
    most = eps + 3 * sqrt(eps * (1 - eps) / DRAWS)
    assert found[0] <= most
    assert found[2] <= most
    np.testing.assert_allclose(found, (0.06, 0.43, 0.04), atol=0.05)


def test_a_family_after_a_certificate_by_itself_spends_what_that_left() -> None:
    assert confidence_of_next(Decimal("0.9"), Decimal("0.05"), 1) == Decimal("0.983334")


@pytest.mark.parametrize("spent", ["0.1", "0.2", "0.099999"])
def test_nothing_is_left_once_it_is_spent(spent: str) -> None:
    assert confidence_of_next(Decimal("0.9"), Decimal(spent), 3) is None
