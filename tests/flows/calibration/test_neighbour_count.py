"""K is chosen before the first fit, on split knn alone, and what is stored has the K that was chosen."""

import numpy as np
import pytest

from tests.running import Arrays, Bench
from venn_admit.core.approximation.neighbour_counts import TriedCount, choose
from venn_admit.errors import ConflictError, InvalidInputError, NotReadyError
from venn_admit.flows.calibration.neighbour_count import asks_to_choose, choose_neighbour_count
from venn_admit.flows.data.catalogue import find


def rows(count: int, seed: int) -> Arrays:
    """Two classes that overlap; ids differ by seed."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(count, 4)).astype(np.float32)
    labels = (vectors[:, 0] + generator.normal(0, 0.5, count) > 0).astype(np.int64)
    logits = np.stack([-vectors[:, 0], vectors[:, 0]], axis=1).astype(np.float32)
    return {"id": np.array([f"{seed}-{row}" for row in range(count)]), "r": vectors, "f": logits, "y": labels}


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.create("one", dimension=4)
    bench.ingest("one", bench.write("train.npz", rows(60, 0)), "train")
    return bench


def choose_for(bench: Bench) -> tuple[TriedCount, list[TriedCount]]:
    tried: list[TriedCount] = []
    return choose_neighbour_count(bench.workspace(), "one", on_tried=tried.append), tried


def test_the_choice_is_what_neighbours_are_stored_for(bench: Bench) -> None:
    bench.ingest("one", bench.write("held.npz", rows(400, 1)), "held-out")
    chosen, tried = choose_for(bench)
    # As many as there are training exemplars to be neighbours, at most.
    assert [one.neighbour_count for one in tried] == [5, 10, 25, 50]
    assert chosen == choose(tried)
    assert find(bench.engine, "one").neighbour_count == chosen.neighbour_count
    fitted = bench.fit("one")
    assert bench.rows("SELECT DISTINCT cardinality(neighbour_ids) FROM neighbours") == [(chosen.neighbour_count,)]
    # The same points, fitted in the same way.
    assert (fitted.record.dev_discrepancies, fitted.record.full_matches) == (chosen.discrepancies, chosen.full_matches)
    with pytest.raises(ConflictError, match=f"has results with K {chosen.neighbour_count}: fit without choosing"):
        choose_for(bench)


def test_data_are_needed(bench: Bench) -> None:
    with pytest.raises(NotReadyError, match="no exemplars of 'one' are in split knn"):
        choose_for(bench)


def test_nothing_else_can_be_asked_for() -> None:
    assert [asks_to_choose(one) for one in (None, "auto")] == [False, True]
    with pytest.raises(InvalidInputError, match="k: expected auto, which chooses it, got '50'; state a number"):
        asks_to_choose("50")
