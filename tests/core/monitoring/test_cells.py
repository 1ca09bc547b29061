"""What cells can admit, and what they lack, against isotonic regression with the lacking points added."""

from decimal import Decimal
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.calibrators.venn_abers.isotonic import bounds_of
from venn_admit.core.calibrators.certified.policies import Bounded, Policy
from venn_admit.core.calibrators.settings import VennAbersSettings, make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.monitoring.cells import CellState, cell_states
from venn_admit.core.types import BoolArray, FloatArray

SETTINGS = make_venn_abers_settings(2, 5)


def policy_of(settings: VennAbersSettings) -> Policy:
    return Policy(tuple(map(float, settings.thresholds)), Bounded.LOWER)


def states(score: FloatArray, right: BoolArray, settings: VennAbersSettings = SETTINGS) -> tuple[CellState, ...]:
    zeros = np.zeros(len(score), dtype=np.int64)
    return cell_states(
        CellPoints(zeros, zeros, score),
        right,
        right,
        policy=policy_of(settings),
        q_bins=settings.q_bins,
        label_count=10.0 * len(score),
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=25), st.sampled_from(["0.1", "0.25", "0.5"]))
def test_what_is_lacking_is_the_least_that_does(points: list[tuple[int, bool]], alpha: str) -> None:
    """With enough right points on top the highest score is admitted, and with one less it is not."""
    score = np.array([place for place, _ in points]) / 10
    right = np.array([hit for _, hit in points], dtype=np.bool_)
    first, _ = states(score, right, make_venn_abers_settings(2, 5, alpha=Decimal(alpha)))

    def largest(more: int) -> float:
        scores, hits = np.append(score, np.ones(more)), np.append(right, np.full(more, True))
        return float(bounds_of(scores, hits, 1.0)[0])

    assert first.largest == largest(0)
    more = int(first.lacking)
    assert largest(more) >= 1 - float(alpha)
    assert more == 0 or largest(more - 1) < 1 - float(alpha)
    assert (first.admits_from is None) == (more > 0)


def test_nine_right_points_of_nine_are_admitted_at_nine_tenths() -> None:
    for count, lacking in ((8, 1), (9, 0)):
        first, empty = states(np.linspace(0.5, 0.9, count), np.full(count, True))
        assert (first.points, first.right, first.largest) == (count, count, count / (count + 1))
        assert first.lacking == lacking
        assert first.labels == lacking * 10
        assert (empty.points, empty.largest, empty.admits_from, empty.lacking, empty.labels) == (0, 0, None, 9, inf)


def test_a_class_that_is_wrong_at_the_top_needs_as_many_as_one_without_points() -> None:
    score = np.linspace(0.1, 0.9, 100)
    first, _ = states(score, np.arange(100) < 80)
    assert first.largest == 80 / 101
    assert first.lacking == 9  # those above the wrong ones count alone
    among, _ = states(score, np.arange(100) % 8 > 0)
    assert 0 < among.lacking < 9


def test_cells_are_told_apart_by_bin_and_class_and_a_threshold_of_one_is_never_reached() -> None:
    settings = VennAbersSettings(Decimal("0.1"), (0, 3), (Decimal(1), Decimal("0.9")), None)
    predicted, match_count = np.array([0, 0, 1, 1, 1]), np.array([0, 3, 0, 4, 5])
    points = CellPoints(predicted, match_count, np.array([0.5, 0.6, 0.7, 0.8, 0.9]))
    right, admitted = np.array([True, True, False, True, True]), np.array([False, True, False, True, False])
    found = cell_states(points, right, admitted, policy=policy_of(settings), q_bins=settings.q_bins, label_count=50)
    assert [(state.q_bin, state.predicted, state.points, state.right, state.admitted) for state in found] == [
        (0, 0, 1, 1, 0),
        (0, 1, 1, 0, 0),
        (1, 0, 1, 1, 1),
        (1, 1, 2, 2, 1),
    ]
    assert [state.lacking for state in found] == [inf, 9, inf, 7]
    assert found[3].labels == pytest.approx(7 * 50 / 2)


def test_a_policy_that_bounds_scores_says_itself_from_which_score_it_admits() -> None:
    score, right = np.linspace(0.5, 0.9, 9), np.full(9, True)
    zeros = np.zeros(9, dtype=np.int64)
    first, never = cell_states(
        CellPoints(zeros, zeros, score), right, score >= 0.7, policy=Policy((0.7, None)), q_bins=(0,), label_count=90.0
    )
    assert (first.admits_from, first.admitted, first.lacking) == (0.7, 5, 0)
    assert (never.admits_from, never.lacking) == (None, 0)
