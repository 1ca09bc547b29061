"""The share admitted by divisions of the same points, against a loop, and that neither order nor company shows."""

from dataclasses import replace
from decimal import Decimal
from math import ceil

import numpy as np
import pytest

from tests.guarantees.test_coverage import CLASS_COUNT, NEIGHBOUR_COUNT, Points, draw_points
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.comparison.divisions import DIVISIONS, division_shares
from venn_admit.core.comparison.held_out import HeldOutPoints, ViewedPoints
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import IntArray

SETTINGS = make_settings(CLASS_COUNT, NEIGHBOUR_COUNT, alpha=Decimal("0.1"), kappa=20)


def drawn(count: int, order: IntArray | None = None) -> tuple[HeldOutPoints, Points]:
    points = draw_points(np.random.default_rng(3), count)
    rows = np.arange(count) if order is None else order
    view = points.view.take(rows)
    keys = [f"{row // 2}" for row in rows.tolist()]
    held_out = HeldOutPoints(keys, points.label[rows], ViewedPoints(view.logits.astype(np.float32), view))
    return held_out, points


def loop_share(points: Points, first: IntArray, second: IntArray, judged: IntArray, kappa: int) -> float:
    """The procedure for one point after the other, in plain steps (docs/PROCEDURE.md, sections 3 to 6)."""
    view, label = points.view, points.label
    pi = np.exp(view.logits) / np.exp(view.logits).sum(axis=1, keepdims=True)
    right = (view.predicted == label) & (view.match_count > 0)
    omega = view.distance[[row for row in first if right[row]]].std(ddof=1)

    def in_band(row: int, rows: IntArray) -> list[int]:
        return [
            one
            for one in rows.tolist()
            if view.match_count[one] == view.match_count[row]
            and view.distance[row] - omega <= view.distance[one] <= view.distance[row] + omega
        ]

    def is_single(row: int) -> bool:
        band = in_band(row, first)
        for known in range(CLASS_COUNT):
            scores = sorted(1 - pi[one, known] for one in band if label[one] == known)
            if len(scores) < kappa:
                return False
            rank = ceil(Decimal(len(scores) + 1) * Decimal("0.9"))
            within = rank > len(scores) or 1 - pi[row, known] <= scores[rank - 1]
            if rank > len(scores):
                within = False
            if within and known != view.predicted[row]:
                return False
        return True

    single = {row: is_single(row) for row in [*second.tolist(), *judged.tolist()]}
    admitted = 0
    for row in judged.tolist():
        if single[row]:
            category = [
                one for one in in_band(row, second) if single[one] and view.predicted[one] == view.predicted[row]
            ]
            correct = sum(label[one] == view.predicted[row] for one in category)
            admitted += correct / (len(category) + 1) >= 0.9
    return admitted / len(judged)


def shares(points: HeldOutPoints, seed: int) -> tuple[float, ...]:
    (found,) = division_shares(points, [SETTINGS], class_count=CLASS_COUNT, seed=seed)
    return found


def test_shares_are_those_of_a_loop() -> None:
    held_out, points = drawn(1500)
    found = shares(held_out, 7)
    assert len(found) == DIVISIONS
    part = hash_keys(held_out.keys, seed=7, purpose="division") % 5
    judged, others = np.flatnonzero(part == 0), np.flatnonzero(part != 0)
    for number in (0, 9):
        half = hash_keys([held_out.keys[row] for row in others.tolist()], seed=7, purpose=f"half {number}") % 2 == 0
        first, second = others[half], others[~half]
        expected = loop_share(points, first, second, judged, ceil(20 * len(first) / 1500))
        assert found[number] == pytest.approx(expected, abs=1e-12)
    assert 0 < min(found) < max(found) < 1


def test_the_order_of_points_does_not_matter_and_the_seed_does() -> None:
    expected = shares(drawn(600)[0], 7)
    turned = drawn(600, np.random.default_rng(0).permutation(600))[0]
    assert shares(turned, 7) == expected
    assert shares(turned, 8) != expected


def test_settings_are_as_they_are_alone() -> None:
    points = drawn(600)[0]
    varied = [
        SETTINGS,
        replace(SETTINGS, kappa=5),
        replace(SETTINGS, delta=0.5),
        replace(SETTINGS, thresholds=(Decimal("0.8"),) * CLASS_COUNT),
        replace(SETTINGS, q_bins=(0,)),
        replace(SETTINGS, undivided=True),
    ]
    together = division_shares(points, varied, class_count=CLASS_COUNT, seed=7)
    assert together == [division_shares(points, [one], class_count=CLASS_COUNT, seed=7)[0] for one in varied]
    assert len(set(together)) == len(varied)
    assert len(set(together[-1])) == 1, "no division, no range"


def test_too_few_points_have_no_shares() -> None:
    assert shares(drawn(2)[0], 7) == ()
