"""The localizer's category weights against the float32 products alone, in the same blocks."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.data import draw_vectors, generator
from benchmarks.measure import Measurement, compare
from venn_admit.core.approximation.distance_tiles import QUERY_TILE, SUPPORT_TILE
from venn_admit.core.approximation.localizer import FLOAT64_SUPPORT, category_weight
from venn_admit.core.types import Float32Array

_DIMENSION = 384


def measure(large: bool) -> Iterator[Measurement]:
    for query_count, total in (
        ((20_000, 125_000), (8192, FLOAT64_SUPPORT)) if large else ((2048, 50_000), (2048, 20_000))
    ):
        vectors = draw_vectors(query_count + total, _DIMENSION)
        queries, support = vectors[:query_count], vectors[query_count:]
        rng = generator()
        low = rng.integers(total, size=query_count)
        high = np.minimum(low + rng.integers(2000, size=query_count), total)
        yield compare(
            f"localizer, category weights, {'float64' if total <= FLOAT64_SUPPORT else 'float32'}",
            f"{query_count:,} x {total:,}, D={_DIMENSION}",
            "float32 products",
            partial(category_weight, queries, support, low, high, eta_loc=5.0),
            partial(_product, queries, support),
            turns=3,
        )


def _product(queries: Float32Array, support: Float32Array) -> None:
    for start in range(0, len(support), SUPPORT_TILE):
        columns = support[start : start + SUPPORT_TILE].T
        for row in range(0, len(queries), QUERY_TILE):
            np.matmul(queries[row : row + QUERY_TILE], columns)
