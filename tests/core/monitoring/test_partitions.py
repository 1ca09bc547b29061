"""Partitions of a snapshot: every point once, and usable bands as the ADMIT sets have them."""

from itertools import pairwise

import numpy as np
from hypothesis import assume, given

from tests.core.scenarios import Scenario, admit_index, scenarios, sets_of
from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.monitoring.partitions import DISTANCE_GROUPS, CalibrationPartitions, calibration_partitions
from venn_admit.core.types import CalibrationPoints


def partitions_of(scenario: Scenario) -> CalibrationPartitions:
    return calibration_partitions(
        scenario.mc,
        scenario.vp,
        sets_of(admit_index(scenario), scenario.vp_view).singleton,
        class_count=scenario.class_count,
        settings=scenario.settings,
        omega=scenario.omega,
    )


@given(scenarios())
def test_usable_bands_and_singletons_are_those_of_the_sets(scenario: Scenario) -> None:
    assume(len(scenario.mc.label) and len(scenario.vp.label))
    found, sets = partitions_of(scenario), sets_of(admit_index(scenario), scenario.vp_view)
    edges, vp = scenario.settings.q_bins, scenario.vp
    bins, right = bin_of(vp.match_count, edges), vp.predicted == vp.label
    for members, counts in (
        (~sets.starved, found.usable),
        (sets.singleton, found.singleton),
        (sets.singleton & right, found.right),
    ):
        assert counts.sum(axis=1).tolist() == np.bincount(bins[members], minlength=len(edges)).tolist()


@given(scenarios())
def test_every_point_is_in_one_partition(scenario: Scenario) -> None:
    assume(len(scenario.mc.label) and len(scenario.vp.label))
    found = partitions_of(scenario)
    groups = [-np.inf, *found.distance_edges, np.inf]
    for points, counts in ((scenario.mc, found.mc_count), (scenario.vp, found.vp_count)):
        assert counts.shape == (len(scenario.settings.q_bins), DISTANCE_GROUPS, scenario.class_count)
        assert counts.sum(axis=(0, 1)).tolist() == np.bincount(points.label, minlength=scenario.class_count).tolist()
        inside = [int(((points.distance >= low) & (points.distance < high)).sum()) for low, high in pairwise(groups)]
        assert counts.sum(axis=(0, 2)).tolist() == inside


def test_known_answer() -> None:
    """Bands of q alone, kappa 2: q = 1 holds two of class 0 and one of class 1, q = 0 two of each."""
    label, match_count = np.array([0, 0, 1, 1, 0, 0, 1]), np.array([0, 0, 0, 0, 1, 1, 1])
    distance = np.arange(7.0)
    mc = CalibrationPoints(label, label, match_count, distance, np.zeros(7))
    vp_label, vp_predicted, vp_match_count = np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0, 0, 1])
    vp = CalibrationPoints(vp_label, vp_predicted, vp_match_count, distance[[0, 1, 6]], np.zeros(3))
    found = calibration_partitions(
        mc, vp, np.array([True, True, False]), class_count=2, settings=make_settings(2, 1, kappa=2), omega=np.inf
    )
    assert found.distance_edges.tolist() == [1.0, 2.5, 4.75]
    assert found.mc_count[:, :, 0].tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert found.mc_count[:, :, 1].tolist() == [[0, 1, 1, 0], [0, 0, 0, 1]]
    assert found.usable.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
    assert found.singleton.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
    assert found.right.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]
