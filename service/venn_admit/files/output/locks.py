"""Locks on what is written to a place that somebody named."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from venn_admit.file_lock import file_lock
from venn_admit.files.output.atomic import writing


@contextmanager
def locked(path: Path, on_wait: Callable[[], object]) -> Iterator[None]:
    """Hold a lock while the context lasts, as `file_lock` does.

    Raises InvalidInputError if the file cannot be made or locked.
    """
    with ExitStack() as held:
        with writing(path):
            held.enter_context(file_lock(path, on_wait))
        yield
