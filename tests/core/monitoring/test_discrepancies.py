"""Discrepancies: the design effect of documents, and when they count as grown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.monitoring.drift import Discrepancies, discrepancies_of_documents, growth_p_value, has_grown


def of_documents(*counted: tuple[int, int, int]) -> Discrepancies:
    """Samples of (points, differing, documents)."""
    points, differing, documents = np.array(counted, dtype=np.int64).reshape(-1, 3).T
    return discrepancies_of_documents(points, differing, documents)


def test_points_that_stand_alone_have_no_design_effect() -> None:
    found = of_documents((1, 0, 900), (1, 1, 100))
    assert (found.differing, found.points, found.share) == (100, 1000, 0.1)
    assert found.design_effect == pytest.approx(1000 / 999)


def test_documents_that_agree_wholly_count_once() -> None:
    found = of_documents((10, 0, 90), (10, 10, 10))
    assert (found.differing, found.points) == (100, 1000)
    assert found.design_effect == pytest.approx(10 * 100 / 99)


def test_no_point_and_no_difference() -> None:
    empty, alike = of_documents(), of_documents((1, 0, 50))
    assert (empty.differing, empty.points, empty.design_effect) == (0, 0, 1.0)
    assert np.isnan(empty.share)
    assert (alike.share, alike.design_effect) == (0.0, 1.0)
    assert growth_p_value(alike, empty) == growth_p_value(alike, alike) == 1.0


def test_known_value() -> None:
    """Pooled share .055; z = .03 / sqrt(.055 * .945 * (1/500 + 1/500)) = 2.0806."""
    p_value = growth_p_value(Discrepancies(20, 500), Discrepancies(35, 500))
    assert p_value == pytest.approx(0.018734, abs=1e-6)


def test_documents_make_the_same_shares_say_less() -> None:
    before, after = (20, 1000), (45, 1000)
    assert has_grown(Discrepancies(*before), Discrepancies(*after))
    assert not has_grown(Discrepancies(*before, 5.0), Discrepancies(*after, 5.0))


@given(st.integers(0, 200), st.integers(200, 400), st.integers(0, 200), st.integers(200, 400))
def test_fewer_are_never_growth(differing: int, points: int, differing_after: int, points_after: int) -> None:
    before, after = Discrepancies(differing, points), Discrepancies(differing_after, points_after)
    p_value = growth_p_value(before, after)
    assert 0 <= p_value <= 1
    if after.share <= before.share:
        assert p_value >= 0.5


def test_chance_alone_seldom_counts_as_growth() -> None:
    """Dev halves and held-out data of one share differ about as often as the level says; 800 and 14,400 points."""
    generator = np.random.default_rng(3)
    at_fit, since = generator.binomial(800, 0.03, size=2000), generator.binomial(14_400, 0.03, size=2000)
    grown = [
        has_grown(Discrepancies(int(a), 800), Discrepancies(int(b), 14_400)) for a, b in zip(at_fit, since, strict=True)
    ]
    assert np.mean(grown) <= 0.02
