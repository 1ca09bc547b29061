"""Neighbours by way of a device are those of the processor, whatever the device does."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from tests.core.neighbours.lists import assert_same, vectors
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.on_device import DeviceLists, DeviceWarning, neighbours_on, search_on
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Float32Array
from venn_admit.errors import InvalidInputError, NotReadyError

EXAMPLE = Path(__file__).parents[3] / "examples" / "sentiment_small"
PROCESSOR = torch.device("cpu")
DEVICES = [PROCESSOR, *([torch.device("cuda")] if torch.cuda.is_available() else [])]

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> torch.device:
    found: torch.device = request.param
    return found


@pytest.fixture(scope="module")
def reviews() -> tuple[Float32Array, Float32Array]:
    with np.load(EXAMPLE / "ood.npz") as shifted, np.load(EXAMPLE / "train.npz") as train:
        return shifted["r"][:500].astype(np.float32), train["r"].astype(np.float32)


@pytest.mark.parametrize("budget", [1, 300_000, DEFAULT_MEMORY_BUDGET])
def test_real_vectors_have_the_same_neighbours(
    device: torch.device, reviews: tuple[Float32Array, Float32Array], budget: int
) -> None:
    queries, support = reviews
    if budget < DEFAULT_MEMORY_BUDGET:  # the smaller the blocks, the more calls
        queries, support = queries[:40], support[:700]
    assert_same(search_on(device, queries, support, 25, memory_budget=budget), exact_neighbours(queries, support, 25))


@given(seeds, st.integers(1, 120), st.sampled_from([1, 2, 3, 8]), st.integers(0, 4), st.integers(-90, 90), st.data())
@settings(deadline=None, max_examples=40)
def test_ties_go_to_the_lower_row(
    seed: int, total: int, dimension: int, largest: int, exponent: int, data: st.DataObject
) -> None:
    neighbour_count = data.draw(st.integers(1, min(total, 30)))
    budget = data.draw(st.sampled_from([1, 4_000, 100_000, DEFAULT_MEMORY_BUDGET]))
    generator = np.random.default_rng(seed)
    queries, support = (
        (generator.integers(-largest, largest, (rows, dimension), endpoint=True) * 2.0**exponent).astype(np.float32)
        for rows in (20, total)
    )
    expected = exact_neighbours(queries, support, neighbour_count)
    for device in DEVICES:
        assert_same(search_on(device, queries, support, neighbour_count, memory_budget=budget), expected)


@pytest.mark.parametrize(
    ("query_scale", "support_scale"),
    [(1e18, 1e18), (3e38, 3e38), (3e38, 1.0), (3e38, 1e-38), (1e-38, 3e38), (1e-44, 1e-44), (1.0, 0.0)],
)
def test_products_may_overflow_or_underflow(device: torch.device, query_scale: float, support_scale: float) -> None:
    generator = np.random.default_rng(0)
    queries = (generator.uniform(-1, 1, (5, 6)) * query_scale).astype(np.float32)
    support = (generator.uniform(-1, 1, (80, 6)) * support_scale).astype(np.float32)
    queries[0] = 0.0
    found = search_on(device, queries, support, 3, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 3))


def test_vectors_may_be_read_only_memory_maps(device: torch.device, tmp_path: Path) -> None:
    queries, support = vectors(10, 5, 1), vectors(60, 5, 2)
    np.save(tmp_path / "support.npy", support)
    mapped = np.load(tmp_path / "support.npy", mmap_mode="r")
    found = search_on(device, queries, mapped, 4, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 4))


def test_no_queries_have_no_neighbours(device: torch.device) -> None:
    found = search_on(device, vectors(0, 5), vectors(60, 5), 4, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert found.indices.shape == found.distances.shape == (0, 4)


def test_what_does_not_fit_is_refused(device: torch.device) -> None:
    with pytest.raises(NotReadyError, match="at least 25 training exemplars"):
        search_on(device, vectors(2, 3), vectors(24, 3), 25, memory_budget=1)
    with pytest.raises(InvalidInputError, match="the same dimension, got 3 and 4"):
        search_on(device, vectors(2, 3), vectors(24, 4), 1, memory_budget=1)
    damaged = vectors(9, 3)
    damaged[6, 2] = np.nan
    with pytest.raises(InvalidInputError, match=r"finite support, got nan in row 6, column 2"):
        search_on(device, vectors(2, 3), damaged, 1, memory_budget=1)


def test_the_processor_needs_no_device() -> None:
    queries, support = vectors(10, 5, 1), vectors(60, 5, 2)
    with Disturbed("topk", lambda _: pytest.fail("a device lists candidates")):
        found = neighbours_on("cpu", queries, support, 4)
    assert_same(found, exact_neighbours(queries, support, 4))


@pytest.fixture
def restored_torch() -> Iterator[None]:
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(precision)


@pytest.mark.usefixtures("restored_torch")
@pytest.mark.parametrize("allowed", ["high", "medium"])
def test_a_lower_product_precision_changes_nothing(
    device: torch.device, allowed: str, reviews: tuple[Float32Array, Float32Array]
) -> None:
    queries, support = reviews
    torch.set_float32_matmul_precision(allowed)
    found = search_on(device, queries, support, 25, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 25))
    assert torch.get_float32_matmul_precision() == allowed


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_the_factors_lose_nothing_in_a_lower_precision(device: torch.device, scale: float) -> None:
    """Hence it does not matter in which precision a device multiplies them, down to bfloat16."""
    support = vectors(100, 33) * np.float32(scale)
    index = NeighbourIndex.of(support, precision=torch.bfloat16)
    factor = DeviceLists(device, index, 5, DEFAULT_MEMORY_BUDGET)._factor(support)
    assert factor.dtype == torch.float32
    assert torch.equal(factor, factor.to(torch.bfloat16).to(torch.float32))
    left = index.selecting.round_queries(support).factor
    assert left.dtype == torch.bfloat16


class Disturbed(TorchFunctionMode):
    """Another device: what a function of torch gives for float32 tensors passes through another one."""

    def __init__(self, name: str, change: Any) -> None:
        super().__init__()
        self._name, self._change = name, change

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func.__name__ == self._name and args[0].dtype == torch.float32:
            return self._change(found)
        return found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda products: products.to(torch.bfloat16).to(torch.float32), "a product is off by"),
        (lambda products: products * torch.nan, "a product is off by inf"),
    ],
    ids=["coarse", "not a number"],
)
def test_a_device_whose_products_are_off_is_not_used(
    change: Any, reason: str, reviews: tuple[Float32Array, Float32Array]
) -> None:
    queries, support = reviews
    with Disturbed("mm", change), pytest.warns(DeviceWarning, match=f"is not used .*: {reason}"):
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 25))


def test_a_device_whose_products_are_no_numbers_later_on_is_not_used(
    reviews: tuple[Float32Array, Float32Array],
) -> None:
    """The first products are checked; the others are not."""
    queries, support = reviews
    blocks = []

    def spoilt(products: torch.Tensor) -> torch.Tensor:
        blocks.append(len(products))
        return products * torch.nan if len(blocks) > 1 else products

    with Disturbed("mm", spoilt), pytest.warns(DeviceWarning, match=r"is not used .*: it lists \d+ candidates"):
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=300_000)
    assert len(blocks) > 1
    assert_same(found, exact_neighbours(queries, support, 25))


def test_a_device_whose_bounds_are_no_numbers_is_not_used(reviews: tuple[Float32Array, Float32Array]) -> None:
    queries, support = reviews
    calls = count(1)

    def spoilt(found: Any) -> Any:
        values, columns = found
        if next(calls) % 2:  # of a block, whose least are still to be merged with those before
            return found
        return torch.return_types.topk((values * torch.nan, columns))

    with Disturbed("topk", spoilt), pytest.warns(DeviceWarning, match="a lower bound is not a number"):
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 25))


def test_a_device_that_rounds_vectors_badly_is_not_used(
    monkeypatch: pytest.MonkeyPatch, reviews: tuple[Float32Array, Float32Array]
) -> None:
    queries, support = reviews
    factor = DeviceLists._factor
    monkeypatch.setattr(DeviceLists, "_factor", lambda lists, rows: factor(lists, rows).roll(1, dims=0))
    with pytest.warns(DeviceWarning, match="a lower bound is above the distance"):
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 25))


def test_a_device_that_selects_others_is_not_used(reviews: tuple[Float32Array, Float32Array]) -> None:
    """Every second of the least is left out, so that the limits are too high."""
    queries, support = reviews

    def skipped(found: Any) -> Any:
        values, columns = found
        order = values.argsort(dim=1)[:, ::2].repeat_interleave(2, dim=1)[:, : values.shape[1]]
        return torch.return_types.topk((values.gather(1, order), columns.gather(1, order)))

    with Disturbed("topk", skipped), pytest.warns(DeviceWarning, match="other neighbours of a sample"):
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert_same(found, exact_neighbours(queries, support, 25))


def test_a_device_without_memory_goes_on_in_smaller_blocks(reviews: tuple[Float32Array, Float32Array]) -> None:
    queries, support = reviews
    sizes: list[int] = []

    def allocated(products: torch.Tensor) -> torch.Tensor:
        sizes.append(products.numel())
        if products.numel() > 200_000:
            raise torch.OutOfMemoryError("out of memory")
        return products

    with Disturbed("mm", allocated), pytest.warns(DeviceWarning, match=r"goes on in blocks of \d+ MiB") as told:
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=64 << 20)
    assert not any("not used" in str(warning.message) for warning in told)
    assert max(sizes) > 200_000 >= sizes[-1]
    assert_same(found, exact_neighbours(queries, support, 25))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (torch.OutOfMemoryError("out of memory"), "not even .* bytes of its memory are free: out of memory"),
        (RuntimeError("CUDA error: device lost"), "CUDA error: device lost"),
    ],
    ids=["no memory", "lost"],
)
def test_a_device_that_fails_is_not_used(
    error: RuntimeError, reason: str, reviews: tuple[Float32Array, Float32Array]
) -> None:
    queries, support = reviews

    def fail(_: torch.Tensor) -> torch.Tensor:
        raise error

    with Disturbed("mm", fail), pytest.warns(DeviceWarning) as told:
        found = search_on(PROCESSOR, queries, support, 25, memory_budget=8 << 20)
    assert re.search(f"is not used .*: {reason}", str(told[-1].message))
    assert_same(found, exact_neighbours(queries, support, 25))
