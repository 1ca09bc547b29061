"""The Venn probabilities of all classes, against the definition: the greatest and the least over assumed labels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.calibrators.venn_admit.venn import venn_probabilities
from venn_admit.core.evaluation.category import category_shares

COUNTS = st.lists(st.integers(0, 300), min_size=2, max_size=6)


def decided(counts: list[int], upweight: float | None, predicted: int = 0) -> dict[str, Any]:
    return {"category_size": sum(counts), "upweight": upweight, "predicted": predicted}


@given(counts=COUNTS, upweight=st.floats(1, 1e6))
def test_probabilities_are_the_extremes_over_assumed_labels(counts: list[int], upweight: float) -> None:
    found = category_shares(decided(counts, upweight), counts)
    assert found is not None
    for place in range(len(counts)):
        assumed = [
            (counts[place] + (label == place) * upweight) / (sum(counts) + upweight) for label in range(len(counts))
        ]
        assert (found.lower[place], found.upper[place]) == (min(assumed), max(assumed))
    assert sum(found.lower) <= 1 + 1e-12 <= sum(found.upper) + 2e-12


@given(counts=COUNTS, mass=st.floats(0.0, 1.0), predicted=st.integers(0, 1))
def test_the_prediction_has_the_probabilities_of_the_decision(counts: list[int], mass: float, predicted: int) -> None:
    size, right = np.array([sum(counts)]), np.array([counts[predicted]])
    bounds = venn_probabilities(np.array([True]), size, right, np.array([mass]))
    found = category_shares(decided(counts, float(bounds.upweight[0]), predicted), counts)
    assert found is not None
    assert (found.lower[predicted], found.upper[predicted]) == (bounds.lower[0], bounds.upper[0])
    assert found.interval[0] <= (0 if found.right is None else found.right) <= found.interval[1]


def test_a_thousand_points_tell_a_share_to_two_hundredths() -> None:
    found = category_shares(decided([900, 100], 1.0), [900, 100])
    assert found is not None
    assert found.interval == pytest.approx((0.880, 0.917), abs=5e-4)


@pytest.mark.parametrize(
    ("stored", "counts"),
    [
        (decided([9, 1], 1.0), None),
        (decided([0, 0], None), [0, 0]),
        ({"upweight": 1.0, "predicted": 0}, [0, 0]),
    ],
)
def test_without_a_known_category_nothing_is_said(stored: dict[str, Any], counts: list[int] | None) -> None:
    assert category_shares(stored, counts) is None
