"""Checks of the arrays that the localizer takes, and of how the BLAS multiplies them.

Not every BLAS kernel gives a row of a matrix product the same bits wherever in the product it stands: OpenBLAS' float32
kernel for processors with AVX2 but no AVX-512 (`Haswell`, `Zen`) sums six rows in one order and the next six in
another. Its float64 kernels, and those for AVX-512, treat all rows alike.
"""

from functools import cache

import numpy as np

from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import InvalidInputError


def check_vectors(queries: Float32Array, support: Float32Array) -> None:
    """Check that vectors can be compared, and that there are some to compare with."""
    if queries.ndim != 2 or support.ndim != 2 or queries.shape[1] != support.shape[1]:
        raise InvalidInputError(
            f"expected queries (m, D) and support (n, D), got shapes {queries.shape} and {support.shape}; "
            "pass vectors of the same classifier"
        )
    if queries.dtype != np.float32 or support.dtype != np.float32:
        raise InvalidInputError(
            f"expected float32 vectors, got {queries.dtype} and {support.dtype}; pass them as they are stored"
        )
    if support.size == 0:
        raise InvalidInputError(
            f"expected at least one exemplar in split vp, got shape {support.shape}; ingest held-out data"
        )


def check_eta(eta_loc: float) -> None:
    """Check the localizer's parameter."""
    if not 0 < eta_loc < np.inf:
        raise InvalidInputError(f"expected eta_loc > 0 and finite, got {eta_loc}; fit the localizer again")


def check_windows(low: IntArray, high: IntArray, query_count: int, support_count: int) -> None:
    """Check that each query has a window of the support's rows."""
    if low.shape != (query_count,) or high.shape != (query_count,):
        raise InvalidInputError(
            f"expected a window for each of {query_count} queries, got shapes {low.shape} and {high.shape}; "
            "pass windows and queries of the same points"
        )
    outside = (low < 0) | (low > high) | (high > support_count)
    if outside.any():
        query = int(np.argmax(outside))
        raise InvalidInputError(
            f"expected windows 0 <= low <= high <= {support_count}, got [{low[query]}, {high[query]}) for "
            f"query {query}; pass windows of the support's rows"
        )


@cache
def rows_are_alike(dtype: str, rows: int, inner: int, columns: int) -> bool:
    """Return whether equal rows of a product of this shape come out equal, by one product of random numbers."""
    generator = np.random.default_rng(0)
    row = generator.standard_normal(inner).astype(dtype)
    right = generator.standard_normal((inner, columns)).astype(dtype)
    product = np.tile(row, (rows, 1)) @ right
    return bool((product == product[0]).all())


@cache
def first_rows_are_alike(dtype: str, rows: int, fewer: int, inner: int, columns: int) -> bool:
    """Return whether the first rows of a product come out the same without the others, by random numbers."""
    generator = np.random.default_rng(0)
    left = generator.standard_normal((rows, inner)).astype(dtype)
    right = generator.standard_normal((inner, columns)).astype(dtype)
    return bool(((left @ right)[:fewer] == left[:fewer] @ right).all())
