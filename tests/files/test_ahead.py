"""Batches that are read ahead are those of the source, one at a time, and errors come where they would have come."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.files.samples import CLASS_COUNT, DIMENSION, sample, write_parquet
from tests.patience import PATIENCE_SECONDS
from venn_admit.errors import InvalidInputError
from venn_admit.files import read_exemplars
from venn_admit.files.batches import read_ahead


class Source:
    """Numbers, of which it is known how many were asked for, by which thread, and whether the source was closed."""

    def __init__(self, count: int, broken: bool = False) -> None:
        self.count, self.broken = count, broken
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self.closed = threading.Event()
        self.third = threading.Event()

    def __iter__(self) -> Iterator[int]:
        try:
            for number in range(self.count):
                self.asked.append(number)
                self.threads.add(threading.get_ident())
                if number == 2:
                    self.third.set()
                yield number
            if self.broken:
                raise InvalidInputError("broken")
        finally:
            self.closed.set()

    def numbers(self) -> Iterator[int]:
        return read_ahead(iter(self))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_all_come_in_order(count: int) -> None:
    source = Source(count)
    assert list(source.numbers()) == list(range(count))
    assert source.closed.is_set()
    assert threading.get_ident() not in source.threads


def test_nothing_is_read_before_the_first_is_asked_for() -> None:
    source = Source(3)
    numbers = source.numbers()
    assert source.asked == []
    assert next(numbers) == 0


def test_one_is_read_ahead_and_no_more() -> None:
    source = Source(50)
    numbers = source.numbers()
    assert [next(numbers), next(numbers)] == [0, 1]
    assert source.third.wait(PATIENCE_SECONDS)
    assert source.asked == [0, 1, 2]


def test_an_error_comes_after_what_was_read_before_it() -> None:
    numbers = Source(3, broken=True).numbers()
    assert [next(numbers), next(numbers), next(numbers)] == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="broken"):
        next(numbers)


def test_a_reader_that_stops_early_closes_the_source() -> None:
    source = Source(50)
    numbers = source.numbers()
    assert next(numbers) == 0
    numbers.close()  # type: ignore[attr-defined]
    assert source.closed.is_set()
    assert len(source.asked) <= 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


def test_a_file_is_closed_with_the_batches(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "exemplars.parquet", sample())
    batches = read_ahead(read_exemplars(path, dimension=DIMENSION, class_count=CLASS_COUNT, batch_rows=2))
    next(batches)
    assert str(path) in {file.path for file in psutil.Process().open_files()}
    batches.close()  # type: ignore[attr-defined]
    assert str(path) not in {file.path for file in psutil.Process().open_files()}
