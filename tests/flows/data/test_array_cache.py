"""Copies that processes share: made once, the last ones kept, and read although others delete meanwhile."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Connection

from tests.patience import PATIENCE_SECONDS
from tests.running import Bench
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import NotReadyError
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import array_cache
from venn_admit.store.search.array_cache import ArrayCache


@pytest.fixture
def folder(edge: Bench) -> Path:
    return edge.folder / "cache"


def entries(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def read(bench: Bench, cache: ArrayCache, *, backwards: bool = False) -> Float32Array:
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        calibration = calibrations.latest(connection, classifier)
    ids = np.array([row.id for row in bench.rows("SELECT id FROM exemplar WHERE split = 'vp' ORDER BY id")])
    vectors = cache.localizer_vectors(bench.engine, classifier, calibration, ids[::-1] if backwards else ids)
    assert vectors.shape == (len(ids), classifier.dimension)
    assert not vectors.flags.writeable
    return vectors


def renew(bench: Bench) -> None:
    """As a new calibration does."""
    with bench.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE calibration SET revision = gen_random_uuid()")


def test_the_two_used_last_are_kept(edge: Bench, folder: Path) -> None:
    cache = ArrayCache(folder)
    read(edge, cache)
    (first,) = entries(folder)
    renew(edge)
    read(edge, cache)
    (second,) = entries(folder) - {first}
    renew(edge)
    read(edge, cache)
    assert second in entries(folder)
    assert len(entries(folder)) == 2


def test_a_version_that_orders_the_rows_otherwise_reads_its_own(edge: Bench, folder: Path) -> None:
    cache = ArrayCache(folder)
    forwards = read(edge, cache)
    np.testing.assert_array_equal(read(edge, cache, backwards=True), forwards[::-1])


def test_what_a_killed_process_left_is_deleted_in_time(edge: Bench, folder: Path) -> None:
    for name, age in ((".draft-old", 90_000), (".draft-young", 60)):
        (folder / name).mkdir(parents=True)
        then = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (then, then))
    read(edge, ArrayCache(folder))
    assert {name for name in entries(folder) if name.startswith(".draft")} == {".draft-young"}


ENDS_MEANWHILE = """
import sys
import threading
from pathlib import Path

from venn_admit.store.search.array_cache import ArrayCache

folder = Path(sys.argv[1])
begun = threading.Event()


def write() -> None:
    with ArrayCache(folder)._draft() as draft:
        (draft / "vectors.npy").write_bytes(bytes(1000))
        begun.set()
        threading.Event().wait()


threading.Thread(target=write, daemon=True).start()
begun.wait()
assert list(folder.glob(".draft-*/vectors.npy"))
"""


@pytest.mark.processes
def test_what_a_thread_writes_as_its_process_ends_is_deleted(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ENDS_MEANWHILE, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []


class Deleting(ArrayCache):
    """Where other processes delete an entry just after it was made, a number of times."""

    times = 0

    def _entry(self, *arguments: object) -> Path:
        found = super()._entry(*arguments)  # type: ignore[arg-type]
        if self.times:
            self.times -= 1
            shutil.rmtree(found)
        return found


def test_an_entry_that_is_deleted_is_made_again(edge: Bench, folder: Path) -> None:
    cache = Deleting(folder)
    cache.times = 3
    read(edge, cache)
    cache.times = 100
    with pytest.raises(NotReadyError, match="faster than it can be read"):
        read(edge, cache)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event, list[int]]]:
    """Says when vectors are first read for an entry, which then waits to go on; and how many, of each reading."""
    begun, go_on, read_counts = threading.Event(), threading.Event(), list[int]()
    vectors = exemplars.vectors

    def read_when_told(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> Float32Array:
        read_counts.append(len(exemplar_ids))
        begun.set()
        if len(read_counts) == 1:
            assert go_on.wait(PATIENCE_SECONDS)
        return vectors(connection, classifier, exemplar_ids)

    monkeypatch.setattr(exemplars, "vectors", read_when_told)
    yield begun, go_on, read_counts
    go_on.set()


def test_of_those_that_lack_an_entry_one_makes_it(
    edge: Bench, folder: Path, held: tuple[threading.Event, threading.Event, list[int]]
) -> None:
    begun, go_on, read_counts = held
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(read, edge, ArrayCache(folder))
        assert begun.wait(PATIENCE_SECONDS)
        second = threads.submit(read, edge, ArrayCache(folder))
        with pytest.raises(TimeoutError):
            second.result(0.5)
        go_on.set()
        np.testing.assert_array_equal(first.result(), second.result())
    assert len(read_counts) == 1
    assert len(entries(folder)) == 1, "no lock is left"


def test_one_that_stands_still_is_not_awaited_for_ever(
    edge: Bench,
    folder: Path,
    held: tuple[threading.Event, threading.Event, list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(array_cache, "PATIENCE_SECONDS", 0.1)
    begun, go_on, read_counts = held
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(read, edge, ArrayCache(folder))
        assert begun.wait(PATIENCE_SECONDS)
        second = read(edge, ArrayCache(folder))
        go_on.set()
        np.testing.assert_array_equal(first.result(), second)
    assert len(read_counts) == 2
    assert len(entries(folder)) == 1
