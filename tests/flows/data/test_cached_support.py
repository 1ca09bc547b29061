"""Copies of the training exemplars: of what is only added, nothing else is read again, and no byte shows it."""

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection

from tests.flows.calibration.test_continuous_data import training
from tests.running import Bench, workspace
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.removal.forget import forget
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import support_files
from venn_admit.store.search.array_cache import ArrayCache

TRAINING = "SELECT count(*) FROM exemplar WHERE split = 'train'"


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many rows the database returned of ids, of logits and of vectors."""
    counted = Counter[str]()
    ids, blocks, vector_blocks = exemplars.support_ids, exemplars.support_blocks, exemplars.support_vector_blocks

    def count_ids(connection: Connection, classifier: Classifier, *, after: int = 0) -> IntArray:
        found = ids(connection, classifier, after=after)
        counted["ids"] += len(found)
        return found

    def count_blocks(*arguments: Any) -> Iterator[tuple[IntArray, Float32Array]]:
        for labels, logits in blocks(*arguments):
            counted["logits"] += len(logits)
            yield labels, logits

    def count_vector_blocks(*arguments: Any) -> Iterator[Float32Array]:
        for vectors in vector_blocks(*arguments):
            counted["vectors"] += len(vectors)
            yield vectors

    monkeypatch.setattr(exemplars, "support_ids", count_ids)
    monkeypatch.setattr(exemplars, "support_blocks", count_blocks)
    monkeypatch.setattr(exemplars, "support_vector_blocks", count_vector_blocks)
    return counted


def entry(bench: Bench, folder: Path) -> dict[str, bytes]:
    """The files of the current training exemplars in a cache, which makes them if it lacks them."""
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
    found = ArrayCache(folder).support(bench.engine, classifier)
    assert len(found.ids) == len(found.vectors) == len(found.support.logits) == len(found.support.labels)
    files = folder / f"support-{classifier.id}-{classifier.support_revision}"
    return {file.name: file.read_bytes() for file in files.iterdir()}


def require_rows(bench: Bench, rows_read: Counter[str], count: int) -> None:
    """That the next copy is made by reading this number of rows, and is as one is that reads all."""
    rows_read.clear()
    made = entry(bench, bench.folder / "cache")
    assert rows_read == Counter(ids=count, logits=count, vectors=count)
    assert made == entry(bench, bench.folder / "again")


def all_rows(bench: Bench) -> int:
    return int(bench.value(TRAINING))


def give(bench: Bench, external_id: str, given: int | str, *, join_train: bool = False) -> None:
    path = bench.folder / "labels.csv"
    path.write_text(f"external_id,label\n{external_id},{given}\n")
    label(bench.engine, "edge", LabelFile(path), selection="selected", retract=True, join_train=join_train)


def relabel(bench: Bench) -> None:
    give(bench, "first-0", (bench.value("SELECT label FROM exemplar WHERE external_id = 'first-0'") + 1) % 3)


def retract(bench: Bench) -> None:
    give(bench, "first-1", "")


def forget_one(bench: Bench) -> None:
    forget(
        workspace(bench.engine, ArrayCache(bench.folder / "of another machine"), chunk_rows=100), "edge", ["first-1"]
    )


def let_train(bench: Bench) -> None:
    """An exemplar that was stored before the last that trains."""
    give(
        bench,
        bench.value("SELECT external_id FROM exemplar WHERE split = 'scored' ORDER BY id LIMIT 1"),
        1,
        join_train=True,
    )


def change_unseen(bench: Bench) -> None:
    """As in a database that was restored, and in which other rows have the same numbers."""
    with bench.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exemplar SET label = mod(label + 1, 3) WHERE external_id = 'first-0'")


CHANGES = [relabel, retract, forget_one, let_train, change_unseen]


@pytest.fixture
def edge_read(edge: Bench) -> Bench:
    """With scored exemplars older than some that train, and one copy of these."""
    edge.score("edge", edge.folder / "score.npz")
    training(edge, "first")
    shutil.rmtree(edge.folder / "cache")
    entry(edge, edge.folder / "cache")
    return edge


def test_what_is_added_is_all_that_is_read(edge_read: Bench, rows_read: Counter[str]) -> None:
    training(edge_read, "one", rows=1)
    require_rows(edge_read, rows_read, 1)
    training(edge_read, "two", rows=2)
    require_rows(edge_read, rows_read, 2)


def test_one_that_trains_by_its_label_is_added_if_it_is_the_newest(edge_read: Bench, rows_read: Counter[str]) -> None:
    path = edge_read.write("late.npz", {"id": np.array(["late"]), **{n: v[:1] for n, v in arrays(edge_read).items()}})
    edge_read.score("edge", path)
    give(edge_read, "late", 1, join_train=True)
    require_rows(edge_read, rows_read, 1)


def arrays(bench: Bench) -> dict[str, Any]:
    with np.load(bench.folder / "score.npz") as found:
        return {name: found[name] for name in ("r", "f")}


@pytest.mark.parametrize("change", CHANGES)
def test_after_any_other_change_all_are_read(
    change: Callable[[Bench], None], edge_read: Bench, rows_read: Counter[str]
) -> None:
    change(edge_read)
    training(edge_read, "one", rows=1)
    require_rows(edge_read, rows_read, all_rows(edge_read))


def test_the_copy_before_serves_if_the_last_does_not(edge_read: Bench, rows_read: Counter[str]) -> None:
    training(edge_read, "one", rows=1)
    entry(edge_read, edge_read.folder / "cache")
    give(edge_read, "one-0", "")
    training(edge_read, "two", rows=2)
    require_rows(edge_read, rows_read, 2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "fingerprint").unlink(),  # as a program makes it that knows of none
        lambda folder: os.truncate(folder / "vectors.npy", 200),
        lambda folder: os.truncate(folder / "ids.npy", 0),
        lambda folder: (folder / "vectors.npy").unlink(),
    ],
)
def test_a_copy_that_is_not_whole_is_not_continued(
    damage: Callable[[Path], object], edge_read: Bench, rows_read: Counter[str]
) -> None:
    for folder in (edge_read.folder / "cache").glob("support-*"):
        damage(folder)
    training(edge_read, "one", rows=1)
    require_rows(edge_read, rows_read, all_rows(edge_read))


def test_a_copy_that_is_deleted_meanwhile_is_not_continued(
    edge_read: Bench, rows_read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = support_files._copy

    def copy_then_delete(source: Path, target: Path) -> None:
        copy(source, target)
        shutil.rmtree(source.parent)

    monkeypatch.setattr(support_files, "_copy", copy_then_delete)
    training(edge_read, "one", rows=1)
    require_rows(edge_read, rows_read, all_rows(edge_read))


def test_on_a_file_system_that_shares_no_blocks(
    edge_read: Bench, rows_read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)
    training(edge_read, "one", rows=1)
    require_rows(edge_read, rows_read, 1)
