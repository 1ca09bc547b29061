"""Mini-batches: every document once, within the limit, of similar length, in an order that the generator decides."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.layer.batches import epoch_batches


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=80),
    batch_tokens=st.integers(1, 100),
    seed=st.none() | st.integers(0, 5),
)
def test_every_document_is_in_one_mini_batch_within_the_limit(
    lengths: list[int], batch_tokens: int, seed: int | None
) -> None:
    array = np.array(lengths)
    rows = np.arange(len(lengths))
    generator = None if seed is None else np.random.default_rng(seed)
    parts = epoch_batches(array, rows, batch_tokens=batch_tokens, generator=generator)
    assert sorted(np.concatenate(parts).tolist()) == rows.tolist()
    assert all(len(part) == 1 or len(part) * array[part].max() <= batch_tokens for part in parts)


def test_mini_batches_hold_documents_of_similar_length() -> None:
    lengths = np.random.default_rng(0).integers(5, 100, 5000)
    parts = epoch_batches(lengths, np.arange(5000), batch_tokens=2048, generator=np.random.default_rng(1))
    padded = sum(len(part) * lengths[part].max() for part in parts)
    assert padded < 1.05 * lengths.sum()


def test_epochs_differ_in_order() -> None:
    lengths, rows = np.full(1000, 10), np.arange(1000)
    first, same, second = (
        np.concatenate(epoch_batches(lengths, rows, batch_tokens=100, generator=np.random.default_rng([0, epoch])))
        for epoch in (1, 1, 2)
    )
    assert (first == same).all()
    assert (first != second).any()
