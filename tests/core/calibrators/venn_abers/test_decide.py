"""Settings of Venn-Abers, and decisions by thresholds on p0."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.calibrators.certified.policies import Bounded, Policy
from venn_admit.core.calibrators.settings import ScoreKind, make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import Bounds
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold, select, select_by_policy
from venn_admit.core.reasons import Reason
from venn_admit.core.types import BoolArray
from venn_admit.errors import InvalidInputError


def test_defaults() -> None:
    made = make_venn_abers_settings(3, 25, alpha=Decimal("0.05"))
    assert made.thresholds == (Decimal("0.95"),) * 3
    assert (made.q_bins, made.score) == ((0,), None)
    assert make_venn_abers_settings(2, 25, score="network").score is ScoreKind.NETWORK


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_count": 1}, "at least 2 classes"),
        ({"alpha": Decimal(1)}, "strictly between 0 and 1"),
        ({"q_bins": (1,)}, "ascending lower edges"),
        ({"q_bins": (0, 26)}, "none above K = 25"),
        ({"thresholds": (Decimal("0.9"), Decimal("0.89"))}, "threshold of class 1 must be at least 1 - alpha = 0.9"),
        ({"thresholds": (Decimal("0.9"),)}, "each of 2 classes"),
        ({"score": "softmax"}, "must be auto, network or reliability; got softmax"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"class_count": 2, "neighbour_count": 25} | changes
    with pytest.raises(InvalidInputError, match=message):
        make_venn_abers_settings(**arguments)  # type: ignore[arg-type] # one refused argument at a time


@given(right=st.integers(0, 10**6), wrong=st.integers(0, 10**6), digits=st.integers(50, 9999))
def test_the_comparison_is_that_of_the_exact_numbers(right: int, wrong: int, digits: int) -> None:
    total = right + wrong + 1
    found = reaches_threshold(np.array([right / total]), np.array([0]), (Decimal(digits).scaleb(-4),))
    assert found.tolist() == [right * 10_000 >= digits * total]


def test_select() -> None:
    lower = np.array([0.9, 0.9, 0.95, 0.0])
    predicted = np.array([0, 1, 1, 0])
    found = select(Bounds(lower, np.ones(4)), predicted, (Decimal("0.9"), Decimal("0.95")))
    assert found.decision.tolist() == [0, -1, 1, -1]
    below = Reason.PROBABILITY_BELOW_THRESHOLD.code
    assert found.reason.tolist() == [-1, below, -1, below]


def test_a_class_without_threshold_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"predicted must lie in \[0, 1\), got 1 in row 0"):
        reaches_threshold(np.array([0.9]), np.array([1]), (Decimal("0.9"),))


@pytest.mark.parametrize("full_match", [None, np.array([True, False, True, True])])
@pytest.mark.parametrize("bounded", Bounded)
def test_a_certified_policy_admits_by_what_it_bounds(full_match: BoolArray | None, bounded: Bounded) -> None:
    value, other = np.array([0.75, 0.9, np.nextafter(0.75, 0), 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    lower, score = (value, other) if bounded is Bounded.LOWER else (other, value)
    policy = Policy((0.75, None), bounded)
    found = select_by_policy(Bounds(lower, np.ones(4)), score, np.array([0, 0, 0, 1]), policy, full_match=full_match)
    below = {Bounded.LOWER: Reason.PROBABILITY_BELOW_THRESHOLD, Bounded.SCORE: Reason.SCORE_BELOW_THRESHOLD}[bounded]
    second = (0, None) if full_match is None else (-1, Reason.MATCH_COUNT_BELOW_K)
    assert found.decision.tolist() == [0, second[0], -1, -1]
    assert [Reason.of_code(code) for code in found.reason.tolist()] == [None, second[1], below, below]


def test_a_class_that_is_never_admitted_is_rejected_for_that() -> None:
    """A policy that does not say why, of a certificate from before it could, lets its decisions say what they said."""
    policy = Policy((0.75, None, None, None), withdrawn=(1,), uncertified=(2,))
    predicted, full_match = np.array([0, 0, 1, 2, 3]), np.array([True, True, False, False, True])
    score = np.array([0.7, 0.8, 1.0, 1.0, 1.0])
    found = select_by_policy(Bounds(score, np.ones(5)), score, predicted, policy, full_match=full_match)
    assert [Reason.of_code(code) for code in found.reason.tolist()] == [
        Reason.SCORE_BELOW_THRESHOLD,
        None,
        Reason.CERTIFICATE_WITHDRAWN,
        Reason.CLASS_NOT_CERTIFIED,
        Reason.SCORE_BELOW_THRESHOLD,
    ]


@pytest.mark.parametrize("full_match", [None, np.array([True, False])])
def test_without_a_certified_policy_nothing_is_admitted(full_match: BoolArray | None) -> None:
    bounds = Bounds(lower=np.array([1.0, 0.0]), upper=np.ones(2))
    found = select_by_policy(bounds, np.ones(2), np.array([0, 1]), None, full_match=full_match)
    assert found.decision.tolist() == [-1, -1]
    assert {Reason.of_code(code) for code in found.reason.tolist()} == {Reason.POLICY_NOT_CERTIFIED}
