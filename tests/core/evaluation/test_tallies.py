"""Shares as whole numbers: hand-computed cases, and what holds for any points."""

from decimal import Decimal
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.tallies import (
    MINIMUM_TO_JUDGE,
    Grouping,
    Tally,
    Verdict,
    tally_groupings,
    wilson_interval,
)
from venn_admit.errors import InvalidInputError

ALPHA = Decimal("0.1")
NORMAL_QUANTILE = 1.959963984540054


class TestTally:
    def test_shares(self) -> None:
        tally = Tally(correct=3, count=4, total=16)
        assert (tally.share, tally.portion) == (0.75, 0.25)

    def test_nothing_admitted_has_no_share(self) -> None:
        assert isnan(Tally(0, 0, 5).share)
        assert Tally(0, 0, 5).portion == 0

    @pytest.mark.parametrize(
        ("correct", "count", "alpha", "expected"),
        [
            # Wilson's interval of 35 of 35 starts at .901, that of 34 of 34 at .898.
            (35, 35, "0.1", Verdict.MET),
            (34, 34, "0.1", Verdict.CANNOT_TELL),
            # That of 3 of 5 in 20 ends at .781; that of 16 in 20 at .919.
            (12, 20, "0.1", Verdict.MISSED),
            (16, 20, "0.1", Verdict.CANNOT_TELL),
            # Exactly the promised share is what one sample in two falls short of.
            (90_000, 100_000, "0.1", Verdict.CANNOT_TELL),
            (90_200, 100_000, "0.1", Verdict.MET),
            (89_800, 100_000, "0.1", Verdict.MISSED),
            (MINIMUM_TO_JUDGE - 1, MINIMUM_TO_JUDGE - 1, "0.9", Verdict.CANNOT_TELL),
            (0, MINIMUM_TO_JUDGE - 1, "0.1", Verdict.CANNOT_TELL),
            (0, 0, "0.1", Verdict.CANNOT_TELL),
        ],
    )
    def test_the_interval_decides(self, correct: int, count: int, alpha: str, expected: Verdict) -> None:
        assert Tally(correct, count, 100_000).verdict(Decimal(alpha)) is expected

    def test_an_interval_that_is_exactly_the_target_meets_it(self) -> None:
        # 0.58 is no binary number, and 58 / 100 rounds to below it.
        assert Tally(58, 100, 100, 20, (58 / 100, 58 / 100)).verdict(Decimal("0.42")) is Verdict.MET

    def test_words(self) -> None:
        assert [verdict.words for verdict in Verdict] == ["met", "missed", "cannot tell"]


class TestMoreToSettle:
    @given(st.integers(1, 400), st.integers(0, 400), st.sampled_from(["0.05", "0.1", "0.25"]))
    def test_so_many_more_settle_it_and_one_less_does_not(self, correct: int, wrong: int, alpha: str) -> None:
        tally = Tally(correct, correct + wrong, 1000)
        more = tally.more_to_settle(Decimal(alpha))
        assert (more == 0) is (tally.verdict(Decimal(alpha)) is not Verdict.CANNOT_TELL)
        if more:
            target, n = 1 - float(alpha), tally.count + more
            low, high = wilson_interval([tally.share * n, tally.share * (n - 1)], [n, n - 1])
            assert low[0] >= target - 1e-9 or high[0] < target + 1e-9
            assert n == MINIMUM_TO_JUDGE or (low[1] < target <= high[1])

    def test_never_by_points_that_are_not_there_or_right_on_the_target(self) -> None:
        assert Tally(0, 0, 5).more_to_settle(ALPHA) is None
        assert Tally(90, 100, 100).more_to_settle(ALPHA) is None
        assert Tally(90_001, 100_000, 100_000).more_to_settle(ALPHA) is None

    def test_of_documents(self) -> None:
        # Half the width, which four times as many documents have, leaves .9 out.
        assert Tally(95, 100, 100, 50, (0.85, 0.99)).more_to_settle(ALPHA) == pytest.approx(150, abs=1)
        assert Tally(85, 100, 100, 50, (0.80, 0.95)).more_to_settle(ALPHA) == pytest.approx(150, abs=1)
        # All are right: Wilson's interval of as many trials as there are documents.
        assert Tally(100, 100, 100, 20, (0.84, 1.0)).more_to_settle(ALPHA) == Tally(20, 20, 20).more_to_settle(ALPHA)


class TestWilson:
    def test_by_hand(self) -> None:
        # None and all of 10: the far end is z^2 / (n + z^2) away.
        squared = NORMAL_QUANTILE**2
        low, high = wilson_interval([0, 10], [10, 10])
        assert low == pytest.approx([0, 10 / (10 + squared)])
        assert high == pytest.approx([squared / (10 + squared), 1])

    def test_no_point_says_nothing(self) -> None:
        assert [float(end) for end in wilson_interval(0, 0)] == [0.0, 1.0]

    @given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_holds_the_share_and_solves_its_equation(self, pair: tuple[int, int]) -> None:
        correct, count = pair
        share = correct / count
        low, high = (float(end) for end in wilson_interval(correct, count))
        assert 0 <= low <= share <= high <= 1
        for end in (low, high):
            assert abs(share - end) == pytest.approx(NORMAL_QUANTILE * sqrt(end * (1 - end) / count), abs=1e-7)

    @given(st.integers(1, 500), st.integers(1, 500))
    def test_is_symmetric_and_narrows_with_less_confidence(self, correct: int, wrong: int) -> None:
        low, high = wilson_interval(correct, correct + wrong)
        mirrored_low, mirrored_high = wilson_interval(wrong, correct + wrong)
        assert float(low) == pytest.approx(1 - float(mirrored_high))
        assert float(high) == pytest.approx(1 - float(mirrored_low))
        inner_low, inner_high = wilson_interval(correct, correct + wrong, confidence=0.5)
        assert low < inner_low < inner_high < high

    @pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
    def test_refuses_no_confidence(self, confidence: float) -> None:
        with pytest.raises(InvalidInputError, match="confidence"):
            wilson_interval(1, 2, confidence)


class TestTallyGroupings:
    def test_by_hand(self) -> None:
        cell = np.array([0, 1, 1, -1, 1])
        correct = np.array([1, 1, 0, 1, 0], np.bool_)
        other = Grouping(np.array([-1, -1, 0, 0, 0]), ~correct, 1)
        assert tally_groupings([Grouping(cell, correct, 3), other], None) == [
            (Tally(1, 1, 5), Tally(1, 3, 5), Tally(0, 0, 5)),
            (Tally(2, 3, 5),),
        ]

    def test_documents_that_hold_the_points_are_counted(self) -> None:
        documents = Documents(np.array([0, 0, 1, 1, 2]), 3)
        cell = np.array([0, 0, 0, 1, -1])
        ((first, second),) = tally_groupings([Grouping(cell, np.array([1, 0, 1, 1, 1], np.bool_), 2)], documents)
        assert (first.documents, second.documents) == (2, 1)

    def test_few_documents_are_few_however_many_points_they_hold(self) -> None:
        documents = Documents(np.repeat(np.arange(MINIMUM_TO_JUDGE - 1), 100), MINIMUM_TO_JUDGE - 1)
        n = documents.code.size
        ((tally,),) = tally_groupings([Grouping(np.zeros(n, np.int64), np.ones(n, np.bool_), 1)], documents)
        assert tally.count == 900
        assert tally.verdict(ALPHA) is Verdict.CANNOT_TELL

    def test_where_all_are_right_the_documents_are_the_trials(self) -> None:
        documents = Documents(np.repeat(np.arange(20), 5), 20)
        for correct in (True, False):
            ((tally,),) = tally_groupings([Grouping(np.zeros(100, np.int64), np.full(100, correct), 1)], documents)
            low, high = wilson_interval(20 * correct, 20)
            assert tally.interval == (float(low), float(high))

    def test_tokens_that_agree_within_documents_widen_the_interval(self) -> None:
        correct = np.repeat(np.arange(40) % 4 > 0, 25)
        documents = Documents(np.repeat(np.arange(40), 25), 40)
        cell = np.zeros(1000, np.int64)
        ((clustered,),) = tally_groupings([Grouping(cell, correct, 1)], documents)
        ((independent,),) = tally_groupings([Grouping(cell, correct, 1)], None)
        width = clustered.interval[1] - clustered.interval[0]
        # 40 documents instead of 1,000 points: five times as wide.
        assert width == pytest.approx(5 * (independent.interval[1] - independent.interval[0]), rel=0.15)

    @settings(max_examples=30, deadline=None)  # each draws a thousand samples
    @given(st.lists(st.tuples(st.integers(-1, 2), st.booleans(), st.integers(0, 6)), min_size=1, max_size=40))
    def test_an_interval_holds_its_share(self, rows: list[tuple[int, bool, int]]) -> None:
        cell, correct, code = (np.array(column) for column in zip(*rows, strict=True))
        (tallies,) = tally_groupings([Grouping(cell, correct.astype(np.bool_), 3)], Documents(code, 7))
        for tally in tallies:
            low, high = tally.interval
            assert 0 <= low <= high <= 1
            assert tally.count == 0 or low <= tally.share <= high
