"""The parts of a running HTTP service, each of which can be killed and started again."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.api.processes import ServingProcess, start_serving
from tests.cli.program import Program
from tests.faults.proxy import Proxy
from tests.faults.server import Server, free_port
from tests.patience import wait_until
from tests.workers.processes import WorkerProcess, kill_session

REDIS = shutil.which("redis-server")
PROCESSES = 2
SUPERVISION_SECONDS = 0.5
SETTINGS = {
    "VENN_ADMIT_LEASE_SECONDS": "4",
    # Enough for all that is killed: attempts are counted elsewhere.
    "VENN_ADMIT_MAX_ATTEMPTS": "10000",
    # So that a job is several chunks.
    "VENN_ADMIT_CHUNK_ROWS": "8",
}


class Redis:
    """A Redis of a run's own, which keeps nothing when it ends."""

    def __init__(self, folder: Path) -> None:
        """Start it; its log and what it might write are in the folder."""
        assert REDIS is not None, "redis-server is not installed"
        self._folder = folder
        folder.mkdir()
        self._port = free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.start()

    def start(self) -> None:
        """Start it, and return once it answers."""
        assert REDIS is not None
        listening = ["--bind", "127.0.0.1", "--port", str(self._port)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [REDIS, *listening, "--save", "", "--appendonly", "no"],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the run, which ends it
            )
        wait_until(self._answers, "Redis is up")

    def kill(self) -> None:
        """Kill -9."""
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16) == b"+PONG\r\n"
        return False


class Api:
    """One process that answers over HTTP, always on the same port."""

    def __init__(self, program: Program, log: Path) -> None:
        """Start it."""
        self.log = log
        self.port = free_port()
        self._program = program
        self.start()

    def start(self) -> None:
        """Start it, and return once it listens."""
        self._serving: ServingProcess = start_serving(self._program, self.log, port=self.port)

    def kill(self) -> None:
        """Kill -9."""
        self._serving.kill()


class Worker:
    """One worker, always in the same home. If it ends by itself, it is started again, as every supervisor does."""

    def __init__(self, url: str, home: Path, environment: dict[str, str]) -> None:
        """Start it."""
        self._url, self._home, self._environment = url, home, environment
        self._changing = threading.Lock()
        self._is_wanted = False
        self._closed = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor")
        self.start()
        self._supervisor.start()

    @property
    def log(self) -> Path:
        return self._process.log

    def start(self) -> None:
        """Start it; it is up some seconds later."""
        with self._changing:
            self._is_wanted = True
            self._process = WorkerProcess(self._url, self._home, 1, self._environment)

    def kill(self) -> None:
        """Kill -9 of the worker and its process."""
        with self._changing:
            self._is_wanted = False
            kill_session(self._process.process.pid)
            self._process.process.wait()

    def close(self) -> None:
        """Kill it for good."""
        self._closed.set()
        self._supervisor.join()
        self.kill()

    def _supervise(self) -> None:
        while not self._closed.wait(SUPERVISION_SECONDS):
            with self._changing:
                if self._is_wanted and self._process.process.poll() is not None:
                    self._process = WorkerProcess(self._url, self._home, 1, self._environment)


Part = Server | Redis | Api | Worker


class Parts:
    """All parts, by their names, and the one address at which the service answers."""

    def __init__(
        self, url: str, program: Program, processes: dict[str, Api], worker: Worker, others: dict[str, Part]
    ) -> None:
        self.url = url
        self.program = program
        self.processes = processes
        self.by_name: dict[str, Part] = {**processes, "worker": worker, **others}
        self._worker = worker

    def logged(self) -> str:
        """What the processes of the service and the worker have logged."""
        logs = [*(process.log for process in self.processes.values()), self._worker.log]
        return "\n".join(log.read_text(errors="replace") for log in logs)


@contextmanager
def running_parts(server: Server, database_url: str, folder: Path, redis: Redis | None) -> Iterator[Parts]:
    """The service on a database of the server: processes behind one address, and a worker.

    redis: the broker; None: the database.
    """
    broker = {"VENN_ADMIT_BROKER_URL": "" if redis is None else redis.url}
    environment = {"VENN_ADMIT_DATABASE_URL": database_url, **SETTINGS, **broker}
    program = Program({**environment, "VENN_ADMIT_HOME": str(folder / "home")})
    with ExitStack() as stack:
        processes = {}
        for number in range(1, PROCESSES + 1):
            api = processes[f"API process {number}"] = Api(program, folder / f"api-{number}.log")
            stack.callback(api.kill)
        worker = Worker(database_url, folder / "worker", environment)
        stack.callback(worker.close)
        address = Proxy(*(("127.0.0.1", api.port) for api in processes.values()))
        stack.callback(address.close)
        others: dict[str, Part] = {"Postgres": server} if redis is None else {"Postgres": server, "Redis": redis}
        yield Parts(f"http://127.0.0.1:{address.port}", program, processes, worker, others)
