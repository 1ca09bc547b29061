"""The service on a server of a run's own: Postgres, the HTTP service, a worker and beat, each a process."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cli.program import Program
from tests.faults.parts import Api, Worker
from tests.faults.server import Server
from tests.workers.processes import await_workers, running_beat
from venn_admit.store.database.engine import create_engine

SETTINGS = {
    # So that the scores of a day are several chunks.
    "VENN_ADMIT_CHUNK_ROWS": "64",
    "VENN_ADMIT_LEASE_SECONDS": "5",
    # A day ends when its labels count, and is over in seconds.
    "VENN_ADMIT_RECALIBRATE_QUIET_SECONDS": "0",
}


class Parts:
    """The running parts, and the address of the service, which stays the same."""

    def __init__(self, server: Server, database_url: str, folder: Path) -> None:
        self.database_url = database_url
        self._server, self._folder = server, folder
        self._environment = {"VENN_ADMIT_DATABASE_URL": database_url, **SETTINGS}
        self._beats = 0
        self._beat = ExitStack()
        program = Program({**self._environment, "VENN_ADMIT_HOME": str(folder / "service")})
        self.api = Api(program, folder / "service.log")
        self.url = f"http://127.0.0.1:{self.api.port}"
        self._worker = Worker(database_url, folder / "worker", self._environment)
        self._start_beat()
        engine = create_engine(database_url)
        await_workers(engine, 1)
        engine.dispose()

    def cut_power(self) -> None:
        """Kill everything at once, Postgres included, as when the power fails."""
        self.api.kill()
        self._worker.kill()
        self._beat.close()
        self._server.kill()

    def start_again(self) -> None:
        """Start all of it."""
        self._server.start()
        self._worker.start()
        self._start_beat()
        self.api.start()

    def close(self) -> None:
        """End all but the server."""
        self._beat.close()
        self._worker.close()
        self.api.kill()

    def _start_beat(self) -> None:
        self._beats += 1
        self._beat.enter_context(
            running_beat(self.database_url, self._folder / f"beat-{self._beats}", **_own(self._environment))
        )


def _own(environment: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("VENN_ADMIT_"): value for name, value in environment.items()}


@contextmanager
def running_parts(server: Server, database_url: str, folder: Path) -> Iterator[Parts]:
    """All parts on a database of the server; they are killed at the end."""
    parts = Parts(server, database_url, folder)
    try:
        yield parts
    finally:
        parts.close()
