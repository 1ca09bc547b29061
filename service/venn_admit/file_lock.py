"""A lock that one process, or thread, holds at a time. The kernel drops it when the process ends, however it does."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_SECONDS = 0.05


@contextmanager
def file_lock(
    path: Path, on_wait: Callable[[], object] = lambda: None, *, patience_seconds: float | None = None
) -> Iterator[None]:
    """Hold a lock while the context lasts; others that ask for it wait until it ends.

    Args:
        path: The path of the lock file, which is made if it is missing, for its owner only, and stays.
        on_wait: Called before waiting, if the lock is already held.
        patience_seconds: How long to wait at most; None: as long as it takes.

    Raises:
        OSError: The file cannot be made or locked.
        TimeoutError: The lock was not free in time; it is an OSError, too.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            _wait_for(descriptor, path, patience_seconds)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would leave it to a child that inherited it
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, path: Path, patience_seconds: float | None) -> None:
    if patience_seconds is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is held for longer than {patience_seconds:.0f} s") from error
            time.sleep(_LOOK_SECONDS)
        else:
            return
