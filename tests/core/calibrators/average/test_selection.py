"""Conformal selection against an independent computation and against its definition point by point."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.calibrators.average.policy import selection_threshold, wrong_from
from venn_admit.core.types import BoolArray, FloatArray

GOLDEN = Path(__file__).parents[3] / "golden" / "promises.npz"
TENTH = Decimal("0.1")
# Few different scores, so that they tie.
SCORES = st.lists(st.integers(0, 12).map(lambda number: number / 12), min_size=1, max_size=40)


def test_p_values_and_what_is_admitted_are_those_of_the_reference() -> None:
    golden = np.load(GOLDEN)
    score, wrong, batch = (golden[f"selection_{name}"] for name in ("cal_score", "cal_wrong", "score"))
    p_values = (1 + wrong_from(score[wrong], batch)) / (len(score) + 1)
    assert p_values == pytest.approx(golden["selection_p"], abs=0)
    threshold = selection_threshold(score[wrong], len(score), batch, TENTH, further=False)
    assert ((batch >= threshold) == golden["selection_admitted"]).all()
    assert 0 < golden["selection_admitted"].sum() < len(batch)


def selected(score: FloatArray, wrong: BoolArray, batch: FloatArray, alpha: Decimal) -> list[bool]:
    """Benjamini & Hochberg (1995) at alpha, as they write it, on p-values as fractions."""
    p_values = [Fraction(1 + sum(score[wrong] >= one), len(score) + 1) for one in batch]
    passed = [p for place, p in enumerate(sorted(p_values), 1) if p <= Fraction(alpha) * place / len(batch)]
    return [bool(passed) and p <= passed[-1] for p in p_values]


@given(score=SCORES, batch=SCORES, alpha=st.sampled_from([TENTH, Decimal("0.3"), Decimal("0.95")]), data=st.data())
def test_a_threshold_admits_what_the_procedure_selects(
    score: list[float], batch: list[float], alpha: Decimal, data: st.DataObject
) -> None:
    wrong = np.array(data.draw(st.lists(st.booleans(), min_size=len(score), max_size=len(score))))
    points, others = np.array(score), np.array(batch)
    expected = selected(points, wrong, others, alpha)
    threshold = selection_threshold(points[wrong], len(points), others, alpha, further=False)
    assert [threshold is not None and one >= threshold for one in batch] == expected
    shuffled = selection_threshold(points[wrong][::-1], len(points), np.sort(others), alpha, further=False)
    assert shuffled == threshold
    # A further point at or above its threshold is admitted by the procedure on the batch with it.
    further = selection_threshold(points[wrong], len(points), others, alpha, further=True)
    for one in {*batch, *score}:
        *_, last = selected(points, wrong, np.array([*batch, one]), alpha)
        assert last or further is None or one < further
        if one in batch:
            assert last == (further is not None and one >= further)


def test_counts_are_compared_exactly() -> None:
    """With alpha .1, nine labels without an error suffice, and 8 do not, though .1 is no float."""
    batch = np.ones(1000)
    assert selection_threshold(np.array([]), 9, batch, TENTH, further=True) == 1
    assert selection_threshold(np.array([]), 8, batch, TENTH, further=True) is None
    assert selection_threshold(np.array([]), 9, batch, Decimal("0.09999999999999999999"), further=True) is None
    assert selection_threshold(np.array([]), 9, np.array([]), TENTH, further=True) is None
