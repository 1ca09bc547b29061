"""Splits and key hashes depend on the seed and the key, and on nothing else."""

from collections import Counter
from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits, hash_keys
from venn_admit.errors import InvalidInputError

any_keys = st.lists(st.text(), max_size=30)
any_seed = st.integers(-(2**63), 2**63 - 1)


@given(any_keys, any_seed, st.randoms(use_true_random=False))
def test_a_split_does_not_depend_on_arrival_order_or_company(keys: list[str], seed: int, random: Random) -> None:
    splits = dict(zip(keys, assign_splits(keys, seed=seed), strict=True))
    shuffled = random.sample(keys, len(keys))
    assert assign_splits(shuffled, seed=seed) == [splits[key] for key in shuffled]
    assert [assign_splits([key], seed=seed)[0] for key in keys] == [splits[key] for key in keys]


@given(any_keys, any_seed)
def test_held_out_points_fall_to_knn_mc_or_vp(keys: list[str], seed: int) -> None:
    assert set(assign_splits(keys, seed=seed)) <= {Split.KNN, Split.MC, Split.VP}


def test_the_hash_is_fixed_for_good() -> None:
    """Stored splits must be found again by every later version."""
    keys = ["a", "", "Füße", "a\x00b"]
    assert [hex(value) for value in hash_keys(keys, seed=0, purpose="split").tolist()] == [
        "0x162163959353cab0",
        "0xe178d37612407f3",
        "0x6e31e9779148a099",
        "0x38445a1c25865e33",
    ]
    assert hex(hash_keys(["a"], seed=-1, purpose="split")[0]) == "0x185e05ca63a81bea"
    assert hex(hash_keys(["a"], seed=0, purpose="batches")[0]) == "0x300de3cf6851cc93"


@pytest.mark.parametrize("seed", [0, 1, -7])
def test_shares_are_kept(seed: int) -> None:
    count = 40_000
    split_sizes = Counter(assign_splits([f"row-{row}" for row in range(count)], seed=seed))
    for split, share in ((Split.KNN, 0.10), (Split.MC, 0.45), (Split.VP, 0.45)):
        standard_error = (share * (1 - share) / count) ** 0.5
        assert abs(split_sizes[split] / count - share) < 4 * standard_error


def test_the_cut_points_are_exact() -> None:
    """A key falls to knn exactly if its hash, as a fraction of 2**64, lies below the share."""
    keys = [f"row-{row}" for row in range(200)]
    for key, value in zip(keys, hash_keys(keys, seed=3, purpose="split").tolist(), strict=True):
        exactly, above = Decimal(f"{value * 5**64}E-64"), Decimal(f"{(value + 1) * 5**64}E-64")
        assert assign_splits([key], seed=3, knn_share=above, mc_share=Decimal(0)) == [Split.KNN]
        assert assign_splits([key], seed=3, knn_share=exactly, mc_share=Decimal(0)) == [Split.VP]


@pytest.mark.parametrize(
    ("knn_share", "mc_share", "expected"),
    [("1", "0", Split.KNN), ("0", "1", Split.MC), ("0", "0", Split.VP), ("0.0", "1.00", Split.MC)],
)
def test_a_share_of_one_takes_all(knn_share: str, mc_share: str, expected: Split) -> None:
    splits = assign_splits(
        [str(row) for row in range(1000)], seed=0, knn_share=Decimal(knn_share), mc_share=Decimal(mc_share)
    )
    assert set(splits) == {expected}


@pytest.mark.parametrize(
    ("knn_share", "mc_share"), [("-0.1", "0.5"), ("0.6", "0.5"), ("NaN", "0.5"), ("0.1", "Infinity")]
)
def test_impossible_shares_are_refused(knn_share: str, mc_share: str) -> None:
    with pytest.raises(InvalidInputError, match="expected shares of knn and mc"):
        assign_splits(["a"], seed=0, knn_share=Decimal(knn_share), mc_share=Decimal(mc_share))


@given(st.lists(st.text(), min_size=1, max_size=30, unique=True), any_seed)
def test_seed_and_purpose_change_every_hash(keys: list[str], seed: int) -> None:
    hashes = hash_keys(keys, seed=seed, purpose="split")
    assert hashes.dtype == np.uint64
    assert len(set(hashes.tolist())) == len(keys)
    assert not np.any(hashes == hash_keys(keys, seed=seed ^ 1, purpose="split"))
    assert not np.any(hashes == hash_keys(keys, seed=seed, purpose="order"))


def test_a_lone_surrogate_is_hashed() -> None:
    assert hash_keys(["\ud800"], seed=0, purpose="split") != hash_keys(["\ud801"], seed=0, purpose="split")


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_a_seed_beyond_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(InvalidInputError, match="expected a seed"):
        hash_keys(["a"], seed=seed, purpose="split")


@pytest.mark.parametrize("purpose", ["", "a" * 17, "ä", "a\x00"])
def test_a_purpose_that_does_not_fit_is_refused(purpose: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a purpose"):
        hash_keys(["a"], seed=0, purpose=purpose)
