"""Exemplars in the store: what makes one known, what its label's history is, and what contradicts it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, Engine, text

from venn_admit.core.content import content_digests
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array
from venn_admit.errors import ConflictError, DatabaseError
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers, exemplars, storing, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.storing import IncomingExemplars, StoredExemplars

DIMENSION = 3


def make_classifier(connection: Connection, name: str = "small", dimension: int = DIMENSION) -> Classifier:
    return classifiers.create(
        connection,
        name=name,
        class_names=("no", "yes"),
        dimension=dimension,
        neighbour_count=2,
        knn_share=Decimal("0.1"),
        mc_share=Decimal("0.45"),
        seed=0,
    )


@pytest.fixture(scope="module")
def engine(shared_engine: Engine) -> Engine:
    """A database for all tests here: what they write is rolled back."""
    return shared_engine


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """A transaction that is rolled back."""
    with connect(engine) as connection:
        yield connection


@pytest.fixture
def classifier(connection: Connection) -> Classifier:
    return make_classifier(connection)


def rows(names: Sequence[str], split: Split = Split.SCORED, labels: Sequence[int] | None = None) -> IncomingExemplars:
    """Exemplars whose content follows from their names."""
    seeds = [int.from_bytes(name.encode(), "big") for name in names]
    vectors = np.array([np.random.default_rng(seed).normal(size=DIMENSION) for seed in seeds], dtype=np.float32)
    logits = np.array([np.random.default_rng(seed + 1).normal(size=2) for seed in seeds], dtype=np.float32)
    n = len(names)
    return IncomingExemplars(
        first_row=100,
        external_ids=names,
        document_ids=[None] * n,
        splits=[split] * n,
        vectors=vectors.reshape(n, DIMENSION),
        logits=logits.reshape(n, 2),
        predicted=logits.reshape(n, 2).argmax(axis=1),
        labels=np.full(n, -1) if labels is None else np.array(labels),
        attributes=[{}] * n,
        digests=content_digests(vectors.reshape(n, DIMENSION), logits.reshape(n, 2), [None] * n),
        point_digests=content_digests(vectors.reshape(n, DIMENSION), logits.reshape(n, 2), [None] * n),
    )


def digested(incoming: IncomingExemplars) -> IncomingExemplars:
    """The same rows with the digests of their content."""
    return replace(
        incoming,
        digests=content_digests(incoming.vectors, incoming.logits, incoming.document_ids),
        point_digests=content_digests(incoming.vectors, incoming.logits, [None] * len(incoming.logits)),
    )


def store(
    connection: Connection, classifier: Classifier, incoming: IncomingExemplars, selection: str = "random"
) -> StoredExemplars:
    return storing.store(connection, classifier, incoming, selection=selection, source="file")


def label_events(connection: Connection) -> list[tuple[Any, ...]]:
    query = text(
        "SELECT external_id, label_event.label, selection, source FROM label_event"
        " JOIN exemplar ON exemplar_id = exemplar.id ORDER BY label_event.id"
    )
    return [tuple(row) for row in connection.execute(query)]


def labels(connection: Connection) -> dict[str, int | None]:
    found = connection.execute(text("SELECT external_id, label FROM exemplar ORDER BY id")).all()
    return {row.external_id: row.label for row in found}


class TestIds:
    def test_follow_the_rows_and_ascend(self, connection: Connection, classifier: Classifier) -> None:
        stored = store(connection, classifier, rows(["c", "a", "b"]))
        assert stored.new_rows.tolist() == [0, 1, 2]
        assert stored.ids.tolist() == sorted(stored.ids.tolist())
        assert list(labels(connection)) == ["c", "a", "b"]

    def test_of_known_rows_are_theirs(self, connection: Connection, classifier: Classifier) -> None:
        first = dict(zip("abc", store(connection, classifier, rows(["a", "b", "c"])).ids.tolist(), strict=True))
        stored = store(connection, classifier, rows(["d", "b", "d", "a", "e"]))
        assert stored.new_rows.tolist() == [0, 4]
        d, b, d_again, a, e = stored.ids.tolist()
        assert (a, b) == (first["a"], first["b"])
        assert d == d_again
        assert max(first.values()) < d < e

    def test_of_nothing(self, connection: Connection, classifier: Classifier) -> None:
        stored = store(connection, classifier, rows([]))
        assert (stored.ids.tolist(), stored.new_rows.tolist()) == ([], [])

    def test_belong_to_a_classifier(self, connection: Connection, classifier: Classifier) -> None:
        other = make_classifier(connection, "other")
        first, second = (store(connection, owner, rows(["a"])).ids[0] for owner in (classifier, other))
        assert first != second


class TestLabels:
    def test_come_with_an_event(self, connection: Connection, classifier: Classifier) -> None:
        store(connection, classifier, rows(["a", "b", "c"], labels=[1, -1, 0]), selection="selected")
        assert labels(connection) == {"a": 1, "b": None, "c": 0}
        assert label_events(connection) == [("a", 1, "selected", "file"), ("c", 0, "selected", "file")]

    def test_that_come_later_are_the_first(self, connection: Connection, classifier: Classifier) -> None:
        store(connection, classifier, rows(["a", "b", "c"]))
        store(connection, classifier, rows(["a", "b", "d"], labels=[1, -1, 0]), selection="selected")
        assert labels(connection) == {"a": 1, "b": None, "c": None, "d": 0}
        assert sorted(label_events(connection)) == [("a", 1, "selected", "file"), ("d", 0, "selected", "file")]

    def test_that_lack_later_change_nothing(self, connection: Connection, classifier: Classifier) -> None:
        store(connection, classifier, rows(["a"], labels=[1]))
        store(connection, classifier, rows(["a"]))
        store(connection, classifier, rows(["a"], labels=[1]))
        assert labels(connection) == {"a": 1}
        assert len(label_events(connection)) == 1

    def test_that_come_twice_at_once_are_one_event(self, connection: Connection, classifier: Classifier) -> None:
        store(connection, classifier, rows(["a"]))
        store(connection, classifier, rows(["a", "a"], labels=[1, 1]))
        assert label_events(connection) == [("a", 1, "random", "file")]

    def test_that_contradict_each_other_for_a_known_row(self, connection: Connection, classifier: Classifier) -> None:
        store(connection, classifier, rows(["a"]))
        with pytest.raises(ConflictError, match="rows 101 and 102 both have id 'a', with different content"):
            store(connection, classifier, rows(["b", "a", "a"], labels=[0, 0, 1]))

    def test_of_a_new_row_that_comes_twice(self, connection: Connection, classifier: Classifier) -> None:
        with pytest.raises(ConflictError, match="rows 100 and 101 both have id 'a', with different content"):
            store(connection, classifier, rows(["a", "a"], labels=[0, 1]))


class TestConflicts:
    @pytest.mark.parametrize(
        ("before", "after", "allowed"),
        [
            (Split.SCORED, Split.SCORED, True),
            (Split.TRAIN, Split.SCORED, True),
            (Split.VP, Split.SCORED, True),
            (Split.TRAIN, Split.TRAIN, True),
            (Split.VP, Split.VP, True),
            (Split.SCORED, Split.TRAIN, False),
            (Split.SCORED, Split.MC, False),
            (Split.TRAIN, Split.MC, False),
            (Split.MC, Split.TRAIN, False),
        ],
    )
    def test_of_splits(
        self, connection: Connection, classifier: Classifier, before: Split, after: Split, allowed: bool
    ) -> None:
        first = store(connection, classifier, rows(["a"], before, [1]))
        again = rows(["a"], after, [1])
        if allowed:
            assert store(connection, classifier, again).ids.tolist() == first.ids.tolist()
        else:
            with pytest.raises(ConflictError, match=r"file: row 100, id 'a': already stored .* the file you meant"):
                store(connection, classifier, again)
        assert exemplars.split_counts(connection, classifier)[before] == 1

    @pytest.mark.parametrize("changed", ["vectors", "logits", "document_ids"])
    def test_of_content(self, connection: Connection, classifier: Classifier, changed: str) -> None:
        incoming = rows(["a", "b"])
        store(connection, classifier, incoming)
        value: Any = [None, "document"] if changed == "document_ids" else getattr(incoming, changed) + np.float32(1e-3)
        with pytest.raises(ConflictError, match="already stored with another vector, logits or document"):
            store(connection, classifier, digested(replace(incoming, **{changed: value})))

    def test_attributes_are_no_content(self, connection: Connection, classifier: Classifier) -> None:
        incoming = rows(["a"])
        first = store(connection, classifier, replace(incoming, attributes=[{"stars": 3}]))
        again = store(connection, classifier, replace(incoming, attributes=[{"stars": 4}]))
        assert first.ids.tolist() == again.ids.tolist()
        assert connection.execute(text("SELECT attributes FROM exemplar")).scalar_one() == {"stars": 3}


def floats(*values: float) -> Float32Array:
    return np.array(values, dtype=np.float32)


def test_digests_tell_contents_apart() -> None:
    """To the last bit, and a document that has no name from none."""
    vector, logits = floats(1, 2, 3), floats(4, 5)
    contents: list[tuple[Float32Array, Float32Array, str | None]] = [
        (vector, logits, None),
        (vector, logits, ""),
        (vector, logits, "document"),
        (vector, logits[::-1], None),
        (floats(1, 2, -3), logits, None),
        (floats(1, 2, 0.0), logits, None),
        (floats(1, 2, -0.0), logits, None),
    ]
    vectors, each_logits, documents = zip(*contents, strict=True)
    digests = content_digests(np.array(vectors), np.array(each_logits), documents)
    assert len(set(digests)) == 7
    assert {len(digest) for digest in digests} == {16}


@pytest.mark.parametrize("has_vectors", [True, False])
def test_digests_are_those_that_are_stored(has_vectors: bool) -> None:
    """The digest is of bytes one after the other: what was stored by any version must be found again."""
    rng = np.random.default_rng(0)
    vectors, logits = (rng.normal(size=(700, width)).astype(np.float32) for width in (5, 3))
    documents = [None if row % 3 else f"d\u00e9{row}" for row in range(700)]
    expected = [
        blake2b(
            (vector.tobytes() if has_vectors else b"")
            + of.tobytes()
            + (b"" if document is None else b"\0" + document.encode()),
            digest_size=16,
        ).digest()
        for vector, of, document in zip(vectors, logits, documents, strict=True)
    ]
    assert content_digests(vectors if has_vectors else None, logits, documents) == expected


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"text": "ß\u0301 🙂 \n \\ \" ' \\N \u2028", "": None},
        {"nested": {"list": [1, 2.5, True, None, {"deep": []}], "number": -1.5e10, "small": 5e-324}},
        {"long": "x" * 1_000_000},
    ],
)
def test_attributes_come_back(connection: Connection, classifier: Classifier, attributes: dict[str, Any]) -> None:
    stored = store(connection, classifier, replace(rows(["a", "b"]), attributes=[attributes, {}]))
    described = exemplars.described(connection, stored.ids[::-1])
    assert [row.attributes for row in described] == [{}, attributes]
    assert [row.external_id for row in described] == ["b", "a"]


def test_reading_in_the_order_asked_for(connection: Connection, classifier: Classifier) -> None:
    incoming = rows([f"{number}" for number in range(50)], Split.TRAIN, [0, 1] * 25)
    more = rows([f"{number}" for number in range(50, 90)], Split.VP, [0, 1] * 20)
    ids = np.concatenate([store(connection, classifier, part).ids for part in (incoming, more)])
    vectors, logits = np.concatenate([incoming.vectors, more.vectors]), np.concatenate([incoming.logits, more.logits])
    chosen = np.random.default_rng(0).integers(0, 90, 200)  # with repeats
    np.testing.assert_array_equal(exemplars.vectors(connection, classifier, ids[chosen]), vectors[chosen])
    np.testing.assert_array_equal(exemplars.network_logits(connection, classifier, ids[chosen]), logits[chosen])
    assert exemplars.vectors(connection, classifier, ids[:0]).shape == (0, DIMENSION)
    assert exemplars.network_logits(connection, classifier, ids[:0]).shape == (0, 2)


@pytest.mark.parametrize("block_rows", [1, 7, 50, 1000])
def test_the_support_in_order_of_ingestion(connection: Connection, classifier: Classifier, block_rows: int) -> None:
    parts = [rows([f"{part}-{number}" for number in range(25)], Split.TRAIN, [part] * 25) for part in (1, 0)]
    store(connection, make_classifier(connection, "other"), parts[0])
    ids = []
    for part in parts:
        ids.append(store(connection, classifier, part).ids)
        store(connection, classifier, rows([f"vp {len(ids)}"], Split.VP, [0]))
    support.renew(connection, classifier, int(ids[-1][-1]))
    store(connection, classifier, rows(["waits"], Split.TRAIN, [0]))
    support_ids = exemplars.support_ids(connection, classifiers.by_id(connection, classifier.id))
    np.testing.assert_array_equal(support_ids, np.concatenate(ids))
    found = list(exemplars.support_blocks(connection, classifier, support_ids, block_rows))
    sizes = [min(block_rows, 50 - start) for start in range(0, 50, block_rows)]
    assert [len(block[0]) for block in found] == sizes
    assert np.concatenate([block[0] for block in found]).tolist() == [1] * 25 + [0] * 25
    expected = np.concatenate([part.logits for part in parts])
    np.testing.assert_array_equal(np.concatenate([block[1] for block in found]), expected)
    vectors = list(exemplars.support_vector_blocks(connection, classifier, support_ids, block_rows))
    assert [len(block) for block in vectors] == sizes
    np.testing.assert_array_equal(np.concatenate(vectors), np.concatenate([part.vectors for part in parts]))


def test_no_support(connection: Connection, classifier: Classifier) -> None:
    ids = exemplars.support_ids(connection, classifier)
    assert ids.shape == (0,)
    assert list(exemplars.support_blocks(connection, classifier, ids, 5)) == []
    assert list(exemplars.support_vector_blocks(connection, classifier, ids, 5)) == []


def test_split_keys_do_not_show_the_order_of_arrival(connection: Connection, classifier: Classifier) -> None:
    names = ["b", "ä", "Z", "a", "10", "9"]
    incoming = replace(rows(names, Split.KNN, [0] * 6), document_ids=["d", None, "d", None, None, "e"])
    ids = dict(zip(names, store(connection, classifier, incoming).ids.tolist(), strict=True))
    keys = exemplars.split_keys(connection, classifier, Split.KNN)
    assert keys.row_keys == sorted(names)
    assert keys.document_keys == ["10", "e", "d", "a", "d", "ä"]
    assert keys.ids.tolist() == [ids[name] for name in sorted(names)]
    none = exemplars.split_keys(connection, classifier, Split.VP)
    assert (none.ids.tolist(), none.row_keys, none.document_keys) == ([], [], [])


def test_counts_and_classes(connection: Connection, classifier: Classifier) -> None:
    store(connection, classifier, rows(["a", "b", "c"], Split.MC, [1, 0, 1]))
    store(connection, classifier, rows(["d"], Split.VP, [1]))
    counts = exemplars.split_counts(connection, classifier)
    assert counts == {Split.TRAIN: 0, Split.KNN: 0, Split.MC: 3, Split.VP: 1, Split.SCORED: 0}
    classes = [exemplars.split_classes(connection, classifier, split) for split in (Split.MC, Split.VP, Split.KNN)]
    assert classes == [[0, 1], [1], []]


def test_a_split_that_calibrates_needs_labels(engine: Engine) -> None:
    """The table says so itself, to every writer."""
    with pytest.raises(DatabaseError, match="exemplar_labelled_split_check"), transaction(engine) as connection:
        store(connection, make_classifier(connection), rows(["a"], Split.MC))
