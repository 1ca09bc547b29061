"""Points without vectors have no q: one bin holds them, the network's score ranks them, and nothing else can."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from venn_admit.core.calibrators.settings import ScoreKind, make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex, bins_of
from venn_admit.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.core.content import content_digests
from venn_admit.core.types import NO_MATCH_COUNT
from venn_admit.errors import InvalidInputError

LOGITS = np.random.default_rng(5).normal(size=(60, 3)).astype(np.float32)


def points() -> CellPoints:
    return scored_points(ScoreKind.NETWORK, None, LOGITS, None, neighbour_count=None)


def test_the_score_is_that_of_the_network() -> None:
    found = points()
    assert found.predicted.tolist() == LOGITS.argmax(axis=1).tolist()
    np.testing.assert_array_equal(found.score, network_score(LOGITS))
    assert set(found.match_count.tolist()) == {NO_MATCH_COUNT}


def test_no_other_score_ranks_them() -> None:
    with pytest.raises(AssertionError, match="needs"):
        scored_points(ScoreKind.RELIABILITY, None, LOGITS, None, neighbour_count=None)


def test_one_bin_holds_them_and_decides_as_with_any_q() -> None:
    bare = points()
    assert set(bins_of(bare, (0,)).tolist()) == {0}
    right = np.arange(60) % 3 > 0
    with_q = CellPoints(bare.predicted, np.arange(60) % 4, bare.score)
    found, expected = (
        VennAbersIndex(one, right, class_count=3).bounds(one.take(np.arange(59, -1, -1))) for one in (bare, with_q)
    )
    np.testing.assert_array_equal(found.lower, expected.lower)
    np.testing.assert_array_equal(found.upper, expected.upper)


def test_several_bins_cannot_hold_them() -> None:
    with pytest.raises(InvalidInputError, match=r"q must be at least 0, .* got -1"):
        bins_of(points(), (0, 2))


def test_the_settings_are_those_of_the_network() -> None:
    for asked in ({}, {"score": "auto"}, {"score": "network"}):
        settings = make_venn_abers_settings(3, None, alpha=Decimal("0.2"), **asked)  # type: ignore[arg-type]
        assert (settings.score, settings.q_bins) == (ScoreKind.NETWORK, (0,))


@pytest.mark.parametrize("asked", [{"score": "reliability"}, {"q_bins": (0, 1)}])
def test_settings_that_need_neighbours_are_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="neither bins of q nor a reliability score"):
        make_venn_abers_settings(3, None, **asked)


def test_their_content_is_other_than_with_any_vector() -> None:
    bare, another, alone = content_digests(None, LOGITS[[0, 1, 0]], ["a", "a", None])
    assert [bare] == content_digests(None, LOGITS[:1].copy(), ["a"])
    with_zeros = [content_digests(np.zeros((1, size), dtype=np.float32), LOGITS[:1], ["a"])[0] for size in (1, 3)]
    assert len({bare, another, alone, *with_zeros}) == 5
