"""A Postgres of a run's own, from the embedded one's programs: on TCP, and to be stopped as by a crash."""

import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from sqlalchemy import URL

from tests.patience import wait_until
from tests.workers.processes import kill_session
from venn_admit.store.embedded.programs import server_programs, server_user
from venn_admit.store.embedded.users import start_embedded, stop_embedded

# Below those that a system gives to connections, which would take a port while its listener is away.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    """Return a port that nobody listens on, and that no connection is given."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError(f"none of a hundred ports among {PORTS} is free")


class Server:
    """The server of one home folder, reached at 127.0.0.1."""

    def __init__(self, home: Path) -> None:
        """Make the folder's data and start it."""
        start_embedded(home)
        assert stop_embedded(home)
        self._program = server_programs(home, server_user()) / "postgres"
        self.data = home / "postgres"
        self._port = free_port()
        self.url = URL.create(
            "postgresql+psycopg", "postgres", host="127.0.0.1", port=self._port, database="postgres"
        ).render_as_string()
        self.start()

    def stop(self) -> None:
        """Let nothing more be written: what runs is cut short, and the next start recovers."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def kill(self) -> None:
        """Kill -9 of the server and all its processes, as a power cut would."""
        kill_session(self._process.pid)
        self._process.wait()

    def restart(self, down_seconds: float) -> None:
        """Stop, stay away for a while, and start."""
        self.stop()
        time.sleep(down_seconds)
        self.start()

    def start(self) -> None:
        """Start it, and return once it answers."""
        # -F: no fsync, for a crash of the server alone loses nothing that it wrote.
        options = ["-D", str(self.data), "-F", "-h", "127.0.0.1", "-p", str(self._port), "-k", ""]
        owner = self.data.stat()
        with (self.data.parent / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *options],
                cwd=self.data,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the run, which stops it at its end
                user=owner.st_uid,
                group=owner.st_gid,
            )
        wait_until(self._answers, "the server is up")

    def _answers(self) -> bool:
        try:
            psycopg.connect(host="127.0.0.1", port=self._port, user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def own_server(home: Path) -> Iterator[Server]:
    """A server that is stopped at the end."""
    server = Server(home)
    try:
        yield server
    finally:
        server.stop()
