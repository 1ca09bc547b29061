"""Made-up vectors, and lists of neighbours compared."""

import numpy as np

from venn_admit.core.types import Float32Array, Neighbours


def vectors(count: int, dimension: int, seed: int = 0) -> Float32Array:
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def assert_same(found: Neighbours, expected: Neighbours) -> None:
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
