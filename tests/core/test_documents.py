"""Resampled documents: the counts of whole documents, and intervals that reach the truth as often as they say."""

import numpy as np
import pytest

from venn_admit.core.documents import Documents, documents_of, percentile_interval
from venn_admit.core.evaluation.tallies import Grouping, tally_groupings
from venn_admit.errors import InvalidInputError


class TestDocumentsOf:
    def test_codes_follow_the_ids(self) -> None:
        documents = documents_of(["b", "a", "b", "c"])
        assert documents is not None
        assert (documents.code.tolist(), documents.count) == ([1, 0, 1, 2], 3)

    @pytest.mark.parametrize("keys", [["a", "b"], ["a"], []])
    def test_points_are_independent_without_shared_documents(self, keys: list[str]) -> None:
        assert documents_of(keys) is None


class TestResampledCounts:
    def test_documents_are_drawn_whole_and_as_many_as_there_are(self) -> None:
        # Document 0 has two points in cell 0; document 1 one in cell 0 and three in cell 1.
        documents = Documents(np.array([0, 0, 1, 1, 1, 1]), 2)
        counts = documents.resampled_counts(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), 2, resamples=200)
        assert {tuple(row) for row in counts.tolist()} == {(4.0, 0.0), (3.0, 3.0), (2.0, 6.0)}

    def test_the_same_documents_whatever_the_cells(self) -> None:
        documents = Documents(np.repeat(np.arange(10), 3), 10)
        every, one = np.arange(30), np.zeros(30, np.int64)
        whole = documents.resampled_counts(every, documents.code, 10)
        assert (whole.sum(axis=1) == documents.resampled_counts(every, one, 1)[:, 0]).all()
        assert not np.array_equal(whole, documents.resampled_counts(every, documents.code, 10, seed=1))

    def test_documents_of_one_point_are_drawn_as_points_are(self) -> None:
        documents = Documents(np.arange(400), 400)
        counts = documents.resampled_counts(np.arange(400), np.repeat([0, 1], [100, 300]), 2)
        assert (counts.sum(axis=1) == 400).all()
        # Binomial of 400 trials with probability 1/4.
        assert counts[:, 0].std() == pytest.approx(np.sqrt(400 * 0.25 * 0.75), rel=0.1)


def test_percentile_interval_leaves_out_what_is_not_known() -> None:
    values = np.column_stack([np.r_[np.arange(101.0), np.nan], np.full(102, np.nan)])
    low, high = percentile_interval(values, confidence=0.9)
    assert [low[0], high[0]] == pytest.approx([5, 95])
    assert np.isnan([low[1], high[1]]).all()


def test_percentile_interval_refuses_no_confidence() -> None:
    with pytest.raises(InvalidInputError, match="confidence"):
        percentile_interval(np.zeros((3, 1)), 95.0)


def test_intervals_reach_the_truth_about_as_often_as_they_say() -> None:
    """Tokens of a document share a fate: Wilson's interval would miss the truth most of the time."""
    random = np.random.default_rng(5)
    share, documents_count, tokens, hits, wilson_hits, draws = 0.8, 60, 30, 0, 0, 200
    documents = Documents(np.repeat(np.arange(documents_count), tokens), documents_count)
    cell = np.zeros(documents.code.size, np.int64)
    for _ in range(draws):
        chance = random.beta(share * 4, (1 - share) * 4, documents_count)  # of each document
        correct = random.random(documents.code.size) < np.repeat(chance, tokens)
        ((clustered,),) = tally_groupings([Grouping(cell, correct, 1)], documents)
        ((independent,),) = tally_groupings([Grouping(cell, correct, 1)], None)
        hits += clustered.interval[0] <= share <= clustered.interval[1]
        wilson_hits += independent.interval[0] <= share <= independent.interval[1]
    assert hits / draws >= 0.9
    assert wilson_hits / draws <= 0.75
