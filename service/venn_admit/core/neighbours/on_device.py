"""The exact nearest training exemplars by way of a device such as a GPU: the same lists, to the last bit.

The device makes products and selects candidates; everything that decides is computed on the processor. The vectors are
rounded to bfloat16 and multiplied as float32. A device may multiply float32 in TensorFloat-32 or in bfloat16, if
torch was allowed to: neither takes anything from numbers that bfloat16 holds, and a product of two of them is
exact in float32. What is left is the rounding of the sum, in any order, for which the bounds allow (`bounds`). So no
flag of torch can break the certificate, and none is set here.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
import torch

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.neighbours.bounds import UNREACHED, RoundedQueries, product_rounding, slices
from venn_admit.core.neighbours.candidates import EXTRA_CANDIDATES, Candidates
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.search import check_arguments, exact_neighbours, search
from venn_admit.core.types import Float32Array, IntArray, Neighbours

PROCESSOR = "cpu"
# Queries and exemplars that are searched on the device and on the processor before all are.
_SAMPLED = (16, 512)
# Below this, a device that has no memory left is given up.
_LEAST_BUDGET = 2**20
_LEAST_ROWS = 16
# Products of the first block that are computed again in float64, by queries and by exemplars.
_CHECKED = (16, 256)
# Underflow removes at most this much of a sum, per term.
_UNDERFLOW = 2.0**-126


def neighbours_on(
    device: str,
    queries: Float32Array,
    support: Float32Array,
    neighbour_count: int,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Neighbours:
    """Return the result of `exact_neighbours`, of which the products may come from a device.

    If the device fails, or a check of it on a sample does, the processor computes everything, and a DeviceWarning says
    why.

    Args:
        device: `cpu`, the processor, or the name of a device of torch, such as `cuda`.
        memory_budget: As in `exact_neighbours`, and again of the device's memory.

    Raises:
        NotReadyError: There are fewer than K training exemplars.
    """
    if device == PROCESSOR:
        return exact_neighbours(queries, support, neighbour_count, memory_budget=memory_budget)
    return search_on(torch.device(device), queries, support, neighbour_count, memory_budget=memory_budget)


def search_on(
    device: torch.device, queries: Float32Array, support: Float32Array, neighbour_count: int, *, memory_budget: int
) -> Neighbours:
    """Return the result of `exact_neighbours` by way of any device of torch; its `cpu` computes as a GPU would."""
    check_arguments(queries, support, neighbour_count)
    try:
        _compare_sample(device, queries, support, neighbour_count, memory_budget)
        return _listed_there(device, queries, support, neighbour_count, memory_budget)
    except UnusableDeviceError as error:
        failure = str(error)
    warnings.warn(
        f"the device {device} is not used for this neighbour search, which the processor does instead: {failure}",
        DeviceWarning,
        stacklevel=2,
    )
    return exact_neighbours(queries, support, neighbour_count, memory_budget=memory_budget)


def _listed_there(
    device: torch.device, queries: Float32Array, support: Float32Array, neighbour_count: int, memory_budget: int
) -> Neighbours:
    index = NeighbourIndex.of(support, precision=torch.bfloat16)
    lists = DeviceLists(device, index, neighbour_count + EXTRA_CANDIDATES, memory_budget)
    return search(queries, index, neighbour_count, memory_budget=memory_budget, list_on_device=lists)[0]


def _compare_sample(
    device: torch.device, queries: Float32Array, support: Float32Array, neighbour_count: int, memory_budget: int
) -> None:
    """Raise UnusableDeviceError unless device and processor find the same for some queries in a part of the support."""
    some_queries, some_rows = _SAMPLED
    asked = queries[:: max(1, len(queries) // some_queries)]
    among = support[:: max(1, len(support) // max(some_rows, 2 * neighbour_count))]
    there = _listed_there(device, asked, among, neighbour_count, memory_budget)
    here = exact_neighbours(asked, among, neighbour_count, memory_budget=memory_budget)
    if not (np.array_equal(there.indices, here.indices) and np.array_equal(there.distances, here.distances)):
        raise UnusableDeviceError("it finds other neighbours of a sample than the processor")


class DeviceWarning(UserWarning):
    """A device is used in smaller blocks, or not at all; results are the same."""


class UnusableDeviceError(Exception):
    """A device fails, or computes something else than its certificate allows."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What a device holds at a time: queries with their lists, exemplars, and queries in a product with these."""

    panel_rows: int
    support_rows: int
    query_rows: int

    @classmethod
    def within(cls, memory_budget: int, index: NeighbourIndex, kept: int) -> "_Sizes":
        quarter, width = memory_budget // 4, index.selecting.width
        # Vectors, scaled ones, what rounding took from them, and the factor in two precisions and one copy.
        support_rows = max(_LEAST_ROWS, min(len(index.vectors), quarter // (28 * width)))
        return cls(
            # The factor in two precisions, and lists of bounds and rows with the copies that merging them takes.
            panel_rows=max(_LEAST_ROWS, quarter // (6 * width + 48 * kept)),
            support_rows=support_rows,
            # Products, with what selecting the least of them takes.
            query_rows=max(_LEAST_ROWS, 2 * quarter // (16 * support_rows)),
        )


@dataclass(slots=True, eq=False)
class DeviceLists:
    """Lists candidates on a device, as `list_candidates` does on the processor.

    Attributes:
        index: The support; its selecting bounds are those of bfloat16.
        memory_budget: In bytes, about, on the device. It is halved whenever the device has no memory left.
    """

    device: torch.device
    index: NeighbourIndex
    kept: int
    memory_budget: int
    _checked: bool = field(default=False, init=False)

    def __call__(self, queries: RoundedQueries, vectors: Float32Array) -> Candidates:
        """Return the support rows with the least bounds for each query.

        Raises:
            UnusableDeviceError: The device fails, has no memory, or its products are not within their bounds.
        """
        while True:
            try:
                least, rows = self._least(queries, vectors)
                break
            except torch.OutOfMemoryError as error:
                failure = str(error)
            except RuntimeError as error:
                raise UnusableDeviceError(str(error)) from error
            # Not in the handler, whose traceback holds the blocks.
            self._make_do(failure)
        near = ~queries.far
        self._check_lists(least[near], rows[near])
        owners, places = np.nonzero((rows >= 0) & near[:, np.newaxis])
        # Rows that are not listed may have the greatest bound of those that are.
        limits = np.nextafter(least[:, -1], np.float32(-np.inf)).astype(np.float64)
        return Candidates(
            owners=owners,
            rows=rows[owners, places],
            bounds=least[owners, places].astype(np.float64),
            limits=np.where(near, limits, -np.inf),
        )

    def _check_lists(self, least: Float32Array, rows: IntArray) -> None:
        """Raise UnusableDeviceError unless each list has the expected length, and all of its bounds are numbers."""
        expected, shortest = min(self.kept, len(self.index.vectors)), (rows >= 0).sum(axis=1).min(initial=self.kept)
        if shortest < expected:
            raise UnusableDeviceError(f"it lists {shortest} candidates of a query, expected {expected}")
        if np.isnan(least).any():
            raise UnusableDeviceError("a lower bound is not a number")

    def _make_do(self, failure: str) -> None:
        """Halve the memory budget."""
        if self.memory_budget <= _LEAST_BUDGET:
            raise UnusableDeviceError(f"not even {self.memory_budget:,} bytes of its memory are free: {failure}")
        self.memory_budget //= 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        warnings.warn(
            f"the device {self.device} has no memory left, so that the neighbour search goes on in blocks of "
            f"{self.memory_budget / 2**20:,.0f} MiB: let fewer processes share the device, or lower the memory budget",
            DeviceWarning,
            stacklevel=2,
        )

    def _least(self, queries: RoundedQueries, vectors: Float32Array) -> tuple[Float32Array, IntArray]:
        """The least bounds of each query, ascending, and their rows, -1 where the support has no more; (B, kept)."""
        sizes = _Sizes.within(self.memory_budget, self.index, self.kept)
        shape = (len(vectors), self.kept)
        least, rows = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.int64)
        for panel in slices(len(vectors), sizes.panel_rows):
            found = self._least_of_panel(queries, vectors, panel, sizes)
            least[panel], rows[panel] = (part.cpu().numpy() for part in found)
        return least, rows

    def _least_of_panel(
        self, queries: RoundedQueries, vectors: Float32Array, panel: slice, sizes: _Sizes
    ) -> tuple[torch.Tensor, torch.Tensor]:
        left = queries.factor[panel].to(self.device).to(torch.float32)
        shape = (len(left), self.kept)
        least = torch.full(shape, UNREACHED, dtype=torch.float32, device=self.device)
        rows = torch.full(shape, -1, dtype=torch.int64, device=self.device)
        for support_part in slices(len(self.index.vectors), sizes.support_rows):
            exemplars = self._factor(self.index.vectors[support_part])
            for part in slices(len(left), sizes.query_rows):
                products = torch.mm(left[part], exemplars.T)
                if not self._checked:
                    here = slice(panel.start + part.start, panel.start + part.stop)
                    self._check(queries, vectors, here, support_part, left[part], exemplars, products)
                    self._checked = True
                count = min(self.kept, len(exemplars))
                values, columns = torch.topk(products, count, dim=1, largest=False, sorted=False)
                both = torch.cat((least[part], values), dim=1)
                both_rows = torch.cat((rows[part], columns + support_part.start), dim=1)
                least[part], order = torch.topk(both, self.kept, dim=1, largest=False, sorted=True)
                rows[part] = both_rows.gather(1, order)
        return least, rows

    def _factor(self, vectors: Float32Array) -> torch.Tensor:
        """The right factor, transposed; (P, D + 7) float32, of numbers that bfloat16 holds."""
        bounds = self.index.selecting
        # A copy, because torch takes no array that is read-only, as a memory map is.
        scaled = torch.from_numpy(np.array(vectors, order="C")).to(self.device)
        scaled = scaled * float(bounds.scale) - torch.from_numpy(bounds.centre).to(self.device)
        factor = torch.empty((len(vectors), bounds.width), dtype=torch.bfloat16, device=self.device)
        bounds.write_support(scaled, factor)
        return factor.to(torch.float32)

    def _check(
        self,
        queries: RoundedQueries,
        vectors: Float32Array,
        part: slice,
        support_part: slice,
        left: torch.Tensor,
        exemplars: torch.Tensor,
        products: torch.Tensor,
    ) -> None:
        """Raise UnusableDeviceError unless some products are within their rounding, and below the distances."""
        places, columns = (
            np.arange(size)[:: max(1, size // count)] for size, count in zip(products.shape, _CHECKED, strict=True)
        )
        factors = (left[places].cpu().double(), exemplars[columns].cpu().double())
        found = products[places][:, columns].cpu().double()
        exact = factors[0] @ factors[1].T
        magnitudes = factors[0].abs() @ factors[1].abs().T
        width = self.index.selecting.width
        errors, allowed = (found - exact).abs(), product_rounding(width) * magnitudes + width * _UNDERFLOW
        if not bool((errors <= allowed).all()):
            worst = float((errors / allowed).nan_to_num(nan=np.inf).max())
            raise UnusableDeviceError(f"a product is off by {worst:.3g} times what its rounding can explain")
        near = np.flatnonzero(~queries.far[part][places])
        owners, others = (pairs.ravel() for pairs in np.meshgrid(near, np.arange(len(columns)), indexing="ij"))
        rows = support_part.start + columns[others]
        asked = part.start + places[owners]
        distances = self.index.distances(vectors, asked, rows)
        reach = self.index.selecting.reach(distances, queries.errors[asked])
        if not (found.numpy()[owners, others] <= reach).all():
            raise UnusableDeviceError("a lower bound is above the distance")
