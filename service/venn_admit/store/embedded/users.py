"""The embedded Postgres: one server for each home folder, shared by the processes that use it.

A process holds a shared lock on `postgres.users` as long as it uses the server, and a forked child holds one of its
own; the last to leave stops the server. The kernel drops the lock however a process ends, so that a killed process
leaves nothing to clean up: the next process takes over a server without users, and stops it in the end.
"""

import atexit
import fcntl
import logging
import math
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from venn_admit.errors import DatabaseError
from venn_admit.store.embedded.programs import HOME_FOR_ROOT, INSTEAD, make_home
from venn_admit.store.embedded.server import Server, is_server, run_server, stop_server

# A start takes a few seconds; recovery after a crash takes longer.
_SILENT_SECONDS = 2.0
_PATIENCE_SECONDS = 300.0
# For how long a server that cannot start, such as on a full disk, is left alone.
_PAUSE_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Use:
    """This process's use of one server; `users` is the open file that carries its shared lock."""

    server: Server
    users: int


_uses: dict[Path, _Use] = {}
# When the server could last not be started again, and why.
_failures: dict[Path, tuple[float, str]] = {}
_one_thread = threading.Lock()


def start_embedded(home: Path) -> str:
    """Return the SQLAlchemy URL of the server that keeps its data under `home`, which is started if it does not run.

    The data outlive the process. If this process uses the server already, the call costs nothing.

    Raises:
        DatabaseError: The folder cannot be used, this platform has no embedded Postgres, the data belong to another
            version of Postgres, or the server does not start.
    """
    home = home.expanduser().resolve()
    if not re.fullmatch(r"[\w./@+=:~-]+", str(home)):
        raise DatabaseError(
            f"the embedded Postgres accepts no folder with a space or a character like , or ' in its path, "
            f"got {str(home)!r}: set VENN_ADMIT_HOME to another folder, {INSTEAD}"
        )
    with _one_thread:
        use = _uses.get(home)
        if use is None or not is_server(use.server.pid, home / "postgres"):
            use = _renew_use(home)
        return f"postgresql+psycopg://postgres@/postgres?host={quote(str(use.server.socket_folder))}"


def start_embedded_again(home: Path) -> None:
    """Start the server again if this process uses it and it has ended; called before each connection.

    A process that has ended its use starts nothing, and nothing is started without the data. After a start that
    failed, this fails for some seconds without another attempt. Raises as `start_embedded` does.
    """
    home = home.expanduser().resolve()
    data = home / "postgres"
    with _one_thread:
        use = _uses.get(home)
        if use is None or is_server(use.server.pid, data) or not (data / "PG_VERSION").exists():
            return
        failed_at, why = _failures.get(home, (-math.inf, ""))
        if time.monotonic() - failed_at < _PAUSE_SECONDS:
            raise DatabaseError(why)
        try:
            _renew_use(home)
        except DatabaseError as error:
            _failures[home] = time.monotonic(), str(error)
            raise
        log.warning("the embedded Postgres in %s had ended; it was started again", data)


def stop_embedded(home: Path) -> bool:
    """End this process's use of the server, which otherwise happens at exit; return whether that stopped it."""
    home = home.expanduser().resolve()
    with _one_thread:
        use = _uses.pop(home, None)
        if use is None:
            return False
        try:
            with _locked(home / "postgres.lock"):
                fcntl.flock(use.users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stop_server(home / "postgres")
                return True
        except BlockingIOError:  # others use it
            return False
        except (FileNotFoundError, DatabaseError):  # the folder was removed, and its server stops; or it is locked
            return False
        finally:
            _release(use.users)


def _renew_use(home: Path) -> _Use:
    """Begin a use, and only then give up the one of a server that has ended."""
    ended = _uses.get(home)
    _uses[home] = use = _begin_use(home)
    if ended is not None:
        os.close(ended.users)
    return use


def _begin_use(home: Path) -> _Use:
    with ExitStack() as locks:
        try:
            make_home(home)
            locks.enter_context(_locked(home / "postgres.lock"))
            users = _share(home)
        except OSError as error:
            raise DatabaseError(
                f"the embedded Postgres cannot keep its data in {home}: {error.strerror or error}; "
                f"set VENN_ADMIT_HOME to a folder that you can create and write, {INSTEAD}"
            ) from error
        data = home / "postgres"
        is_new = not data.exists()
        try:
            use = _Use(run_server(data), users)
        except BaseException:
            os.close(users)
            raise
        if is_new:
            log.warning("the data are kept in %s%s", home, _other_data(home))
        return use


def _other_data(home: Path) -> str:
    """For root, whose data used to be in one folder whatever its home, where these are."""
    if os.geteuid() or home == HOME_FOR_ROOT or not (HOME_FOR_ROOT / "postgres").exists():
        return ""
    return f"; root has others in {HOME_FOR_ROOT}, which VENN_ADMIT_HOME={HOME_FOR_ROOT} would use"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time start or stop the server; another one waits, and says so if that takes long."""
    descriptor = _open_private(path)
    try:
        _wait_for(descriptor, path)
        yield
    finally:
        _release(descriptor)


def _open_private(path: Path) -> int:
    """Open a file that no other user can open, and so no other user can lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, 0o600)
    return descriptor


def _wait_for(descriptor: int, path: Path) -> None:
    begin, told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - begin
        else:
            return
        if waited > _SILENT_SECONDS and not told:
            log.warning("waiting for another process that starts or stops the embedded Postgres: it holds %s", path)
            told = True
        if waited > _PATIENCE_SECONDS:
            raise DatabaseError(
                f"another process has held {path} for {waited:.0f} s: `fuser {path}` names it; end it, {INSTEAD}"
            )
        time.sleep(0.05)


def _release(descriptor: int) -> None:
    """Unlock and close: closing alone would leave the lock to a child that inherited it outside of Python."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _share(home: Path) -> int:
    descriptor = _open_private(home / "postgres.users")
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


# A forked child is a user in its own right. It inherits its parent's lock, not a second one, so its own is taken
# before the fork: a parent that leaves right after the fork must not stop the server that the child uses.
_of_child: dict[Path, int] = {}


def _before_fork() -> None:
    _one_thread.acquire()
    for home in _uses:
        with suppress(OSError):  # the folder was removed
            _of_child[home] = _share(home)


def _after_fork_in_parent() -> None:
    for users in _of_child.values():
        os.close(users)
    _of_child.clear()
    _one_thread.release()


def _after_fork_in_child() -> None:
    for home, users in _of_child.items():
        os.close(_uses[home].users)
        _uses[home] = replace(_uses[home], users=users)
    _of_child.clear()
    _one_thread.release()


def _stop_all() -> None:
    for home in list(_uses):
        stop_embedded(home)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(_stop_all)
