"""Ingestion: which split a row falls to, what is stored, and that all of a file is or nothing."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import EXAMPLES, Arrays, Bench
from venn_admit.core.content import content_digests
from venn_admit.core.splits import assign_splits
from venn_admit.errors import ConflictError, DatabaseError, InvalidInputError, NotFoundError
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.export import Export
from venn_admit.flows.data.ingest import ingest
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit.store.exemplars import classifiers, exemplars

ROWS, DIMENSION = 300, 4
TABLES = ("exemplar", "exemplar_vector", "label_event")


def sample(seed: int = 0, rows: int = ROWS, **changes: Any) -> Arrays:
    """Rows of two classes, three to a document, with ids of their own."""
    generator = np.random.default_rng(seed)
    return {
        "id": np.array([f"{seed}-{row}" for row in range(rows)]),
        "doc": np.array([f"{seed}-document-{row // 3}" for row in range(rows)]),
        "r": generator.normal(size=(rows, DIMENSION)).astype(np.float32),
        "f": generator.normal(size=(rows, 2)).astype(np.float32),
        "y": generator.integers(0, 2, rows),
        "stars": generator.integers(1, 6, rows),
        **changes,
    }


def spoilt(column: str, row: int, value: Any) -> Arrays:
    arrays = sample()
    arrays[column][row] = value
    return arrays


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """With a classifier `small` that knows nothing yet."""
    bench.create("small", dimension=DIMENSION, neighbour_count=3, seed=11)
    return bench


def stored(bench: Bench) -> dict[str, list[Any]]:
    return {table: bench.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in TABLES}


def splits(bench: Bench, name: str = "small") -> dict[str, str]:
    table = bench.export(name, Export.EXEMPLARS)
    return dict(zip(table["external_id"].to_pylist(), table["split"].to_pylist(), strict=True))


class TestSplits:
    def test_are_those_of_the_core(self, bench: Bench) -> None:
        arrays = sample()
        done = bench.ingest("small", bench.write("held-out.npz", arrays), "held-out")
        expected = assign_splits(arrays["doc"].tolist(), seed=11)
        assert splits(bench) == dict(zip(arrays["id"].tolist(), expected, strict=True))
        assert (done.rows, done.new, done.new_per_split) == (ROWS, ROWS, dict(Counter(expected)))

    def test_without_documents_go_by_id(self, bench: Bench) -> None:
        arrays = sample()
        del arrays["doc"]
        bench.ingest("small", bench.write("held-out.npz", arrays), "held-out")
        ids = arrays["id"].tolist()
        assert splits(bench) == dict(zip(ids, assign_splits(ids, seed=11), strict=True))

    def test_without_ids_go_by_the_content_of_the_row(self, bench: Bench) -> None:
        arrays = sample()
        del arrays["doc"], arrays["id"]
        bench.ingest("small", bench.write("held-out.npz", arrays), "held-out")
        digests = content_digests(arrays["r"].astype(np.float32), arrays["f"].astype(np.float32), [None] * ROWS)
        ids = [f"content:{digest.hex()}" for digest in digests]
        assert splits(bench) == dict(zip(ids, assign_splits(ids, seed=11), strict=True))

    def test_do_not_depend_on_the_order_of_rows_or_files(self, bench: Bench) -> None:
        arrays = sample()
        bench.create("other", dimension=DIMENSION, seed=11)
        bench.ingest("small", bench.write("held-out.npz", arrays), "held-out")
        order = np.random.default_rng(3).permutation(ROWS)
        for part in (order[:50], order[50:]):
            rows = {name: values[part] for name, values in arrays.items()}
            bench.ingest("other", bench.write("part.npz", rows), "held-out")
        assert splits(bench, "other") == splits(bench)

    @pytest.mark.parametrize("split", ["train", "knn", "mc", "vp"])
    def test_that_are_asked_for_are_taken(self, bench: Bench, split: str) -> None:
        done = bench.ingest("small", bench.write("rows.npz", sample()), split)
        assert done.new_per_split == {split: ROWS}
        assert set(splits(bench).values()) == {split}

    def test_of_real_data_have_their_shares(self, bench: Bench) -> None:
        bench.create("reviews", dimension=128)
        done = bench.ingest("reviews", EXAMPLES / "valid.npz", "held-out")
        assert list(done.new_per_split) == ["knn", "mc", "vp"], "in the order of the splits"
        counts = {split: count / done.rows for split, count in done.new_per_split.items()}
        assert counts == pytest.approx({"knn": 0.1, "mc": 0.45, "vp": 0.45}, abs=0.015)


def test_what_is_stored(bench: Bench) -> None:
    arrays = sample(rows=4)
    bench.ingest("small", bench.write("rows.npz", arrays), "train")
    found = bench.rows("SELECT * FROM exemplar JOIN exemplar_vector ON id = exemplar_id ORDER BY id")
    for row, exemplar in enumerate(found):
        assert exemplar.external_id == arrays["id"][row]
        assert exemplar.document_id == arrays["doc"][row]
        assert exemplar.label == arrays["y"][row]
        assert exemplar.network_predicted == arrays["f"][row].argmax()
        assert exemplar.attributes == {"stars": int(arrays["stars"][row])}
        assert np.array_equal(np.float32(exemplar.network_logits), arrays["f"][row])
        assert exemplar.support
    events = bench.rows("SELECT exemplar_id, label, selection, source FROM label_event ORDER BY id")
    assert [tuple(event) for event in events] == [
        (exemplar.id, exemplar.label, "random", "rows.npz") for exemplar in found
    ]


class TestRepeats:
    @pytest.mark.parametrize("split", ["train", "held-out"])
    def test_the_same_file_twice_adds_nothing(self, bench: Bench, split: str) -> None:
        path = bench.write("rows.npz", sample())
        bench.ingest("small", path, split)
        before, revision = stored(bench), bench.value("SELECT support_revision FROM classifier")
        done = bench.ingest("small", path, split)
        assert (done.rows, done.new, done.new_per_split) == (ROWS, 0, {})
        assert stored(bench) == before
        assert bench.value("SELECT support_revision FROM classifier") == revision

    def test_rows_of_one_file_are_stored_once(self, bench: Bench) -> None:
        rows = [0, 1, 1, 2, 0]
        path = bench.write("rows.npz", {name: values[rows] for name, values in sample().items()})
        done = bench.ingest("small", path, "train")
        assert (done.rows, done.new) == (5, 3)
        assert list(splits(bench)) == ["0-0", "0-1", "0-2"]

    def test_an_overlapping_file_adds_what_is_new(self, bench: Bench) -> None:
        arrays = sample()
        for part in (slice(0, 200), slice(100, 300)):
            path = bench.write("rows.npz", {name: values[part] for name, values in arrays.items()})
            done = bench.ingest("small", path, "held-out")
        assert (done.rows, done.new) == (200, 100)
        assert len(splits(bench)) == ROWS

    def test_new_training_exemplars_change_the_revision(self, bench: Bench) -> None:
        revisions = [bench.value("SELECT support_revision FROM classifier")]
        for seed, split in ((0, "train"), (1, "held-out"), (2, "train")):
            bench.ingest("small", bench.write("rows.npz", sample(seed)), split)
            revisions.append(bench.value("SELECT support_revision FROM classifier"))
        assert revisions[1] == revisions[2]
        assert len(set(revisions)) == 3


class TestRefusals:
    """Whatever is wrong, the message says where, and nothing of the file is stored."""

    @pytest.fixture
    def known(self, bench: Bench) -> Bench:
        bench.ingest("small", bench.write("known.npz", sample()), "held-out")
        return bench

    @pytest.mark.parametrize(
        ("changed", "problem"),
        [
            (("r", 7, 0.5), "row 7, id '0-7': already stored with another vector, logits or document"),
            (("f", 7, 0.5), "row 7, id '0-7': already stored with another vector, logits or document"),
            (("doc", 7, "elsewhere"), "row 7, id '0-7': already stored with another vector, logits or document"),
            (("y", 7, 1 - sample()["y"][7]), "row 7, id '0-7': already stored with label"),
        ],
    )
    def test_a_known_id_with_other_content(self, known: Bench, changed: tuple[str, int, Any], problem: str) -> None:
        before, rows = stored(known), spoilt(*changed)
        more = {name: np.concatenate([values, sample(1)[name]]) for name, values in rows.items()}
        with pytest.raises(ConflictError, match=problem):
            known.ingest("small", known.write("more.npz", more), "held-out")
        assert stored(known) == before

    def test_a_known_id_for_another_split(self, known: Bench) -> None:
        before = stored(known)
        with pytest.raises(ConflictError, match=r"row 0, id '0-0': already stored in split \w+, expected a new"):
            known.ingest("small", known.write("rows.npz", sample()), "train")
        assert stored(known) == before

    def test_one_id_with_two_contents(self, bench: Bench) -> None:
        with pytest.raises(ConflictError, match="rows 2 and 9 both have id '0-2', with different content"):
            bench.ingest("small", bench.write("rows.npz", spoilt("id", 9, "0-2")), "train")
        assert stored(bench) == {table: [] for table in TABLES}

    def test_one_id_with_two_contents_far_apart(self, bench: Bench) -> None:
        """The second of them comes with a later batch."""
        arrays = sample(rows=9000)
        arrays["id"][8999] = "0-2"
        with pytest.raises(ConflictError, match="row 8999, id '0-2': already stored with another"):
            bench.ingest("small", bench.write("rows.npz", arrays), "train")
        assert stored(bench) == {table: [] for table in TABLES}

    @pytest.mark.parametrize(
        ("arrays", "problem"),
        [
            (spoilt("y", 250, -1), "row 250, label: expected a label, which split held-out needs, got none"),
            (spoilt("y", 250, 2), "row 250, label y: expected"),
            (spoilt("r", 250, np.nan), r"row 250, vector r\[0\]: expected a finite number, got nan"),
            (sample(r=np.zeros((ROWS, 5), np.float32)), "array 'r': expected 4 values per row"),
        ],
    )
    def test_of_values(self, bench: Bench, arrays: Arrays, problem: str) -> None:
        with pytest.raises(InvalidInputError, match=problem):
            bench.ingest("small", bench.write("rows.npz", arrays), "held-out")
        assert stored(bench) == {table: [] for table in TABLES}

    def test_a_value_at_the_end_of_a_long_file(self, bench: Bench) -> None:
        arrays = sample(rows=9000)
        arrays["f"][8999, 1] = np.inf
        with pytest.raises(InvalidInputError, match=r"row 8999, logits f\[1\]: expected a finite number, got inf"):
            bench.ingest("small", bench.write("rows.npz", arrays), "train")
        assert stored(bench) == {table: [] for table in TABLES}

    def test_of_names(self, bench: Bench) -> None:
        path = bench.write("rows.npz", sample())
        with pytest.raises(InvalidInputError, match="unknown split 'test': expected train, held-out, knn, mc or vp"):
            bench.ingest("small", path, "test")
        with pytest.raises(NotFoundError, match="no classifier is named 'tiny'; known: small"):
            bench.ingest("tiny", path, "train")


class TestAtOnce:
    def test_two_files_both_come_in(self, bench: Bench) -> None:
        """The second waits for the first, so that ids ascend in the order in which rows appear."""
        paths = [bench.write(f"{seed}.npz", sample(seed, rows=2000)) for seed in (1, 2)]
        begun = threading.Barrier(2)

        def come_in(path: Path) -> int:
            begun.wait()
            return bench.ingest("small", path, "train").new

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(come_in, paths)) == [2000, 2000]
        order = [external_id.partition("-")[0] for external_id in splits(bench)]
        assert Counter(order) == {"1": 2000, "2": 2000}
        assert len(set(order[:2000])) == 1

    def test_the_same_file_comes_in_once(self, bench: Bench) -> None:
        path = bench.write("rows.npz", sample())
        with ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(lambda _: bench.ingest("small", path, "held-out").new, range(2)))
        assert sorted(counts) == [0, ROWS]
        assert len(splits(bench)) == ROWS

    def test_another_classifier_does_not_wait(self, bench: Bench, database: str) -> None:
        other = bench.create("other", dimension=DIMENSION)
        path = bench.write("rows.npz", sample())
        impatient = create_engine(database, lock_timeout_seconds=2)
        with transaction(bench.engine) as connection:
            exemplars.lock_ingestion(connection, classifiers.by_name(connection, "small"))
            assert ingest(impatient, other.name, FileSource(path), "train").new == ROWS
            with pytest.raises(DatabaseError, match="another process held the lock"):
                ingest(impatient, "small", FileSource(path), "train")
        impatient.dispose()


def test_progress_is_told_as_it_goes(bench: Bench) -> None:
    told: list[int] = []
    ingest(bench.engine, "small", FileSource(bench.write("rows.npz", sample(rows=9000))), "train", on_rows=told.append)
    assert told == [8192, 808]


class TestDefaultIds:
    """Files whose rows have no ids."""

    @staticmethod
    def rows(first: int, last: int) -> Arrays:
        return {name: sample()[name][first:last] for name in ("r", "f", "y")}

    def test_a_file_again_is_a_no_op_whatever_its_name(self, bench: Bench) -> None:
        bench.ingest("small", bench.write("monday.npz", self.rows(0, 40)), "held-out")
        again = bench.ingest("small", bench.write("tuesday.npz", self.rows(0, 50)), "held-out")
        assert (again.rows, again.new) == (50, 10)

    def test_another_file_of_the_same_name_is_another_file(self, bench: Bench) -> None:
        bench.ingest("small", bench.write("new.npz", self.rows(0, 40)), "held-out")
        assert bench.ingest("small", bench.write("new.npz", self.rows(40, 60)), "held-out").new == 20


def test_attributes_beyond_what_the_database_keeps_are_refused(bench: Bench) -> None:
    arrays = sample()
    arrays = {name: values[:2] for name, values in arrays.items()} | {"text": np.array(["", "\x01" * 3_000_000])}
    with pytest.raises(
        InvalidInputError, match=r"big.npz: row 1, attributes: expected at most 16,777,216 bytes of JSON"
    ):
        bench.ingest("small", bench.write("big.npz", arrays), "held-out")
    assert bench.value("SELECT count(*) FROM exemplar") == 0


def test_the_planner_learns_of_many_new_training_exemplars(bench: Bench) -> None:
    """An embedded server seldom runs long enough for autovacuum."""

    def known() -> Any:
        return bench.value("SELECT reltuples FROM pg_class WHERE relname LIKE 'exemplar_vector_%_support'")

    bench.ingest("small", bench.write("few.npz", sample(0, rows=40)), "train")
    assert known() == -1
    bench.ingest("small", bench.write("many.npz", sample(1)), "train")
    assert known() == 40 + ROWS
    bench.ingest("small", bench.write("a tenth more.npz", sample(2, rows=50)), "train")
    assert known() == 40 + ROWS
