"""Weighted decisions that wait at the same time share a pass over the localizer's support, and nothing else."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Bench
from venn_admit.core.approximation.distance_tiles import SupportTiles
from venn_admit.core.approximation.localizer import LocalizerSupport, category_weight
from venn_admit.core.types import Float32Array, FloatArray, IntArray
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.methods import shared_passes
from venn_admit.methods.shared_passes import SharedPasses, SharedWeights


@dataclass
class Held:
    """A support whose passes are counted, and wait until they are let go."""

    support: LocalizerSupport
    sizes: list[int] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    fails: Callable[[Float32Array], bool] = lambda _: False
    interrupts: list[BaseException] = field(default_factory=list)

    def category_weight(self, queries: Float32Array, low: IntArray, high: IntArray) -> FloatArray:
        self.sizes.append(len(queries))
        assert self.let_go.wait(PATIENCE_SECONDS)
        if len(self.sizes) > 1 and self.interrupts:
            raise self.interrupts.pop()
        if self.fails(queries):
            raise MemoryError("no room")
        return self.support.category_weight(queries, low, high)


def drawn(count: int) -> tuple[Float32Array, Float32Array, IntArray, IntArray]:
    """Queries, support and windows."""
    rng = np.random.default_rng(count)
    support = rng.standard_normal((1500, 20)).astype(np.float32)
    low = rng.integers(0, 1000, count)
    return rng.standard_normal((count, 20)).astype(np.float32), support, low, low + rng.integers(1, 500, count)


def await_waiting(shared: SharedWeights, count: int) -> None:
    """Return once a request makes a pass and a number of others wait."""

    def wait() -> bool:
        with shared._passes._changed:
            return shared._passes._is_passing and len(shared._passes._waiting) == count

    wait_until(wait, f"{count} requests wait")


@contextmanager
def asked_at_once(
    held: Held, parts: list[slice], queries: Float32Array, low: IntArray, high: IntArray
) -> Iterator[list[Any]]:
    """The futures of requests for these rows, of which the first makes a pass while all others wait."""
    shared = SharedWeights(held)  # type: ignore[arg-type]
    with ThreadPoolExecutor(len(parts)) as threads:
        futures = []
        for number, rows in enumerate(parts):
            futures.append(threads.submit(shared.category_weight, queries[rows], low[rows], high[rows]))
            await_waiting(shared, number)
        held.let_go.set()
        yield futures


def test_those_that_wait_share_one_pass_and_no_bit_changes() -> None:
    queries, support, low, high = drawn(40)
    held = Held(LocalizerSupport(support, 0.7, keep_tiles=True))
    parts = [slice(row, row + 2) for row in range(0, 40, 2)]
    with asked_at_once(held, parts, queries, low, high) as futures:
        found = np.concatenate([future.result(PATIENCE_SECONDS) for future in futures])
    assert held.sizes == [2, 38]
    np.testing.assert_array_equal(found, category_weight(queries, support, low, high, 0.7))


def test_a_pass_has_a_limit_and_a_large_request_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_passes, "MOST_QUERIES", 10)
    queries, support, low, high = drawn(40)
    held = Held(LocalizerSupport(support, 0.7))
    parts = [slice(0, 1), slice(1, 26), *(slice(row, row + 2) for row in range(26, 40, 2))]
    with asked_at_once(held, parts, queries, low, high) as futures:
        found = np.concatenate([future.result(PATIENCE_SECONDS) for future in futures])
    assert max(held.sizes) == 10
    assert held.sizes[:3] == [1, 10, 10], "small requests need not wait for all parts of the large one"
    assert sum(held.sizes) == 40
    np.testing.assert_array_equal(found, category_weight(queries, support, low, high, 0.7))


def test_an_error_is_only_for_the_request_that_causes_it() -> None:
    queries, support, low, high = drawn(6)
    queries[3] = 0
    held = Held(LocalizerSupport(support, 0.7), fails=lambda given: bool((given == 0).all(axis=1).any()))
    with asked_at_once(held, [slice(row, row + 1) for row in range(6)], queries, low, high) as futures:
        with pytest.raises(MemoryError, match="no room"):
            futures[3].result(PATIENCE_SECONDS)
        others = [row for row in range(6) if row != 3]
        found = [futures[row].result(PATIENCE_SECONDS)[0] for row in others]
    assert held.sizes == [1, 5, 1, 1, 1, 1, 1]
    expected = category_weight(queries[others], support, low[others], high[others], 0.7)
    np.testing.assert_array_equal(found, expected)


def test_an_interruption_is_only_for_the_thread_that_makes_the_pass() -> None:
    queries, support, low, high = drawn(6)
    held = Held(LocalizerSupport(support, 0.7), interrupts=[KeyboardInterrupt()])
    with asked_at_once(held, [slice(row, row + 1) for row in range(6)], queries, low, high) as futures:
        ended = [future.exception(PATIENCE_SECONDS) for future in futures]
    (interrupted,) = (row for row, error in enumerate(ended) if error is not None)
    assert isinstance(ended[interrupted], KeyboardInterrupt)
    assert held.sizes == [1, 5, 4]
    others = [row for row in range(6) if row != interrupted]
    found = [futures[row].result()[0] for row in others]
    np.testing.assert_array_equal(found, category_weight(queries[others], support, low[others], high[others], 0.7))


def test_no_queries_need_no_pass() -> None:
    queries, support, low, high = drawn(1)
    held = Held(LocalizerSupport(support, 0.7))
    assert SharedWeights(held).category_weight(queries[:0], low[:0], high[:0]).shape == (0,)  # type: ignore[arg-type]
    assert held.sizes == []


@pytest.mark.parametrize("method", ["venn-admit", "venn-abers"])
def test_concurrent_decisions_take_fewer_passes_than_decisions(
    edge: Bench, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "venn-abers":
        edge.calibrate_abers("edge", score="network")
    with np.load(edge.folder / "score.npz") as arrays:
        vectors, logits = arrays["r"].astype(np.float32), arrays["f"].astype(np.float32)
    alone = [
        PointScorer(edge.workspace()).score("edge", vector, logits=own, weighted=True)
        for vector, own in zip(vectors, logits, strict=True)
    ]
    # A category is weighed for singletons alone by venn-admit.
    rows = [row for row, one in enumerate(alone) if one.fields["lower"] is not None][:30]
    assert len(rows) >= 10
    scorer = PointScorer(edge.workspace())
    scorer.score("edge", vectors[rows[0]], logits=logits[rows[0]], weighted=True)  # which reads the snapshot
    passes: list[int] = []
    everyone_asked = threading.Event()
    asked: list[int] = []
    read, ask = SupportTiles.read, SharedPasses.ask

    def counted(tiles: SupportTiles) -> Any:
        passes.append(len(passes))
        if len(passes) == 1:
            assert everyone_asked.wait(PATIENCE_SECONDS)
        return read(tiles)

    def noted(shared: SharedPasses[Any, Any], question: Any) -> Any:
        asked.append(len(question))
        if len(asked) == len(rows):
            everyone_asked.set()
        return ask(shared, question)

    monkeypatch.setattr(SupportTiles, "read", counted)
    monkeypatch.setattr(SharedPasses, "ask", noted)
    with ThreadPoolExecutor(len(rows)) as threads:
        futures = [
            threads.submit(scorer.score, "edge", vectors[row], logits=logits[row], weighted=True) for row in rows
        ]
        found = [future.result(PATIENCE_SECONDS) for future in futures]
    assert sum(asked) == len(rows)
    assert len(passes) <= 3 < len(rows)
    for row, one in zip(rows, found, strict=True):
        assert one.fields == alone[row].fields
        assert one.category_counts.tolist() == alone[row].category_counts.tolist()
