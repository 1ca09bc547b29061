"""A lock that one process holds at a time. The kernel drops it when the process ends, however that happens."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from venn_admit.service.files.output.places import writing


@contextmanager
def locked(path: Path, on_wait: Callable[[], object]) -> Iterator[None]:
    """Hold a lock while the context lasts; another process that asks for it waits until it ends.

    path: of the lock file, which is made if it is missing, for its owner only, and stays. on_wait: is called before
    waiting, if another process holds the lock. Raises InvalidInputError if the file cannot be made or locked.
    """
    with writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with writing(path):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would leave it to a child that inherited it
        os.close(descriptor)
