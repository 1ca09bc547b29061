"""Units of copies: one split for each, whatever the order of arrival, and one key for each in the evidence."""

from collections import defaultdict
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.copies import Units, united
from venn_admit.core.splits import assign_splits
from venn_admit.core.types import Split

# The document of a point, and its content.
a_point = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([bytes([number]) for number in range(12)]))
some_points = st.lists(a_point, max_size=30)
batch_sizes = st.integers(1, 5)
any_split = st.sampled_from([Split.KNN, Split.MC, Split.VP])


def placed(points: list[tuple[str, bytes]], seed: int, batch: int) -> dict[str, Split]:
    """The split of each document after its points came in batches."""
    units = Units(lambda keys: assign_splits(keys, seed=seed))
    first: dict[bytes, str] = {}
    splits: dict[str, set[Split]] = defaultdict(set)
    for start in range(0, len(points), batch):
        part = points[start : start + batch]
        for key, content in part:
            units.join(key, first.setdefault(content, key))
        for (key, _), split in zip(part, units.splits([key for key, _ in part]), strict=True):
            splits[key].add(split)
    return {key: split for key, (split,) in (splits | {key: {to} for key, to in units.moved().items()}).items()}


@given(some_points, st.integers(0, 100), batch_sizes, batch_sizes, st.randoms(use_true_random=False))
def test_splits_depend_neither_on_order_nor_on_batches(
    points: list[tuple[str, bytes]], seed: int, batch: int, other: int, random: Random
) -> None:
    assert placed(points, seed, batch) == placed(random.sample(points, len(points)), seed, other)


@given(some_points, st.integers(0, 100), batch_sizes)
def test_a_unit_has_one_split_drawn_by_the_first_of_its_keys(
    points: list[tuple[str, bytes]], seed: int, batch: int
) -> None:
    keys = [key for key, _ in points]
    splits = placed(points, seed, batch)
    for key, unit in zip(keys, united(keys, [content for _, content in points]), strict=True):
        assert splits[key] == assign_splits([unit], seed=seed)[0]


@given(some_points)
def test_units_are_what_copies_connect(points: list[tuple[str, bytes]]) -> None:
    keys, contents = [key for key, _ in points], [content for _, content in points]
    # Documents take over the first key around them until nothing changes.
    expected = dict(zip(keys, keys, strict=True))
    while True:
        least: dict[bytes, str] = {}
        for key, content in points:
            least[content] = min(least.get(content, expected[key]), expected[key])
        changed = {key: min(expected[key], *(least[c] for k, c in points if k == key)) for key in expected}
        if changed == expected:
            break
        expected = changed
    assert united(keys, contents) == [expected[key] for key in keys]


@given(any_split, any_split, st.integers(0, 100))
def test_what_is_stored_keeps_its_split(first: Split, second: Split, seed: int) -> None:
    units = Units(lambda keys: assign_splits(keys, seed=seed))
    units.keep("m", first)
    units.join("a", "m")
    assert units.splits(["a", "z"]) == [first, assign_splits(["z"], seed=seed)[0]]
    assert units.moved_before() == {}
    # A third connects it with what is stored in another split: all go to the first of knn, mc and vp.
    units.keep("n", second)
    units.join("a", "n")
    least = min(first, second, key=list(Split).index)
    assert units.splits(["n", "a", "m"]) == [least] * 3
    assert set(units.moved_before()) == {key for key, was in (("m", first), ("n", second)) if was != least}
    assert all(split == least for split in units.moved().values())
