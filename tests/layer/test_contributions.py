"""What carries a prediction, as exemplars keep it: bounded, adding up, and believed only if it does."""

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from venn_admit.core.types import FloatArray
from venn_admit.layer.contributions import (
    ATTRIBUTE,
    MOST_TOKENS,
    Contributions,
    contributions_in,
    own_contributions,
    sum_rows,
    without_contributions,
)

RECORD = Contributions.of_tokens("spam", "ham", 0.5, np.array([0.25, -2.0, 0.0, 2.5]), ("a", "b", "c", "d"))


def finite(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most, allow_nan=False)


@given(arrays("float64", st.integers(1, 30), elements=finite(-1e4, 1e4)), finite(-100, 100))
def test_a_record_adds_up_as_it_is_stored_and_as_it_is_shown(shares: FloatArray, intercept: float) -> None:
    made = Contributions.of_tokens("spam", "ham", intercept, shares, tuple(f"t{place}" for place in range(len(shares))))
    assert made.sums_up()
    assert made.margin == pytest.approx(intercept + math.fsum(shares), abs=1e-5)
    assert len(made.tokens) <= MOST_TOKENS
    assert len(made.tokens) + made.rest_count == len(shares)
    amounts = [abs(share.contribution) for share in made.tokens]
    assert amounts == sorted(amounts, reverse=True)
    assert all(amounts)
    for share in made.tokens:
        assert (share.token, share.contribution) == (f"t{share.position}", round(float(shares[share.position]), 6))
    *parts, total = sum_rows(made)
    assert sum(Decimal(row.figure) for row in parts) == Decimal(total.figure)
    assert contributions_in(json.loads(json.dumps({ATTRIBUTE: made.as_attribute()})), "spam") == made


def test_a_record_is_small_whatever_the_tokens_are() -> None:
    made = Contributions.of_tokens("spam", "ham", 0.0, np.arange(1.0, 10_001.0), ("x" * 100_000,) * 10_000)
    assert len(json.dumps(made.as_attribute())) < 2000
    assert made.rest_count == 10_000 - MOST_TOKENS


def test_tokens_whose_texts_are_unknown_are_named_by_their_places() -> None:
    made = Contributions.of_tokens("spam", "ham", 0.0, np.array([0.5, 2.0]), ())
    assert [row.name for row in sum_rows(made)] == ["at 1", "at 0", "intercept", "margin over ham"]
    assert made.in_short(1) == "at 1 +2.000 (over ham)"


def test_what_speaks_for_the_class_is_told_in_short() -> None:
    assert RECORD.in_short(3) == "d +2.500, a +0.250 (over ham)"
    assert [share.token for share in RECORD.tokens] == ["d", "b", "a"]
    assert (RECORD.margin, RECORD.rest, RECORD.rest_count) == (1.25, 0.0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"margin": 1.26},
        {"margin": math.nan},
        {"margin": 10**400},
        {"margin": "1"},
        {"class": None},
        {"runner_up": None},
        {"runner_up": "spam"},
        {"tokens": "all"},
        {"tokens": [*RECORD.as_attribute()["tokens"], {"position": 3}]},
        {"tokens": [{"position": 3, "token": ["<b>"], "contribution": 0.0}]},
        {"tokens": [{"position": 0, "token": "a", "contribution": 0.0}] * (MOST_TOKENS + 1)},
        {"rest": math.inf, "intercept": -math.inf},
        {"rest": 1e308, "intercept": 1e308},
        {"rest_count": None},
        {"rest_count": 0, "rest": 0.25, "intercept": 0.25},
    ],
)
def test_what_is_no_record_stays_an_attribute_like_others(changes: dict[str, Any]) -> None:
    assert contributions_in({ATTRIBUTE: RECORD.as_attribute()}, "spam") == RECORD
    attributes = {ATTRIBUTE: RECORD.as_attribute() | changes, "text": "t"}
    assert contributions_in(attributes, "spam") is None
    assert without_contributions(attributes, None) == attributes
    assert without_contributions({ATTRIBUTE: RECORD.as_attribute(), "text": "t"}, RECORD) == {"text": "t"}


@pytest.mark.parametrize(
    ("class_names", "logits", "is_own"),
    [
        (("ham", "spam"), (-1.0, 0.25), True),
        (("ham", "spam"), (-1.0, 0.2500001), True),
        (("ham", "spam"), (-1.0, 0.2502), False),
        (("spam", "ham"), (-1.0, 0.25), False),
        (("ham", "scam"), (-1.0, 0.25), False),
        (("ham", "spam"), (0.35, 0.25), False),
        (("ham", "spam", "scam"), (-1.0, 0.25, -1.0), True),
        (("ham", "spam", "scam"), (-1.0, 0.25, -0.9), False),
        (("eggs", "spam"), (-1.0, 0.25), False),
    ],
)
def test_a_record_of_another_prediction_is_not_believed(
    class_names: tuple[str, ...], logits: tuple[float, ...], is_own: bool
) -> None:
    found = own_contributions({ATTRIBUTE: RECORD.as_attribute()}, class_names, logits)
    assert found == (RECORD if is_own else None)


def test_of_a_neighbour_the_class_is_compared_alone() -> None:
    attributes = {ATTRIBUTE: RECORD.as_attribute()}
    assert contributions_in(attributes, "spam") == RECORD
    assert contributions_in(attributes, "ham") is None
    assert contributions_in(attributes, None) is None
