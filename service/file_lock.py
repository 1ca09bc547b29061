"""A lock that one process, or thread, holds at a time. The kernel drops it when the process ends, however it does."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: Path, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold a lock while the context lasts; whoever else asks for it waits until it ends.

    Args:
        path: Of the lock file, which is made if it is missing, for its owner only, and stays.
        on_wait: Is called before waiting, if the lock is held already.

    Raises:
        OSError: The file cannot be made or locked.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would leave it to a child that inherited it
        os.close(descriptor)
