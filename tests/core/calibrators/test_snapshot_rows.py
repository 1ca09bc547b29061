"""Which rows of a snapshot differ from those of the snapshot before."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, changed_rows, join_rows, rows_of_split
from venn_admit.core.types import CalibrationPoints

CLASS_COUNT = 11  # more than a byte of a set


def rows(ids: list[int], seed: int = 0) -> CalibrationRows:
    """Half of the points in mc, the rest in vp."""
    n, rng = len(ids), np.random.default_rng(seed)
    points = CalibrationPoints(
        label=rng.integers(0, CLASS_COUNT, n),
        predicted=rng.integers(0, CLASS_COUNT, n),
        match_count=rng.integers(0, 26, n),
        distance=rng.random(n),
        score=rng.random(n),
    )
    sets = rng.random((n, CLASS_COUNT)) < 0.5
    parts = []
    for part, included in ((slice(0, n // 2), None), (slice(n // 2, n), sets[n // 2 :])):
        of_part = CalibrationPoints(
            label=points.label[part],
            predicted=points.predicted[part],
            match_count=points.match_count[part],
            distance=points.distance[part],
            score=points.score[part],
        )
        parts.append(
            rows_of_split(np.array(ids[part]), of_part, of_part.match_count // 5, included, class_count=CLASS_COUNT)
        )
    return join_rows(parts)


def changes(stored: CalibrationRows, incoming: CalibrationRows) -> tuple[list[int], list[int]]:
    """The exemplars closed, and those opened."""
    found = changed_rows(stored, incoming)
    return sorted(found.closed_ids.tolist()), sorted(incoming.exemplar_ids[found.opened].tolist())


def test_all_are_new_where_none_are_stored() -> None:
    assert changes(rows([]), rows([5, 3, 9, 1])) == ([], [1, 3, 5, 9])
    assert changes(rows([5, 3, 9, 1]), rows([])) == ([1, 3, 5, 9], [])


def test_the_same_rows_in_another_order_are_unchanged() -> None:
    stored = rows([5, 3, 9, 1])
    order = np.array([2, 0, 3, 1])
    turned = CalibrationRows(
        class_count=CLASS_COUNT,
        exemplar_ids=stored.exemplar_ids[order],
        in_vp=stored.in_vp[order],
        points=CalibrationPoints(
            label=stored.points.label[order],
            predicted=stored.points.predicted[order],
            match_count=stored.points.match_count[order],
            distance=stored.points.distance[order],
            score=stored.points.score[order],
        ),
        bins=stored.bins[order],
        packed_sets=stored.packed_sets[order],
    )
    assert changes(stored, turned) == ([], [])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("label", CLASS_COUNT),
        ("predicted", CLASS_COUNT),
        ("match_count", 26),
        ("distance", np.nextafter(rows([5, 3, 9, 1]).points.distance[2], 1)),
        ("score", -0.0),
    ],
)
def test_a_value_that_differs_in_a_bit(column: str, value: Any) -> None:
    stored = rows([5, 3, 9, 1])
    if value == 0.0:
        stored.points.score[2] = 0.0
    values = getattr(stored.points, column).copy()
    values[2] = value
    incoming = replace(stored, points=replace(stored.points, **{column: values}))
    assert changes(stored, incoming) == ([9], [9])


@pytest.mark.parametrize("column", ["in_vp", "bins"])
def test_a_split_or_bin_that_differs(column: str) -> None:
    stored = rows([5, 3, 9, 1])
    values = getattr(stored, column).copy()
    values[1] = not values[1] if column == "in_vp" else values[1] + 1
    assert changes(stored, replace(stored, **{column: values})) == ([3], [3])


@pytest.mark.parametrize("number", [0, 7, 8, CLASS_COUNT - 1])
def test_a_set_that_differs_in_a_class(number: int) -> None:
    stored = rows([5, 3, 9, 1])
    sets = np.unpackbits(stored.packed_sets, axis=1, count=CLASS_COUNT)
    sets[3, number] ^= 1
    assert changes(stored, replace(stored, packed_sets=np.packbits(sets, axis=1))) == ([1], [1])


def test_those_that_come_and_go() -> None:
    stored = rows([5, 3, 9, 1])
    found = changed_rows(join_rows([stored, rows([20, 21])]), join_rows([rows([10, 11], seed=1), stored]))
    assert sorted(found.closed_ids.tolist()) == [20, 21]
    assert found.opened.tolist() == [0, 1]
