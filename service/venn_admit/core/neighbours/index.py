"""The training exemplars, prepared for the search."""

from dataclasses import dataclass

import numpy as np
import torch

from venn_admit.core.budget import tile_rows
from venn_admit.core.neighbours.bounds import DistanceBounds, faster_precision, slices
from venn_admit.core.neighbours.distances import pair_distances
from venn_admit.core.types import Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourIndex:
    """A support with what is computed from it once. It is no larger than the support, which it does not copy.

    Attributes:
        vectors: (N, D) float32, as given.
        selecting: Bounds that select candidates, in bfloat16 if that is faster.
        certain: Bounds in float32, for the queries for which the others do not suffice; the same object if `selecting`
            is float32.
    """

    vectors: Float32Array
    selecting: DistanceBounds
    certain: DistanceBounds

    @classmethod
    def of(cls, support: Float32Array, *, precision: torch.dtype | None = None) -> "NeighbourIndex":
        """Return the index of a support, which is read once.

        Args:
            precision: torch.bfloat16 or torch.float32 for `selecting`; by default the faster on this machine. Results
                do not depend on it.
        """
        smallest, largest = check_finite("support", support)
        support = np.asarray(support)
        # Beyond 126 the scale or its inverse would not be a normal float32.
        scale = np.float32(2.0 ** -int(np.clip(np.frexp(max(largest, -smallest))[1], -126, 126)))
        sample_rows = min(4096, tile_rows(4 * support.shape[1]))
        sample = support[:: -(-len(support) // sample_rows)]
        centre = np.asarray(np.mean(sample, axis=0, dtype=np.float64) * float(scale), dtype=np.float32)
        if precision is None:
            precision = faster_precision()
        selecting = DistanceBounds.of(precision, scale, centre, sample)
        certain = selecting if precision == torch.float32 else DistanceBounds.of(torch.float32, scale, centre, sample)
        return cls(support, selecting, certain)

    def distances(self, queries: Float32Array, query_rows: IntArray, rows: IntArray) -> FloatArray:
        """Return the `euclidean_distances` of `queries[query_rows]` to the support's `rows`, (M,) float64."""
        return pair_distances(self.vectors, rows, queries, query_rows)


def check_finite(name: str, vectors: Float32Array) -> tuple[float, float]:
    """Check that all vectors are finite.

    Returns:
        The least and the greatest value, (0, 0) if there are no vectors.
    """
    smallest, largest = 0.0, 0.0
    for part in slices(len(vectors), tile_rows(4 * vectors.shape[1])):
        block = vectors[part]
        low, high = float(np.min(block)), float(np.max(block))
        if not np.isfinite(low) or not np.isfinite(high):
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise InvalidInputError(
                f"expected finite {name}, got {block[row, column]} in row {part.start + row}, "
                f"column {column}; remove or repair the row"
            )
        smallest, largest = min(smallest, low), max(largest, high)
    return smallest, largest
