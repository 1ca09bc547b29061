"""Batches that are merged hold the same rows, and memory stays within the budget however many there are."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import venn_admit
from tests.files.samples import CLASS_COUNT, DIMENSION, sample
from tests.files.test_sources import array_source, rows_of
from venn_admit.files.batches import merged
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.records import ExemplarBatch
from venn_admit.files.sources import array_layout

BUDGET = 16 << 20


def single_rows(*, vectors: bool) -> list[ExemplarBatch]:
    columns = sample()
    layout = array_layout("made", DIMENSION if vectors else None, ClassNumbers(CLASS_COUNT), CLASS_COUNT, BUDGET)
    found: list[ExemplarBatch] = []
    for row in range(len(columns["label"])):
        one = {name: values[row : row + 1] for name, values in columns.items()}
        source = array_source(one) if vectors else array_source(one, vectors=None)
        found += source.checked(layout, row)
    return found


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("row_count", [1, 2, 3, 1000])
def test_the_rows_are_the_same(row_count: int, vectors: bool) -> None:
    batches = single_rows(vectors=vectors)
    found = list(merged(iter(batches), row_count))
    assert rows_of(found) == rows_of(batches)
    assert [len(batch.external_ids) for batch in found[:-1]] == [row_count] * (len(found) - 1)
    assert [batch.first_row for batch in found] == list(range(0, len(batches), row_count))
    assert list(merged(iter([]), row_count)) == []


@pytest.mark.parametrize(("batch_rows", "rows"), [(8, 40_000), (20_000, 100_000)])
def test_memory_is_bounded(batch_rows: int, rows: int) -> None:
    """No more of 40 or 100 MB of vectors is held than the budget and a batch of the model, twice."""
    dimension, generator = 256, np.random.default_rng(0)

    def outputs(count: int) -> tuple[np.ndarray, np.ndarray]:
        return generator.random((count, dimension), np.float32), generator.random((count, 2), np.float32)

    batches: Iterator[tuple[int]] = ((batch_rows,) for _ in range(rows // batch_rows))
    source = venn_admit.hook(outputs).over(batches, inputs=0).source(None, memory_budget=BUDGET)
    tracemalloc.start()
    try:
        read = sum(
            len(batch.logits) for batch in source.batches(dimension=dimension, class_count=2, class_names=("a", "b"))
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == rows
    ids = rows * 250  # a digest of each row, so that equal ones get ids of their own
    assert peak <= BUDGET + ids + 2 * batch_rows * (dimension + 2) * 4 < rows * dimension * 4 + ids
