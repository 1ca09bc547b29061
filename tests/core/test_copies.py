"""Units of copies: documents that hold the same points, one split for each unit, and one id in the evidence."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.copies import HeldOutDocument, shared_split, united
from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits

# The document of a point, and its content.
a_point = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([bytes([number]) for number in range(3)]))
some_points = st.lists(a_point, max_size=30)
some_documents = st.lists(
    st.builds(
        HeldOutDocument,
        st.sampled_from("abcdefgh"),
        st.sampled_from([Split.KNN, Split.MC, Split.VP]),
        st.integers(1, 9),
        st.booleans(),
    ),
    min_size=1,
)


@given(some_points)
def test_units_are_the_documents_with_the_same_points(points: list[tuple[str, bytes]]) -> None:
    contents: dict[str, list[bytes]] = defaultdict(list)
    for key, content in points:
        contents[key].append(content)
    expected = [
        min(other for other in contents if sorted(contents[other]) == sorted(contents[key])) for key, _ in points
    ]
    assert united([key for key, _ in points], [content for _, content in points]) == expected


def test_points_without_a_vector_are_no_copies() -> None:
    assert united(["b", "a", "a"], [None, None, b"1"]) == ["b", "a", "a"]


@given(some_documents, st.integers(0, 100))
def test_a_unit_stays_where_it_was_held_out_or_is_drawn_by_its_first_id(unit: list[HeldOutDocument], seed: int) -> None:
    before = {one.split for one in unit if not one.is_new}
    expected = next(
        (split for split in (Split.KNN, Split.MC, Split.VP) if split in before),
        assign_splits([min(one.key for one in unit)], seed=seed)[0],
    )
    assert shared_split(unit, lambda keys: assign_splits(keys, seed=seed)) is expected
