"""Copies of held-out exemplars share a split and are one unit of evidence; those that train are refused."""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.running import Arrays, Bench
from venn_admit.core.split_names import Split
from venn_admit.errors import Code, ConflictError
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.ingest import store_scored
from venn_admit.flows.data.label import label
from venn_admit.store.checks.completeness import count_contents
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit_client.records.data import Ingestion

ROWS = 60
DRAWN = [Split.KNN, Split.MC, Split.VP]


def rows(ids: Sequence[str], contents: Sequence[int], documents: Sequence[str] | None = None) -> Arrays:
    """Exemplars of two classes, whose vector and logits follow from a number."""
    made = {
        "id": np.array(ids),
        "r": np.array([np.random.default_rng(content).normal(size=3) for content in contents], dtype=np.float32),
        "f": np.array([np.random.default_rng(content).normal(size=2) for content in contents], dtype=np.float32),
        "y": np.array(contents) % 2,
    }
    return made if documents is None else {**made, "doc": np.array(documents)}


def ingest(bench: Bench, arrays: Arrays, split: str = "held-out", *, allow: bool = False) -> Ingestion:
    return bench.ingest("one", bench.write("rows.npz", arrays), split, allow_training_rows=allow)


def store_to_score(bench: Bench, arrays: Arrays) -> None:
    del arrays["y"]
    with transaction(bench.engine) as connection:
        source = FileSource(bench.write("scored.npz", arrays))
        store_scored(connection, classifiers.by_name(connection, "one"), source)


def splits(bench: Bench) -> dict[str, str]:
    return {row.external_id: row.split for row in bench.rows("SELECT external_id, split FROM exemplar ORDER BY id")}


def units(bench: Bench) -> dict[str, set[str]]:
    """The exemplars of each unit, by the first of their ids."""
    ids = np.array([row.id for row in bench.rows("SELECT id FROM exemplar WHERE split <> 'train' ORDER BY id")])
    with connect(bench.engine) as connection:
        keys = exemplars.keys(connection, ids)
    found: dict[str, set[str]] = {}
    for key, external_id in zip(keys.document_keys, keys.row_keys, strict=True):
        found.setdefault(key, set()).add(external_id)
    return {min(unit): unit for unit in found.values()}


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.create("one", dimension=3, neighbour_count=3, seed=5)
    return bench


class TestOfHeldOutRows:
    def test_share_a_split_and_a_unit(self, bench: Bench) -> None:
        """Five times over, with ids of their own: drawn apart, they would lie in several splits."""
        contents = np.tile(np.arange(ROWS), 5)
        done = ingest(bench, rows([f"{time}-{row}" for time in range(5) for row in range(ROWS)], contents.tolist()))
        found = splits(bench)
        assert all(found[f"{time}-{row}"] == found[f"0-{row}"] for time in range(5) for row in range(ROWS))
        assert set(found.values()) == set(DRAWN)
        assert sorted(map(len, units(bench).values())) == [5] * ROWS
        assert (done.copies, done.training_copies) == (4 * ROWS, 0)
        assert sum(done.new_per_split.values()) == done.new == 5 * ROWS

    @pytest.mark.parametrize("with_documents", [False, True])
    def test_depend_neither_on_the_order_of_rows_nor_on_batches(self, bench: Bench, with_documents: bool) -> None:
        generator = np.random.default_rng(2)
        contents = generator.integers(0, 4000, 9000).tolist()
        documents = [f"d-{number}" for number in generator.integers(0, 6000, 9000)] if with_documents else None
        arrays = rows([f"{row}" for row in range(9000)], contents, documents)
        done = ingest(bench, arrays)  # two batches
        found = splits(bench)
        bench.create("other", dimension=3, neighbour_count=3, seed=5)
        order = generator.permutation(9000)
        path = bench.write("other.npz", {name: values[order] for name, values in arrays.items()})
        assert bench.ingest("other", path, "held-out").new_per_split == done.new_per_split
        table = bench.rows("SELECT external_id, split FROM exemplar WHERE classifier_id = 2")
        assert {row.external_id: row.split for row in table} == found
        assert Counter(found.values()) == done.new_per_split
        for unit in units(bench).values():
            assert len({found[external_id] for external_id in unit & found.keys()}) == 1

    def test_follow_what_is_stored(self, bench: Bench) -> None:
        """With their documents, whose rows may have come before or come later."""
        ingest(bench, rows([f"a-{row}" for row in range(ROWS)], range(ROWS)))
        before = splits(bench)
        documents = [f"d-{row}" for row in range(ROWS)]
        ingest(bench, rows([f"b-{row}" for row in range(ROWS)], range(ROWS), documents))
        ingest(bench, rows([f"c-{row}" for row in range(ROWS)], range(100, 100 + ROWS), documents))
        found = splits(bench)
        assert {name: found[name] for name in before} == before
        assert all(found[f"{file}-{row}"] == found[f"a-{row}"] for file in "bc" for row in range(ROWS))
        assert len(units(bench)) == 2 * ROWS, "the documents have got a second row"

    def test_are_whole_documents(self, bench: Bench) -> None:
        """States without context, such as of first tokens, connect no texts; the same text under another id is one."""
        words = [[0, 1, 2], [0, 3], [0, 1], [3, 4, 1], [0, 3, 3]] * 2
        contents = [word for text in words for word in text]
        documents = [f"d-{number}" for number, text in enumerate(words) for _ in text]
        done = ingest(bench, rows([f"{row}" for row in range(len(contents))], contents, documents))
        found = splits(bench)
        of_documents = {document: found[f"{row}"] for row, document in enumerate(documents)}
        assert all(of_documents[f"d-{number}"] == of_documents[f"d-{number + 5}"] for number in range(5))
        assert len(set(of_documents.values())) > 1
        assert (len(units(bench)), done.copies) == (5, len(contents) // 2)

    @pytest.mark.parametrize(("one", "other"), [("mc", "vp"), ("vp", "knn"), ("mc", "knn")])
    def test_in_two_splits_move_to_the_first(self, bench: Bench, one: str, other: str) -> None:
        """Two stored documents become equal by a row that arrives later; those that share a point with them stay."""
        ingest(bench, rows(["a", "a-2"], [1, 2], ["A", "A"]), one)
        ingest(bench, rows(["b"], [2], ["B"]), other)
        ingest(bench, rows(["z"], [1], ["Z"]), "vp")
        done = ingest(bench, rows(["b-2"], [1], ["B"]))
        first = min(Split(one), Split(other), key=DRAWN.index)
        assert splits(bench) == {**dict.fromkeys(["a", "a-2", "b", "b-2"], first), "z": "vp"}
        assert done.new_per_split == {first: 1}
        assert len(units(bench)) == 2

    def test_keep_the_split_of_data_that_were_divided_before(self, bench: Bench) -> None:
        ingest(bench, rows(["a"], [1]), "mc")
        done = ingest(bench, rows(["b", "c"], [1, 2]), "vp")
        assert splits(bench) == {"a": "mc", "b": "mc", "c": "vp"}
        assert (done.copies, done.new_per_split) == (1, {"mc": 1, "vp": 1})

    def test_twice_are_a_no_op(self, bench: Bench) -> None:
        arrays = rows(["a", "b", "c"], [1, 1, 2], ["A", "B", "C"])
        ingest(bench, arrays)
        before = splits(bench)
        done = ingest(bench, arrays)
        assert (done.new, done.copies, splits(bench)) == (0, 0, before)

    def test_other_logits_or_another_vector_make_no_copy(self, bench: Bench) -> None:
        arrays = rows(["a", "b", "c"], [1, 1, 1])
        arrays["r"][1, 0] = np.nextafter(arrays["r"][1, 0], np.float32(9))
        arrays["f"][2, 0] = np.nextafter(arrays["f"][2, 0], np.float32(9))
        assert ingest(bench, arrays).copies == 0
        assert len(units(bench)) == 3

    def test_that_come_at_once_share_a_split_too(self, bench: Bench) -> None:
        """Each file waits for the one before it."""
        paths = [bench.write(f"{file}.npz", rows([f"{file}-{n}" for n in range(40)], range(40))) for file in "abcd"]
        start = threading.Barrier(len(paths))

        def run(path: object) -> None:
            start.wait(PATIENCE_SECONDS)
            bench.ingest("one", path, "held-out")  # type: ignore[arg-type]

        with ThreadPoolExecutor(len(paths)) as pool:
            list(pool.map(run, paths))
        found = splits(bench)
        assert all(len({found[f"{file}-{n}"] for file in "abcd"}) == 1 for n in range(40))

    def test_are_recognised_by_their_labels_later(self, bench: Bench) -> None:
        """What was scored calibrates where its copies do."""
        ingest(bench, rows([f"a-{row}" for row in range(ROWS)], range(ROWS)))
        store_to_score(
            bench, rows([f"b-{row}" for row in range(ROWS)], range(ROWS), [f"d-{row}" for row in range(ROWS)])
        )
        assert {splits(bench)[f"b-{row}"] for row in range(ROWS)} == {"scored"}
        path = bench.folder / "labels.csv"
        path.write_text("external_id,label\n" + "".join(f"b-{row},1\n" for row in range(ROWS)))
        label(bench.engine, "one", LabelFile(path), selection="random", retract=False)
        found = splits(bench)
        assert all(found[f"b-{row}"] == found[f"a-{row}"] for row in range(ROWS))

    def test_of_documents_stored_by_an_earlier_version(self, bench: Bench) -> None:
        """Its rows have no digest of their own, until the next ones come."""
        ingest(bench, rows(["a", "b"], [1, 2], ["A", "B"]), "vp")
        with transaction(bench.engine) as connection:
            connection.exec_driver_sql("UPDATE exemplar SET point_digest = NULL")
        ingest(bench, rows(["c", "d"], [1, 2], ["C", "D"]), "mc")
        assert set(splits(bench).values()) == {"vp"}
        assert bench.value("SELECT count(*) FROM exemplar WHERE point_digest IS NULL") == 0
        with connect(bench.engine) as connection:
            assert count_contents(connection, classifiers.by_name(connection, "one"), memory_budget=1 << 30).wrong == 0


class TestOfTrainingRows:
    def test_are_refused_whole_with_their_names(self, bench: Bench) -> None:
        ingest(bench, rows([f"t-{row}" for row in range(20)], range(20)), "train")
        with pytest.raises(ConflictError) as caught:
            ingest(bench, rows([f"h-{row}" for row in range(30)], range(13, 43)))
        assert caught.value.code is Code.TRAINING_ROWS
        said = str(caught.value)
        assert "got 7 with the vector and logits" in said
        assert "row 0, id 'h-0' (a copy of 't-13' in split train)" in said
        assert "ids of their own" not in said
        assert "'h-4'" in said
        assert "and 2 more" in said
        assert bench.value("SELECT count(*) FROM exemplar") == 20

    def test_are_refused_if_they_come_later(self, bench: Bench) -> None:
        ingest(bench, rows(["h-0", "h-1"], [0, 1], ["H", "H"]))
        with pytest.raises(ConflictError, match=r"got 1 .*row 1, id 't-1' \(a copy of 'h-0' in split"):
            ingest(bench, rows(["t-0", "t-1"], [7, 0], ["T", "T"]), "train")
        assert bench.value("SELECT count(*) FROM exemplar") == 2

    def test_are_those_of_a_document_too(self, bench: Bench) -> None:
        """Whichever come first."""
        ingest(bench, rows(["t-0", "t-1"], [0, 1], ["A", "B"]), "train")
        beside = rows(["h-0", "h-1", "h-2"], [2, 3, 4], ["C", "B", "B"])
        with pytest.raises(
            ConflictError, match=r"got 2 .*row 1, id 'h-1' \(of the document of 't-1' in split train"
        ) as caught:
            ingest(bench, beside)
        assert caught.value.code is Code.TRAINING_ROWS
        assert "give documents that are others ids of their own" in str(caught.value)
        assert ingest(bench, beside, allow=True).training_copies == 2
        assert ingest(bench, beside).new == 0
        with pytest.raises(ConflictError, match=r"got 1 .*row 0, id 't-2' \(of the document of 'h-0' in split"):
            ingest(bench, rows(["t-2", "t-3"], [5, 6], ["C", "D"]), "train")

    def test_are_taken_and_counted_on_request(self, bench: Bench) -> None:
        ingest(bench, rows(["t-0", "t-1"], [0, 1]), "train")
        held_out = rows(["a", "b", "c"], [0, 0, 2])
        assert ingest(bench, held_out, allow=True).training_copies == 2
        # What is stored is not refused again.
        assert ingest(bench, held_out).new == 0
        assert ingest(bench, rows(["t-2"], [2]), "train", allow=True).training_copies == 1
        with connect(bench.engine) as connection:
            found = reports.inventory(connection, classifiers.by_name(connection, "one"))
        assert (found.copies, found.copies_apart, found.training_copies) == (2, 0, 3)

    def test_may_not_be_made_by_labels_either(self, bench: Bench) -> None:
        ingest(bench, rows(["a"], [1]))
        store_to_score(bench, rows(["s", "free"], [1, 2]))
        path = bench.folder / "labels.csv"
        for external_id, allowed in (("s", False), ("free", True)):
            path.write_text(f"external_id,label\n{external_id},1\n")
            if allowed:
                label(bench.engine, "one", LabelFile(path), selection="selected", retract=False, join_train=True)
                continue
            with pytest.raises(ConflictError, match="row 0, id 's': it has the vector and logits of 'a', which calib"):
                label(bench.engine, "one", LabelFile(path), selection="selected", retract=False, join_train=True)

    def test_of_a_document_may_not_be_made_by_labels_either(self, bench: Bench) -> None:
        ingest(bench, rows(["a"], [1], ["A"]))
        store_to_score(bench, rows(["s"], [2], ["A"]))
        path = bench.folder / "labels.csv"
        path.write_text("external_id,label\ns,1\n")
        with pytest.raises(ConflictError, match="row 0, id 's': it is of document 'A', as is 'a', which calibrates"):
            label(bench.engine, "one", LabelFile(path), selection="selected", retract=False, join_train=True)


def test_the_report_counts_copies_in_different_splits(bench: Bench) -> None:
    """As an earlier version stored them."""
    ingest(bench, rows(["a", "b", "c", "d"], [1, 1, 2, 2]), "mc")
    with transaction(bench.engine) as connection:
        connection.exec_driver_sql("UPDATE exemplar SET split = 'vp' WHERE external_id = 'b'")
        found = reports.inventory(connection, classifiers.by_name(connection, "one"))
    assert (found.copies, found.copies_apart, found.training_copies) == (4, 2, 0)
