"""Whether the BLAS gives a row of a matrix product the same bits wherever in the product it stands.

Not every kernel does: OpenBLAS' float32 kernel for processors with AVX2 but no AVX-512 (`Haswell`, `Zen`) sums six rows
in one order and the next six in another. Its float64 kernels, and those for AVX-512, treat all rows alike.
"""

from functools import cache

import numpy as np


@cache
def rows_are_alike(dtype: str, rows: int, inner: int, columns: int) -> bool:
    """Return whether equal rows of a product of this shape come out equal, by one product of random numbers.

    Args:
        dtype: The dtype of the factors, such as `float32`.
        rows: The rows of the left factor.
        inner: Columns of the left factor, rows of the right.
        columns: The columns of the right factor.
    """
    generator = np.random.default_rng(0)
    row = generator.standard_normal(inner).astype(dtype)
    right = generator.standard_normal((inner, columns)).astype(dtype)
    product = np.tile(row, (rows, 1)) @ right
    return bool((product == product[0]).all())


@cache
def first_rows_are_alike(dtype: str, rows: int, fewer: int, inner: int, columns: int) -> bool:
    """Return whether the first rows of a product come out the same without the others, by random numbers.

    Args:
        dtype: The dtype of the factors, such as `float32`.
        rows: The rows of the left factor.
        fewer: How many of them make the other product.
        inner: Columns of the left factor, rows of the right.
        columns: The columns of the right factor.
    """
    generator = np.random.default_rng(0)
    left = generator.standard_normal((rows, inner)).astype(dtype)
    right = generator.standard_normal((inner, columns)).astype(dtype)
    return bool(((left @ right)[:fewer] == left[:fewer] @ right).all())
