"""What other divisions admit, against a loop, and that neither the order of points nor company shows."""

from decimal import Decimal
from math import ceil

import numpy as np
import pytest

from tests.guarantees.test_coverage import CLASS_COUNT, NEIGHBOUR_COUNT, draw_points
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.comparison.divisions import DIVISIONS
from venn_admit.core.monitoring.divisions import redivided_shares
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import IntArray

SETTINGS = make_settings(CLASS_COUNT, NEIGHBOUR_COUNT, alpha=Decimal("0.1"), kappa=20)
COUNT = 1000
POINTS = draw_points(np.random.default_rng(3), COUNT)
KEYS = [f"{row // 2}" for row in range(COUNT)]


def shares(rows: IntArray, *, mc_share: float = 0.6, seed: int = 7) -> tuple[float, ...]:
    return redivided_shares(
        POINTS.view.take(rows),
        POINTS.label[rows],
        [KEYS[row] for row in rows.tolist()],
        SETTINGS,
        mc_share=mc_share,
        class_count=CLASS_COUNT,
        seed=seed,
    )


def loop_share(in_mc: list[bool]) -> float:
    """The procedure for one point after the other, in plain steps (docs/PROCEDURE.md, sections 3 to 6)."""
    view, label = POINTS.view, POINTS.label
    mc, vp = ([row for row in range(COUNT) if in_mc[row] == wanted] for wanted in (True, False))
    pi = np.exp(view.logits) / np.exp(view.logits).sum(axis=1, keepdims=True)
    omega = view.distance[[row for row in mc if view.predicted[row] == label[row] and view.match_count[row] > 0]].std(
        ddof=1
    )

    def in_band(row: int, rows: list[int]) -> list[int]:
        low, high = view.distance[row] - omega, view.distance[row] + omega
        return [
            one for one in rows if view.match_count[one] == view.match_count[row] and low <= view.distance[one] <= high
        ]

    def is_single(row: int) -> bool:
        band, single = in_band(row, mc), True
        for c in range(CLASS_COUNT):
            scores = sorted(1 - pi[one, c] for one in band if label[one] == c)
            if len(scores) < SETTINGS.kappa:
                return False
            rank = ceil(Decimal(len(scores) + 1) * Decimal("0.9"))
            within = rank > len(scores) or 1 - pi[row, c] <= scores[rank - 1]
            single &= not within or c == view.predicted[row]
        return single

    single = [row for row in vp if is_single(row)]
    admitted = 0
    for row in single:
        others = [one for one in in_band(row, single) if one != row and view.predicted[one] == view.predicted[row]]
        admitted += sum(label[one] == view.predicted[row] for one in others) / (len(others) + 1) >= 0.9
    return admitted / len(vp)


def test_shares_are_those_of_a_loop() -> None:
    found = shares(np.arange(COUNT))
    assert len(found) == DIVISIONS
    assert 0 < min(found) < max(found) < 1
    hash_of = dict(zip(KEYS, hash_keys(KEYS, seed=7, purpose="divisions").tolist(), strict=True))
    ordered = sorted(hash_of, key=hash_of.__getitem__)
    for number in (0, 9):
        draws = np.random.default_rng([7, number]).random(len(ordered))
        drawn = {key: bool(draw < 0.6) for key, draw in zip(ordered, draws.tolist(), strict=True)}
        assert found[number] == pytest.approx(loop_share([drawn[key] for key in KEYS]), abs=1e-12)


def test_the_order_of_points_does_not_matter_and_the_seed_does() -> None:
    expected = shares(np.arange(COUNT))
    turned = np.random.default_rng(0).permutation(COUNT)
    assert shares(turned) == expected
    assert shares(turned, seed=-1) != expected


@pytest.mark.parametrize(("count", "mc_share"), [(2, 0.5), (6, 0.5)])
def test_too_few_points_have_no_shares(count: int, mc_share: float) -> None:
    assert shares(np.arange(count), mc_share=mc_share) == ()
