"""The exact nearest training exemplars by way of a device: the lists of `exact_neighbours`, to the last bit."""

import warnings

import numpy as np
import torch

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.neighbours.candidates import KEPT_BEYOND
from venn_admit.core.neighbours.device_lists import DeviceLists, DeviceWarning, UnusableDeviceError
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.search import check_arguments, exact_neighbours, search
from venn_admit.core.types import Float32Array, Neighbours

PROCESSOR = "cpu"

# Queries and exemplars that are searched on the device and on the processor before all are.
_SAMPLED = (16, 512)


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
        queries: (n, D) float32, finite.
        support: (N, D) float32, finite.
        neighbour_count: K, 1 <= K <= N.
        memory_budget: As in `exact_neighbours`, and again of the device's memory.

    Raises:
        NotReadyError: There are fewer than K training exemplars.
        InvalidInputError: The arrays have other shapes, dtypes or ranges.
    """
    if device == PROCESSOR:
        return exact_neighbours(queries, support, neighbour_count, memory_budget=memory_budget)
    return search_on(torch.device(device), queries, support, neighbour_count, memory_budget=memory_budget)


def search_on(
    device: torch.device, queries: Float32Array, support: Float32Array, neighbour_count: int, *, memory_budget: int
) -> Neighbours:
    """Return the result of `exact_neighbours` by way of any device of torch; its `cpu` computes as a GPU would.

    Args:
        device: Where products are computed.
        queries: (n, D) float32, finite.
        support: (N, D) float32, finite.
        neighbour_count: K, 1 <= K <= N.
        memory_budget: As in `neighbours_on`.

    Raises:
        NotReadyError: There are fewer than K training exemplars.
        InvalidInputError: The arrays have other shapes, dtypes or ranges.
    """
    check_arguments(queries, support, neighbour_count)
    try:
        _compare_sample(device, queries, support, neighbour_count, memory_budget)
        return _listed_there(device, queries, support, neighbour_count, memory_budget)
    except UnusableDeviceError as error:
        reason = str(error)
    warnings.warn(
        f"the device {device} is not used for this neighbour search, which the processor does instead: {reason}",
        DeviceWarning,
        stacklevel=2,
    )
    return exact_neighbours(queries, support, neighbour_count, memory_budget=memory_budget)


def _listed_there(
    device: torch.device, queries: Float32Array, support: Float32Array, neighbour_count: int, memory_budget: int
) -> Neighbours:
    index = NeighbourIndex.of(support, precision=torch.bfloat16)
    lists = DeviceLists(device, index, neighbour_count + KEPT_BEYOND, memory_budget)
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
