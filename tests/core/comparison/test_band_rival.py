"""Venn-ADMIT as a rival: by which settings it was calibrated, or why it is left out.

That it decides as a calibration of its own does is in tests/flows/reports/test_evaluate_venn_abers.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.comparison.band_rival import admit_rival
from venn_admit.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints
from venn_admit.core.types import AdmitOutcome, Approximation, Float32Array, IntArray

K = 3


def held_out_points(count: int, *, distance: float | None = None, match_count: int = K) -> HeldOutPoints:
    """Points of two classes by turns, all predicted right, at distances that ascend unless one is given."""
    label = np.arange(count) % 2
    logits = np.where(np.arange(2) == label[:, None], 3.0, -3.0)
    distances = np.linspace(1.0, 2.0, count) if distance is None else np.full(count, distance)
    view = Approximation(logits, label, np.full(count, match_count), distances)
    return HeldOutPoints([f"{i}" for i in range(count)], label, ViewedPoints(logits.astype(np.float32), view))


def vectors_of(rows: IntArray) -> Float32Array:
    return np.zeros((len(rows), 4), dtype=np.float32)


def rival(held_out: HeldOut, *, kappa: int) -> tuple[AdmitOutcome | None, str]:
    points = held_out_points(20)
    return admit_rival(
        held_out,
        vectors_of,
        points.seen.knn,
        np.zeros((20, 4), dtype=np.float32),
        make_settings(2, K, kappa=kappa, delta=np.inf),
        neighbour_count=K,
        eta_loc=1.0,
    )


EVERYTHING = HeldOut(held_out_points(4), held_out_points(200), held_out_points(200))


def test_with_enough_points_it_admits_and_says_by_which_settings() -> None:
    outcome, words = rival(EVERYTHING, kappa=100)
    assert outcome is not None
    assert outcome.included.sum(axis=1).tolist() == [1] * 20
    assert outcome.admitted_plain.all()
    assert words == "kappa 100, delta inf, 100.0% of the points in usable bands"
    # All vectors are alike, so that the weights of a class are half of all.
    assert np.all(outcome.lower_weighted < outcome.lower_plain)


@pytest.mark.parametrize(
    ("held_out", "kappa", "reason"),
    [
        (EVERYTHING, 101, "left out: no band holds kappa = 101 points of each class in mc, the fullest 100"),
        (
            replace(EVERYTHING, mc=held_out_points(200, match_count=0)),
            100,
            "left out: the band radius needs at least 2",
        ),
        (replace(EVERYTHING, vp=held_out_points(0)), 100, "left out: vp holds no labelled points"),
    ],
)
def test_it_is_left_out_for_a_reason(held_out: HeldOut, kappa: int, reason: str) -> None:
    outcome, words = rival(held_out, kappa=kappa)
    assert outcome is None
    assert words.startswith(reason)


def test_bands_of_equal_distances_are_left_out() -> None:
    equal = replace(EVERYTHING, mc=held_out_points(200, distance=1.0))
    points = held_out_points(20)
    outcome, words = admit_rival(
        equal,
        vectors_of,
        points.seen.knn,
        np.zeros((20, 4), dtype=np.float32),
        make_settings(2, K, kappa=10),
        neighbour_count=K,
        eta_loc=1.0,
    )
    assert (outcome, words) == (None, "left out: all distances of mc are equal")
