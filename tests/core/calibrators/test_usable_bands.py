"""Shares of usable points: against counting one band at a time, and what is proposed from them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.usable_bands import (
    COARSE_BINS,
    UsableShares,
    coarse_bins,
    smallest_in_band,
    usable_shares,
)
from venn_admit.core.types import CalibrationPoints, IntArray
from venn_admit.errors import InvalidInputError

K = 25


def points(count: int, *, rare: float = 0.3, seed: int = 0) -> CalibrationPoints:
    """Two classes, the second one rarer; q and d do not depend on the class."""
    generator = np.random.default_rng(seed)
    label = (generator.random(count) < rare).astype(np.int64)
    return CalibrationPoints(
        label=label,
        predicted=label,
        match_count=generator.integers(0, K + 1, count),
        distance=generator.gamma(4.0, size=count),
        score=generator.random(count),
    )


def shares(mc: CalibrationPoints, *, omega: float = 2.0, **settings: Any) -> UsableShares:
    asked = make_settings(2, K, **settings)
    return usable_shares(mc, asked, class_count=2, neighbour_count=K, omega=omega)


def counted_apart(mc: CalibrationPoints, edges: tuple[int, ...], omega: float) -> IntArray:
    """min_c n_c over the other points of each point's band, one at a time."""
    bins = np.searchsorted(edges, mc.match_count, side="right")
    found = []
    for row in range(len(mc.label)):
        inside = (bins == bins[row]) & (np.abs(mc.distance - mc.distance[row]) <= omega)
        inside[row] = False
        found.append(np.bincount(mc.label[inside], minlength=2).min())
    return np.array(found)


@pytest.mark.parametrize("edges", [tuple(range(K + 1)), COARSE_BINS, (0,)])
def test_a_point_is_not_counted_in_its_own_band(edges: tuple[int, ...]) -> None:
    mc = points(400)
    found, _ = smallest_in_band(mc, mc, 2, edges, 2.0, apart=True)
    assert found.tolist() == counted_apart(mc, edges, 2.0).tolist()
    with_it, _ = smallest_in_band(mc, mc, 2, edges, 2.0)
    assert set((with_it - found).tolist()) == {0, 1}


def test_shares_are_those_of_counting() -> None:
    mc = points(800)
    found = shares(mc, kappa=40)
    assert found.kappas == (1000, 300, 100, 50, 30)
    assert found.q_bins == (tuple(range(K + 1)), COARSE_BINS, (0,))
    for b, edges in enumerate(found.q_bins):
        smallest = counted_apart(mc, edges, 2.0)
        assert found.shares[:, b].tolist() == [(smallest >= kappa).mean() for kappa in found.kappas]
    assert found.asked_share == (counted_apart(mc, found.q_bins[0], 2.0) >= 40).mean()


def test_shares_of_mc_are_those_of_vp() -> None:
    """Both are samples of one population, so that vp need not be looked at."""
    mc, vp = points(6000), points(6000, seed=1)
    found = shares(mc)
    for b, edges in enumerate(found.q_bins):
        smallest, _ = smallest_in_band(mc, vp, 2, edges, 2.0)
        of_vp = [(smallest >= kappa).mean() for kappa in found.kappas]
        assert found.shares[:, b] == pytest.approx(of_vp, abs=0.03)


def test_the_rare_class_is_named() -> None:
    found = shares(points(6000, rare=0.02))
    assert found.nearly_nothing
    assert found.scarcest_class == 1
    assert found.scarcest_share == pytest.approx(1.0, abs=0.01)
    assert found.class_count.sum() == 6000
    assert not shares(points(6000, rare=0.5), kappa=10).nearly_nothing


def test_where_every_band_is_usable_no_class_is_scarce() -> None:
    found = shares(points(2000), kappa=1, q_bins=(0,), delta=float("inf"), omega=float("inf"))
    assert (found.asked_share, found.scarcest_class) == (1.0, -1)


def proposed(rows: list[list[float]]) -> tuple[int, tuple[int, ...], float]:
    template = shares(points(100))
    settings, share = replace(template, shares=np.array(rows)).proposal()
    return settings.kappa, settings.q_bins, share


def test_proposal() -> None:
    every, none = tuple(range(K + 1)), [0.0, 0.0, 0.0]
    # The largest kappa counts before the bins, and one bin comes last.
    assert proposed([[0, 0, 0.9], [0, 0.5, 1], [0.6, 0.8, 1], none, none]) == (300, COARSE_BINS, 0.5)
    assert proposed([none, [0.5, 0.9, 1], none, none, none]) == (300, every, 0.5)
    assert proposed([none, none, [0, 0, 0.7], [0.1, 0.2, 0.8], none]) == (100, (0,), 0.7)
    # Nothing leaves enough: the most there is, with the larger kappa.
    assert proposed([none, none, [0.0, 0.2, 0.3], [0.0, 0.1, 0.3], none]) == (100, (0,), 0.3)


def test_kappa_is_never_below_what_alpha_needs() -> None:
    """With fewer than 1 / alpha - 1 points the rank exceeds them, and no class is ever left out of a set."""
    assert shares(points(300), alpha=Decimal("0.01")).kappas == (1000, 300, 100, 99)
    assert shares(points(300), alpha=Decimal("0.0001")).kappas == (9999,)


def test_bins_asked_for_are_compared_too() -> None:
    found = shares(points(300), q_bins=(0, 10))
    assert found.q_bins == (tuple(range(K + 1)), COARSE_BINS, (0, 10), (0,))
    assert shares(points(300), q_bins=(0,)).q_bins == shares(points(300)).q_bins


def test_coarse_bins_are_edges_that_settings_accept() -> None:
    for neighbour_count in range(1, 60):
        make_settings(2, neighbour_count, q_bins=coarse_bins(neighbour_count))


def test_no_points_are_refused() -> None:
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(InvalidInputError, match="at least one point of mc"):
        shares(CalibrationPoints(none, none, none, np.zeros(0), np.zeros(0)))
