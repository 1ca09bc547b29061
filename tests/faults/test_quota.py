"""A disk is full: the chunk's error says so, and once there is room the jobs end complete."""

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import open_folder
from tests.faults.fleet import Sweeper, running_fleet
from tests.faults.quota import NoPrivilegeError, await_error, small_disk, table_on
from tests.faults.server import Server
from tests.faults.workload import Comparison, Row, compare, written

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", autouse=True)
def _privilege() -> None:
    """These tests need root."""
    with open_folder() as folder:
        try:
            with small_disk(folder / "disk", "64k"):
                pass
        except NoPrivilegeError as error:
            pytest.skip(str(error))


def test_the_cache_has_no_room(url: str, calm: Counter[Row], tmp_path: Path, broker_url: str | None) -> None:
    with (
        small_disk(tmp_path / "worker-0" / "cache", "256k") as disk,
        running_fleet(url, tmp_path, broker_url, workers=1) as fleet,
        Sweeper(fleet.engine, fleet.app, copies=1),
    ):
        assert "No space left on device; check whether the disk is full" in await_error(fleet)
        assert "exited with 'signal" not in fleet.workers[0].log.read_text()
        disk.make_room()
        fleet.await_jobs()
        assert compare(calm, written(fleet.engine)) == Comparison(calm.total(), lost=0, doubled=0, differing=0)


def test_postgres_has_no_room(
    url: str, faults_server: Server, calm: Counter[Row], tmp_path: Path, broker_url: str | None
) -> None:
    with (
        open_folder() as folder,
        small_disk(folder / "disk", "64k") as disk,
        table_on(disk, faults_server, url, "decision"),
        running_fleet(url, tmp_path, broker_url, workers=1) as fleet,
        Sweeper(fleet.engine, fleet.app, copies=1),
    ):
        assert "No space left on device; free space on the server's disk" in await_error(fleet)
        disk.make_room()
        fleet.await_jobs()
        assert compare(calm, written(fleet.engine)) == Comparison(calm.total(), lost=0, doubled=0, differing=0)
