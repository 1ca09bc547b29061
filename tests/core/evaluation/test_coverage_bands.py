"""Intervals along coverage curves are those of the points that are admitted up to there."""

import numpy as np
import pytest

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.coverage_bands import BAND_PLACES, coverage_bands
from venn_admit.core.evaluation.curves import coverage_curve
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, Grouping, tally_groupings, wilson_interval
from venn_admit.core.types import BoolArray, FloatArray
from venn_admit.errors import InvalidInputError

POINTS = 200


def points() -> tuple[FloatArray, BoolArray, list[BoolArray]]:
    """Scores with ties and missing ones; a group of many points, one of few, and one that is never admitted."""
    generator = np.random.default_rng(3)
    score = generator.integers(0, 60, POINTS) / 60
    score[::7] = np.nan
    group = generator.integers(0, 2, POINTS)
    groups = [group == 0, np.arange(POINTS) < MINIMUM_TO_JUDGE - 1, np.isnan(score)]
    return score, generator.random(POINTS) < score, groups


def test_wilson_where_points_are_independent() -> None:
    score, correct, groups = points()
    band, few, none = coverage_bands(score, correct, groups, None)
    curve = coverage_curve(score[groups[0]], correct[groups[0]])
    enough = curve.count >= MINIMUM_TO_JUDGE
    assert 2 < band.count.size <= BAND_PLACES
    assert (band.count[0], band.count[-1]) == (curve.count[enough][0], curve.count[-1])
    place = np.searchsorted(curve.count, band.count)
    assert curve.count[place].tolist() == band.count.tolist()
    low, high = wilson_interval(curve.correct[place], band.count)
    assert (band.low.tolist(), band.high.tolist()) == (low.tolist(), high.tolist())
    for empty in (few, none):
        assert empty.count.size == empty.low.size == empty.high.size == 0


def test_resampled_documents_give_the_interval_that_the_tables_have() -> None:
    score, correct, groups = points()
    documents = Documents(np.arange(POINTS) // 4, POINTS // 4)
    band, few, none = coverage_bands(score, correct, groups, documents)
    assert few.count.size == none.count.size == 0
    for place in (0, band.count.size // 2, -1):
        ordered = np.sort(score[groups[0] & ~np.isnan(score)])[::-1]
        admitted = groups[0] & (score >= ordered[band.count[place] - 1])
        ((tally,),) = tally_groupings([Grouping(np.where(admitted, 0, -1), correct, 1)], documents)
        assert tally.count == band.count[place]
        assert not tally.is_few
        assert (band.low[place], band.high[place]) == pytest.approx(tally.interval)


def test_few_documents_have_no_interval_however_many_points_they_hold() -> None:
    score, correct, groups = points()
    too_few = MINIMUM_TO_JUDGE - 1
    (band, *_) = coverage_bands(score, correct, groups, Documents(np.arange(POINTS) % too_few, too_few))
    assert band.count.size == 0


def test_the_order_of_the_points_does_not_matter() -> None:
    score, correct, groups = points()
    documents = Documents(np.arange(POINTS) // 4, POINTS // 4)
    shuffled = np.random.default_rng(0).permutation(POINTS)
    band, *_ = coverage_bands(score, correct, groups, documents)
    again, *_ = coverage_bands(
        score[shuffled], correct[shuffled], [groups[0][shuffled]], Documents(documents.code[shuffled], documents.count)
    )
    assert (again.count.tolist(), again.low.tolist(), again.high.tolist()) == (
        band.count.tolist(),
        band.low.tolist(),
        band.high.tolist(),
    )


def test_refuses_a_group_of_another_length() -> None:
    with pytest.raises(InvalidInputError, match="group 0 must have 3 rows"):
        coverage_bands(np.zeros(3), np.ones(3, np.bool_), [np.ones(2, np.bool_)], None)
