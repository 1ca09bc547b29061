"""Exact neighbours against a float32 product with top-k, whose answer nothing certifies."""

from collections.abc import Iterator

import torch

from benchmarks.data import draw_vectors
from benchmarks.measure import Measurement, compare
from service.core.neighbors import exact_neighbours
from service.core.types import Float32Array

_NEIGHBOUR_COUNT = 25
_QUERIES, _LARGE_QUERIES = 2048, 8192
_SUPPORTS, _LARGE_SUPPORTS = [(20_000, 128), (20_000, 1000)], [(300_000, 128), (100_000, 1000)]
# The peer's scores of a block of queries; more was no faster.
_BLOCK_BYTES = 64 * 2**20


def measure(large: bool) -> Iterator[Measurement]:
    query_count = _LARGE_QUERIES if large else _QUERIES
    for total, dimension in _LARGE_SUPPORTS if large else _SUPPORTS:
        vectors = draw_vectors(total + query_count, dimension)
        yield _measure(vectors[:query_count], vectors[query_count:], turns=3 if large else 5)


def _measure(queries: Float32Array, support: Float32Array, turns: int) -> Measurement:
    return compare(
        "exact neighbours",
        f"{len(queries):,} x {len(support):,}, D={support.shape[1]}",
        "float32 product, top-k",
        lambda: exact_neighbours(queries, support, _NEIGHBOUR_COUNT),
        lambda: _product_and_topk(torch.from_numpy(queries), torch.from_numpy(support)),
        turns=turns,
    )


def _product_and_topk(queries: torch.Tensor, support: torch.Tensor) -> list[torch.Tensor]:
    """Rows of the least |t|^2 - 2 t.q of each query."""
    norms = torch.linalg.vecdot(support, support)
    block_rows = max(1, _BLOCK_BYTES // (4 * len(support)))
    return [
        torch.topk(torch.addmm(norms, block, support.T, alpha=-2), _NEIGHBOUR_COUNT, dim=1, largest=False).indices
        for block in torch.split(queries, block_rows)
    ]
