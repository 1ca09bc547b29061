"""The memory that a computation may take, and what a block of its work may take of that.

There are two kinds of blocks. Working memory that grows with the data comes out of the memory budget, which the
settings give and every routine hands on: `block_rows` says how many rows a block then has. Tiles are constant and
small. They are cut for the caches of a processor, or so that the order of a sum never changes; beside the budget, a
computation holds two or three of `TILE_BYTES`, and the localizer three of 8 KiB per dimension.

Fits are the exception. The localizer is fitted on up to 256 MiB of distances, and both fits count discrepancies in
blocks of 64 MiB: which distances, and how a matrix product is cut, decides what is fitted.

No result depends on the budget.
"""

DEFAULT_MEMORY_BUDGET = 512 << 20

BLOCK_SHARE = 8
"""A block takes this fraction of the budget: it is copied on its way, and blocks are nested (as it is read, as it
is computed from, as it is written)."""

TILE_BYTES = 2 << 20
"""What stays in the cache of a processor core. Sums over rows do not cross tiles, so their order does not show."""


def block_rows(memory_budget: int, row_bytes: int) -> int:
    """Return how many rows a block of working memory may have, at least one.

    Examples:
        >>> block_rows(16 << 20, 1 << 10), block_rows(0, 8)
        (2048, 1)
    """
    return max(1, memory_budget // BLOCK_SHARE // max(1, row_bytes))


def tile_rows(row_bytes: int) -> int:
    """Return how many rows a tile has, at least one."""
    return max(1, TILE_BYTES // max(1, row_bytes))
