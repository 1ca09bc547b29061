"""Choosing K: every K is fitted as by itself, q is judged by pairs, and little is no reason for more neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.approximation.fit import fit_knn
from venn_admit.core.approximation.knn import approximate
from venn_admit.core.approximation.neighbour_counts import TriedCount, choose, separation, try_neighbour_counts
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Support
from venn_admit.errors import InvalidInputError

POINTS, SUPPORT = 80, 150


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30))
def test_separation_is_that_of_pairs(points: list[tuple[int, bool]]) -> None:
    right = [q for q, is_right in points if is_right]
    wrong = [q for q, is_right in points if not is_right]
    pairs = [(1.0 if r > w else 0.5 if r == w else 0.0) for r in right for w in wrong]
    found = separation(
        np.array([q for q, _ in points], dtype=np.int64), np.array([is_right for _, is_right in points], dtype=np.bool_)
    )
    assert found == pytest.approx(np.mean(pairs) if pairs else 0.5)


def test_each_is_fitted_as_by_itself() -> None:
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(SUPPORT + POINTS, 4)).astype(np.float32)
    labels = (vectors[:, 0] + generator.normal(0, 0.7, SUPPORT + POINTS) > 0).astype(np.int64)
    logits = np.stack([-2 * vectors[:, 0], 2 * vectors[:, 0]], axis=1).astype(np.float32)
    support = Support(logits[:SUPPORT], labels[:SUPPORT])
    keys = [f"{row}" for row in range(POINTS)]
    queries, of_points = vectors[SUPPORT:], logits[SUPPORT:]
    tried = try_neighbour_counts(
        exact_neighbours(queries, vectors[:SUPPORT], 20),
        of_points,
        labels[SUPPORT:],
        support,
        document_keys=keys,
        row_keys=keys,
        seed=1,
        counts=(3, 20),
    )
    for one, count in zip(tried, (3, 20), strict=True):
        alone = exact_neighbours(queries, vectors[:SUPPORT], count)
        fitted = fit_knn(alone, of_points, support, document_keys=keys, row_keys=keys, seed=1)
        view = approximate(alone, support, fitted.parameters)
        assert one == TriedCount(
            count,
            fitted.dev_discrepancies,
            fitted.dev_count,
            float(np.mean(view.match_count == count)),
            separation(view.match_count, view.predicted == labels[SUPPORT:]),
        )
    with pytest.raises(InvalidInputError, match="at least 30 neighbours of each point to try, got 20"):
        next(
            try_neighbour_counts(
                exact_neighbours(queries, vectors[:SUPPORT], 20),
                of_points,
                labels[SUPPORT:],
                support,
                document_keys=keys,
                row_keys=keys,
                seed=1,
                counts=(3, 30),
            )
        )


def test_the_smallest_is_taken_that_tells_about_as_much_and_follows_the_network() -> None:
    def tried(*rows: tuple[int, int, float]) -> int:
        return choose([TriedCount(k, wrong, 500, 0.1, separation) for k, wrong, separation in rows]).neighbour_count

    assert tried((5, 20, 0.700), (25, 20, 0.751), (100, 20, 0.755)) == 25
    # 24 are within a standard error of 20, 25 are not.
    assert tried((5, 24, 0.9), (25, 20, 0.7)) == 5
    assert tried((5, 25, 0.9), (25, 20, 0.7)) == 25
