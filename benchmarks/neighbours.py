"""Exact neighbours against faiss's flat index, and against a bare float32 product; neither's answer is certified."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import faiss
import numpy as np
import torch

from benchmarks.data import draw_vectors
from benchmarks.measure import Measurement, compare
from venn_admit.core.neighbours.bounds import faster_precision
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Float32Array

_NEIGHBOUR_COUNT = 25
_QUERIES, _LARGE_QUERIES = 2048, 8192
_SUPPORTS, _LARGE_SUPPORTS = [(20_000, 128), (20_000, 1000)], [(300_000, 128), (100_000, 1000)]
# The product's scores of a block of queries; more was no faster.
_BLOCK_BYTES = 64 * 2**20
# Queries whose neighbours are compared with faiss's.
_CHECKED = 256


def measure(large: bool) -> Iterator[Measurement]:
    query_count = _LARGE_QUERIES if large else _QUERIES
    faiss.omp_set_num_threads(torch.get_num_threads())
    for total, dimension in _LARGE_SUPPORTS if large else _SUPPORTS:
        vectors = draw_vectors(total + query_count, dimension)
        queries, support = vectors[:query_count], vectors[query_count:]
        index = faiss.IndexFlatL2(dimension)
        index.add(support)
        _check(queries[:_CHECKED], support, index)
        size = f"{query_count:,} x {total:,}, D={dimension}"
        peers: dict[str, Callable[[], object]] = {
            "faiss IndexFlatL2": lambda: index.search(queries, _NEIGHBOUR_COUNT),  # noqa: B023
            "float32 product, top-k": lambda: _product_and_topk(queries, support),  # noqa: B023
        }
        for name, peer in peers.items():
            found = compare(
                "exact neighbours",
                size,
                name,
                lambda: exact_neighbours(queries, support, _NEIGHBOUR_COUNT),  # noqa: B023
                peer,
                turns=3 if large else 5,
            )
            yield replace(found, note=f"by {str(faster_precision()).removeprefix('torch.')}")


def _check(queries: Float32Array, support: Float32Array, index: faiss.IndexFlatL2) -> None:
    """Where faiss names others than ours, they are no nearer."""
    ours = exact_neighbours(queries, support, _NEIGHBOUR_COUNT)
    _, theirs = index.search(queries, _NEIGHBOUR_COUNT)
    for query, distances, rows in zip(queries, ours.distances, theirs, strict=True):
        their_distances = np.sort(np.linalg.norm(support[rows].astype(np.float64) - query, axis=1))
        assert np.all(distances <= their_distances * (1 + 1e-12)), "faiss found a nearer neighbour"


def _product_and_topk(queries: Float32Array, support: Float32Array) -> list[torch.Tensor]:
    """Rows of the least |t|^2 - 2 t.q of each query."""
    vectors = torch.from_numpy(support)
    norms = torch.linalg.vecdot(vectors, vectors)
    block_rows = max(1, _BLOCK_BYTES // (4 * len(support)))
    return [
        torch.topk(torch.addmm(norms, block, vectors.T, alpha=-2), _NEIGHBOUR_COUNT, dim=1, largest=False).indices
        for block in torch.split(torch.from_numpy(queries), block_rows)
    ]
