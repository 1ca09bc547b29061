"""The schema is migrated first, and the processes are replaced one after the other; clients notice nothing."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2 as httpx
import pytest
from alembic import command
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from tests.api.processes import ServingProcess, end, start_serving
from tests.cli.program import Program, check_refusal
from tests.client.conftest import admin_key
from tests.faults.clients import Load, ServiceClient
from tests.faults.proxy import Proxy
from tests.faults.server import free_port
from tests.migrations.migrating import as_a_newer_program_left_it, move
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.workers.processes import WorkerProcess, await_workers, kill_session
from venn_admit.api.application import create_application
from venn_admit.errors import DatabaseError
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit.store.database.schema import current_revision, head_revision

pytestmark = pytest.mark.processes

CLIENTS = 2
REQUESTS = 20
NEWER = "9999"
# What migrations do that older programs go on with, to tables that they use, each with the limits that it sets.
LIMITS = "SET LOCAL lock_timeout = '5s'"
GAIN = (
    "ALTER TABLE venn_admit.job ADD COLUMN gained text",
    "ALTER TABLE venn_admit.exemplar ADD COLUMN gained integer NOT NULL DEFAULT 0",
    "CREATE TABLE venn_admit.gained (id bigint PRIMARY KEY)",
)


@pytest.fixture
def engine(own_calibrated: Program) -> Iterator[Engine]:
    made = create_engine(own_calibrated.url)
    yield made
    made.dispose()


def schema_in(ready: httpx.Response) -> tuple[int, str]:
    return ready.status_code, ready.json()["schema"]


def test_a_program_on_a_schema_that_is_older_says_that_it_must_be_migrated(
    own_calibrated: Program, engine: Engine, tmp_path: Path
) -> None:
    move(engine, "base", command.downgrade)
    assert current_revision(engine) is None
    told = rf"the database schema is at revision none, this program needs {head_revision()}: .*db upgrade"
    for verb in (("serve", "--port", 0), ("worker",), ("beat",)):
        check_refusal(own_calibrated.apart(*verb), 4, told)
    runtime = Runtime.start(Settings(database_url=own_calibrated.url, home=tmp_path))
    try:
        client = TestClient(create_application(runtime))
        assert schema_in(client.get("/health/ready")) == (503, "failed")
        assert own_calibrated("db", "upgrade").code == 0
        assert schema_in(client.get("/health/ready")) == (200, "ready")
    finally:
        runtime.engine.dispose()


class Rolling:
    """Two processes of the service behind one address, and a worker; each can be replaced."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._ports = (free_port(), free_port())
        self._processes = [self._start(port) for port in self._ports]
        self._worker = self._start_worker()
        self._proxy = Proxy(*(("127.0.0.1", port) for port in self._ports))
        self.url = f"http://127.0.0.1:{self._proxy.port}"

    def replace(self) -> None:
        """Replace one process after the other, each by a new one at its port, and the worker."""
        for number, port in enumerate(self._ports):
            end(self._processes[number].process)
            self._processes[number] = self._start(port)
        assert self._worker.stop() == 0
        self._worker = self._start_worker()

    def ready(self) -> list[httpx.Response]:
        return [httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=PATIENCE_SECONDS) for port in self._ports]

    def close(self) -> None:
        self._proxy.close()
        for process in self._processes:
            process.kill()
        kill_session(self._worker.process.pid)
        self._worker.process.wait()

    def _start(self, port: int) -> ServingProcess:
        return start_serving(self._program, self._folder / f"serve-{port}.log", port=port)

    def _start_worker(self) -> WorkerProcess:
        return WorkerProcess(self._program.url, self._folder / "worker", 1, {})


@pytest.mark.slow
def test_clients_go_on_while_the_schema_is_migrated_and_every_process_replaced(
    own_calibrated: Program, engine: Engine, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        rolling = Rolling(own_calibrated, tmp_path)
        stack.callback(rolling.close)
        await_workers(engine, 1)
        key = admin_key(own_calibrated)
        clients = [ServiceClient(rolling.url, key, number, tmp_path) for number in range(CLIENTS)]
        with Load(clients) as load:
            load.await_requests(REQUESTS)
            for statement in GAIN:
                _migrate(engine, statement)
            as_a_newer_program_left_it(engine, head_revision())
            load.await_requests(REQUESTS)
            assert [schema_in(answer) for answer in rolling.ready()] == [(200, "ready")] * 2
            rolling.replace()
            load.await_requests(REQUESTS)
        assert list(load.problems()) == []
        refused = [what for what in load.counts() if what[0].isdigit()]
        assert refused == [], "every request that reached a process succeeded"
        assert current_revision(engine) == NEWER
        # One that older programs do not understand: the address of all takes those out that are left.
        as_a_newer_program_left_it(engine, NEWER)
        assert [schema_in(answer) for answer in rolling.ready()] == [(503, "failed")] * 2
    told = rf"at revision {NEWER}, which needs a program of revision {NEWER} or newer; .*install the newer version"
    for verb in (("serve", "--port", 0), ("worker",)):
        check_refusal(own_calibrated.apart(*verb), 4, told)


def _migrate(engine: Engine, statement: str) -> None:
    """Execute it in a transaction of its own, and as often as an operator would who is told to run it again."""

    def executed() -> bool:
        try:
            with transaction(engine) as connection:
                connection.exec_driver_sql(LIMITS)
                connection.exec_driver_sql(statement)
        except DatabaseError as refused:
            if "try again" not in str(refused):
                raise
            return False
        return True

    wait_until(executed, f"it has been executed: {statement}")
