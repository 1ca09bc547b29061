"""Recent traffic against mc of a calibration by Venn-Abers: every point is in one part, and a shift shows."""

from dataclasses import replace

import numpy as np
import pytest

from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.cells import CellView, compare_cells, traffic_parts
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.split_names import Split
from venn_admit.core.types import NO_MATCH_COUNT, Approximation, BoolArray

CLASSES, EDGES = 3, (0, 1, 4)


def drawn(generator: np.random.Generator, count: int, *, moved: float = 0.0) -> tuple[CellView, BoolArray]:
    """Points whose predictions are right as often as their scores say; moved: how much lower scores are."""
    score = np.clip(generator.beta(6, 2, count) - moved, 0.01, 0.99)
    points = CellPoints(generator.integers(0, CLASSES, count), generator.integers(0, 6, count), score)
    return CellView(points, generator.gamma(9.0, 0.3, count), score >= 0.8), generator.random(count) < score


def decided(count: int) -> DecidedPoints:
    zeros = np.zeros(count, dtype=np.int64)
    always = np.full(count, True)
    return DecidedPoints(
        exemplar_ids=np.arange(count),
        calibration_ids=zeros,
        weighted=~always,
        require_full_match=~always,
        predicted=zeros,
        approximation=Approximation(np.zeros((count, CLASSES)), zeros, zeros, np.zeros(count)),
        reason=zeros - 1,
        comparable=always,
        label=zeros - 1,
        is_random=~always,
        seen_count=0,
    )


@pytest.mark.parametrize(("moved", "unlike"), [(0.0, False), (0.3, True)])
def test_a_shift_of_the_score_is_found_and_chance_is_not(moved: float, unlike: bool) -> None:
    generator = np.random.default_rng(3)
    for _ in range(20):
        mc, _ = drawn(generator, 1500)
        recent, _ = drawn(generator, 600, moved=moved)
        found = compare_cells(mc, None, recent, decided(600), None)
        assert found is not None
        assert (found.reference, found.points, list(found.shifts)) == (Split.MC, 600, ["score", "q", "d"])
        assert found.is_unlike == unlike
        assert found.shifts["score"].is_large == unlike
        assert not found.shifts["d"].is_large
        assert found.shares["admitted"].calibrated.share == mc.admitted.mean()
        assert found.shares["admitted"].recent.share == recent.admitted.mean()


def test_points_of_one_document_count_as_little_as_they_are_worth() -> None:
    generator = np.random.default_rng(4)
    mc, _ = drawn(generator, 1500)
    recent, _ = drawn(generator, 600, moved=0.3)
    found = compare_cells(mc, None, recent, decided(600), Documents(np.arange(600) // 100, 6))
    assert found is not None
    assert not found.is_unlike


def test_without_comparable_points_there_is_no_comparison() -> None:
    mc, right = drawn(np.random.default_rng(5), 100)
    nothing = replace(decided(10), comparable=np.full(10, False))
    assert compare_cells(mc, None, None, nothing, None) is None
    parts = traffic_parts(mc, right, None, class_count=CLASSES, match_edges=EDGES)
    assert {found.recent for found in parts} == {0}


def test_every_point_is_in_one_part_of_each_kind() -> None:
    generator = np.random.default_rng(6)
    mc, right = drawn(generator, 1000)
    recent, _ = drawn(generator, 300, moved=0.1)
    parts = traffic_parts(mc, right, recent, class_count=CLASSES, match_edges=EDGES)
    for kind in ("score", "q", "d"):
        mine = [found for found in parts if found.kind == kind]
        assert sum(found.calibrated for found in mine) == 1000
        assert sum(found.recent for found in mine) == 300
        assert sum(found.right for found in mine) == right.sum()
        assert sum(found.admitted for found in mine) == mc.admitted.sum()
        assert sum(found.recent_admitted for found in mine) == recent.admitted.sum()
    assert mc.distance is not None
    for found in parts:
        within = {"score": mc.points.score, "q": mc.points.match_count, "d": mc.distance}[found.kind]
        of_class = np.full(1000, True) if found.predicted is None else mc.points.predicted == found.predicted
        assert found.calibrated == (of_class & (within >= found.low) & (within < found.high)).sum()
    for c in range(CLASSES):
        sizes = [found.calibrated for found in parts if found.kind == "score" and found.predicted == c]
        assert len(sizes) == 4
        assert max(sizes) - min(sizes) <= 2


def test_a_class_without_points_has_one_part() -> None:
    mc, right = drawn(np.random.default_rng(7), 50)
    none_of_two = CellView(replace(mc.points, predicted=mc.points.predicted % 2), mc.distance, mc.admitted)
    parts = traffic_parts(none_of_two, right, None, class_count=CLASSES, match_edges=EDGES)
    (only,) = (found for found in parts if found.predicted == 2)
    assert (only.low, only.high, only.calibrated) == (-np.inf, np.inf, 0)


def test_without_vectors_points_are_compared_by_their_scores_alone() -> None:
    generator = np.random.default_rng(8)
    mc, right = drawn(generator, 1000)
    recent, _ = drawn(generator, 300, moved=0.1)
    bare, bare_recent = (
        CellView(replace(view.points, match_count=np.full(len(view.admitted), NO_MATCH_COUNT)), None, view.admitted)
        for view in (mc, recent)
    )
    whole = compare_cells(mc, None, recent, decided(300), None)
    found = compare_cells(bare, None, bare_recent, decided(300), None)
    assert whole is not None
    assert found is not None
    assert list(found.shifts) == ["score"]
    assert found.shifts["score"].test == whole.shifts["score"].test
    assert found.shares == whole.shares
    for ours, theirs in ((recent, bare_recent), (None, None)):
        parts = traffic_parts(mc, right, ours, class_count=CLASSES, match_edges=EDGES)
        assert traffic_parts(bare, right, theirs, class_count=CLASSES, match_edges=None) == tuple(
            part for part in parts if part.kind == "score"
        )
