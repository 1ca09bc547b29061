"""The partition map: every point is in one cell, the one that its q and d say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.monitoring.partitions import PlacedPoints, map_rows, partition_map
from venn_admit.errors import InvalidInputError

K = 5
EDGES = np.array([1.0, 2.0, 3.0])


Point = tuple[int, float, bool, bool]


def placed(points: list[Point]) -> PlacedPoints:
    """Points of q, d, whether it is right and whether it is admitted."""
    return PlacedPoints(
        np.array([q for q, _, _, _ in points], dtype=np.int64),
        np.array([d for _, d, _, _ in points], dtype=np.float64),
        np.array([right for _, _, right, _ in points], dtype=np.bool_),
        np.array([admitted for *_, admitted in points], dtype=np.bool_),
    )


@given(
    st.lists(st.tuples(st.integers(0, K), st.floats(0, 4), st.booleans(), st.booleans()), max_size=30),
    st.lists(st.tuples(st.integers(0, K), st.floats(0, 4)), max_size=30),
)
def test_counts_are_those_of_each_cell(calibrated: list[Point], traffic: list[tuple[int, float]]) -> None:
    recent = np.array([q for q, _ in traffic], dtype=np.int64), np.array([d for _, d in traffic], dtype=np.float64)
    match_edges = map_rows((0,), K)
    found = partition_map(placed(calibrated), recent, match_edges=match_edges, neighbour_count=K, distance_edges=EDGES)
    ends = [-np.inf, *EDGES.tolist(), np.inf]
    for row in range(len(match_edges)):
        for column in range(4):

            def inside(q: int, d: float, row: int = row, column: int = column) -> bool:
                low, high = found.match_edges[row : row + 2]
                return low <= q < high and ends[column] <= d < ends[column + 1]

            own = [point for point in calibrated if inside(point[0], point[1])]
            place = row, column
            assert found.points[place] == len(own)
            assert found.right[place] == sum(right for _, _, right, _ in own)
            assert found.admitted[place] == sum(admitted for *_, admitted in own)
            assert found.traffic[place] == sum(inside(q, d) for q, d in traffic)
    assert (found.points.sum(), found.traffic.sum()) == (len(calibrated), len(traffic))


def test_arrays_of_other_lengths_are_refused() -> None:
    none = np.zeros(0, dtype=np.int64), np.zeros(0)
    points = replace(placed([(0, 1.0, True, True), (1, 1.0, True, True)]), distance=np.array([1.0]))
    with pytest.raises(InvalidInputError, match="distance"):
        partition_map(
            points,
            none,
            match_edges=(0,),
            neighbour_count=K,
            distance_edges=EDGES,
        )
