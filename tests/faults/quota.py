"""Disks that are full, and that get room again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from tests.conftest import administration
from tests.faults.fleet import Fleet
from tests.faults.server import Server
from tests.patience import wait_until
from venn_admit.store.database.engine import connect

ERRORS = "SELECT DISTINCT error FROM job_chunk WHERE error IS NOT NULL"
ROOM = "256m"


class NoPrivilegeError(Exception):
    """This user may mount nothing."""


class SmallDisk:
    """A tmpfs of a few hundred KiB in one folder."""

    def __init__(self, folder: Path, size: str) -> None:
        """Mount it. Raises NoPrivilegeError where that is refused."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._mount(f"size={size}", "tmpfs")

    def make_room(self) -> None:
        """Give it more than anything here needs."""
        self._mount(f"remount,size={ROOM}", "tmpfs")

    def _mount(self, options: str, device: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, device, str(self.folder)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise NoPrivilegeError(f"no tmpfs can be mounted here, which takes root: {ran.stderr.strip()}")

    def unmount(self) -> None:
        # Lazily: a process that was just killed may still map a file of it.
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A small disk that is unmounted at the end."""
    disk = SmallDisk(folder, size)
    try:
        yield disk
    finally:
        disk.unmount()


@contextmanager
def table_on(disk: SmallDisk, server: Server, url: str, table: str) -> Iterator[None]:
    """A table's rows on that disk, until the database is dropped."""
    owner = server.data.stat()
    folder = disk.folder / "rows"
    folder.mkdir()
    subprocess.run(["chown", f"{owner.st_uid}:{owner.st_gid}", str(folder)], check=True)
    with administration(server.url) as execute:
        execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
    try:
        with administration(url) as execute:
            execute(f"ALTER TABLE {table} SET TABLESPACE small")
        yield
        with administration(url) as execute:
            execute(f"ALTER TABLE {table} SET TABLESPACE pg_default")
    finally:
        with administration(server.url) as execute:
            execute("DROP TABLESPACE small")


def await_error(fleet: Fleet) -> str:
    """What is recorded with the first chunk that fails."""
    found: list[str] = []

    def recorded() -> bool:
        with connect(fleet.engine) as connection:
            found[:] = connection.execute(text(ERRORS)).scalars()
        return bool(found)

    wait_until(recorded, "an error is recorded with a chunk")
    return found[0]
