"""Candidates for the K nearest: for each query, the rows of the support with the least bounds.

The bounds of a block are examined by groups of rows. The least bound of a group tells whether any of its rows can be
among the least so far, so that a single pass of minima leaves only a few groups in a hundred to examine.
"""

from dataclasses import dataclass

import numpy as np
import torch

from venn_admit.core.neighbours.bounds import UNREACHED, RoundedQueries, slices
from venn_admit.core.neighbours.distances import ranks
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.types import BoolArray, FloatArray, IntArray

# Read as integers, bounds keep their order, except that negative ones, before all others, have it reversed.
_INTEGERS = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
_SUPPORT_ROWS, _QUERY_ROWS = 8192, 512
# Groups of a block of the support. torch takes minima four times as fast if there are a multiple of as many.
_GROUPS = 128
# Candidates kept beyond K: enough for the gap behind the K-th distance to exceed the error of the bounds.
EXTRA_CANDIDATES = 24
# Smaller blocks would cost more in calls than they save in memory.
_LEAST_ROWS = 16
# A list may hold this many times what is kept: it grows longer if bounds are equal or rows share a group.
_PAIRS_PER_KEPT = 2


@dataclass(frozen=True, slots=True)
class ListSizes:
    """The sizes of blocks and lists.

    Attributes:
        kept: The number of least bounds that a query keeps.
        support_rows: Rows of a block of the support, a multiple of `group_count`.
    """

    kept: int
    pair_limit: int
    group_count: int
    support_rows: int
    product_rows: int
    query_rows: int

    @classmethod
    def within(cls, memory_budget: int, index: NeighbourIndex, kept: int) -> "ListSizes":
        """Return the sizes that a memory budget allows.

        A quarter of it is for a block of the support, a quarter for its bounds, and half for the queries and their
        lists.
        """
        quarter, width = memory_budget // 4, index.selecting.width
        item = index.selecting.precision.itemsize
        rows = min(_SUPPORT_ROWS, max(_LEAST_ROWS, quarter // (item * width)))
        block_count = -(-len(index.vectors) // rows)
        rows = -(-len(index.vectors) // block_count)  # the last block is about as full as the others
        # If possible, there are many more groups than `kept`; otherwise most rows are listed.
        group_count = min(rows, -(-max(2 * _GROUPS, 4 * kept) // _GROUPS) * _GROUPS)
        support_rows = -(-rows // group_count) * group_count
        pair_limit = _PAIRS_PER_KEPT * kept
        # A query's vector, its least bounds, and its pairs with two copies while they are sorted.
        query_bytes = item * (width + 2 * kept) + 3 * (16 + item) * pair_limit
        return cls(
            kept=kept,
            pair_limit=pair_limit,
            group_count=group_count,
            support_rows=support_rows,
            # Bounds, a copy of those in the groups examined, and whether each is listed.
            product_rows=min(_QUERY_ROWS, max(_LEAST_ROWS, quarter // ((2 * item + 2) * support_rows))),
            query_rows=max(_LEAST_ROWS, 2 * quarter // query_bytes),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs of a query and a support row, in order of (query, bound).

    A query that is not far has `kept` rows, or all rows of the support.

    Attributes:
        owners: (M,) int64, the query of each pair.
        bounds: (M,) float64, less than the computed bounds by their rounding.
        limits: (B,) float64. A row that is not listed for a query has a bound above the query's limit. The limit is
            -inf if too many rows had the same bound.
    """

    owners: IntArray
    rows: IntArray
    bounds: FloatArray
    limits: FloatArray

    @property
    def ranks(self) -> IntArray:
        """The position of each pair in the list of its query, from 0."""
        return ranks(self.owners)


def list_candidates(queries: RoundedQueries, index: NeighbourIndex, sizes: ListSizes) -> Candidates:
    """Return the support rows with the least bounds for each query, found in blocks of the support."""
    lists = _Lists.empty(queries, sizes)
    precision = index.selecting.precision
    exemplars = torch.empty((sizes.support_rows, index.selecting.width), dtype=precision)
    products = torch.empty((sizes.product_rows, sizes.support_rows), dtype=precision)
    for support_part in slices(len(index.vectors), sizes.support_rows):
        index.selecting.round_support(index.vectors[support_part], exemplars)
        for part in slices(len(queries.factor), sizes.product_rows):
            bounds = products[: part.stop - part.start]
            index.selecting.product(queries.factor[part], exemplars, out=bounds)
            lists.add(bounds, part, support_part.start)
        lists.drop_beaten()
    return lists.sorted()


@dataclass(slots=True, eq=False)
class _Lists:
    """The lists of B queries while blocks are added. Bounds are integers of the precision's width, see _INTEGERS.

    least: (B, kept), the least bounds of any group. limits: (B,), the greatest of these. overfull: (B,) bool, whether
    the list holds too many rows to take more. owners, rows, bounds: parts of the lists, one after another.
    """

    sizes: ListSizes
    precision: torch.dtype
    least: IntArray
    limits: IntArray
    overfull: BoolArray
    owners: list[IntArray]
    rows: list[IntArray]
    bounds: list[IntArray]

    @classmethod
    def empty(cls, queries: RoundedQueries, sizes: ListSizes) -> "_Lists":
        precision = queries.factor.dtype
        least = torch.full((len(queries.factor), sizes.kept), UNREACHED, dtype=precision)
        integers = least.view(_INTEGERS[precision]).numpy()
        return cls(sizes, precision, integers, integers[:, -1].copy(), queries.far.copy(), [], [], [])

    def add(self, bounds: torch.Tensor, part: slice, first_row: int) -> None:
        """Add a block: the bounds (b, support_rows) of some queries."""
        group_count = self.sizes.group_count
        # The rows of a group are group_count apart, so that the minima of neighbouring columns are taken side by side.
        integers = bounds.view(_INTEGERS[self.precision]).view(len(bounds), -1, group_count)
        minima, grouped = torch.amin(integers, dim=1).numpy(), integers.numpy()
        least = np.concatenate((self.least[part], minima), axis=1)
        least.partition(self.sizes.kept - 1, axis=1)
        self.least[part] = least[:, : self.sizes.kept]
        overfull = self.overfull[part]
        limits = np.where(overfull, self.limits[part], least[:, self.sizes.kept - 1])
        self.limits[part] = limits

        examined = (minima <= limits[:, np.newaxis]) & ~overfull[:, np.newaxis]
        owners, groups = np.divmod(np.flatnonzero(examined), group_count)
        values = grouped[owners, :, groups]  # (H, group_rows)
        listed = values <= limits[owners, np.newaxis]
        if np.count_nonzero(listed) > len(bounds) * self.sizes.pair_limit:  # for which there is no memory
            listed_before = _sums_before(np.count_nonzero(listed, axis=1), owners)
            overflowing = listed_before >= self.sizes.pair_limit
            listed[overflowing] = False
            overfull[owners[overflowing]] = True
        places = np.flatnonzero(listed)
        hits, members = np.divmod(places, listed.shape[1])
        self.owners.append(owners[hits] + part.start)
        self.rows.append(first_row + members * group_count + groups[hits])
        self.bounds.append(values.take(places))

    def drop_beaten(self) -> None:
        """Keep only the pairs that are still within the limits."""
        owners, rows, bounds = (np.concatenate(parts) for parts in (self.owners, self.rows, self.bounds))
        kept = bounds <= self.limits[owners]
        self.owners, self.rows, self.bounds = [owners[kept]], [rows[kept]], [bounds[kept]]
        self.overfull |= np.bincount(self.owners[0], minlength=len(self.overfull)) > self.sizes.pair_limit

    def sorted(self) -> Candidates:
        (owners,), (rows,), (bounds,) = self.owners, self.rows, self.bounds
        order = np.argsort((owners << 32) + bounds)
        return Candidates(
            owners=owners[order],
            rows=rows[order],
            # The value before the rounded one lies below the bound itself.
            bounds=self._as_float(np.maximum(bounds[order], 1) - 1),
            limits=np.where(self.overfull, -np.inf, self._as_float(self.limits)),
        )

    def _as_float(self, integers: IntArray) -> FloatArray:
        return torch.from_numpy(integers).view(self.precision).to(torch.float64).numpy()


def _sums_before(counts: IntArray, owners: IntArray) -> IntArray:
    """For each item, the sum of the counts of the earlier items of the same owner; owners ascend."""
    before = np.cumsum(counts) - counts
    return np.asarray(before - before[np.searchsorted(owners, owners)])
