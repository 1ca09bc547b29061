"""A service that runs as a process of its own, and what a test can see of it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import psutil

from tests.cli.program import PATIENCE_SECONDS, ROOT, Program
from tests.workers.processes import wait_until
from venn_admit.service.cli.worker_process import worker_environment


@dataclass(frozen=True, slots=True)
class Served:
    """The process, where it listens, what it logs, and a key of scope admin; the program on the same database."""

    program: Program
    process: "subprocess.Popen[bytes]"
    url: str
    log: Path
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def address(self) -> tuple[str, int]:
        parsed = httpx.URL(self.url)
        assert parsed.port is not None
        return parsed.host, parsed.port

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=PATIENCE_SECONDS)

    def resident(self) -> int:
        """Bytes of memory that the process holds."""
        held: int = psutil.Process(self.process.pid).memory_info().rss
        return held


@contextmanager
def serving(program: Program, folder: Path, key: str, *, port: int = 0) -> Iterator[Served]:
    """The service of a program; it is killed at the end.

    It logs to a file: a pipe that nobody reads would stop it as soon as it is full.
    """
    log = folder / "serve.log"
    with log.open("wb") as opened:
        process = subprocess.Popen(
            [sys.executable, "-m", "venn_admit.service.cli", "serve", "--port", str(port)],
            cwd=ROOT,
            env=worker_environment() | program.environment,
            stdin=subprocess.DEVNULL,
            stdout=opened,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: b"Listening on" in log.read_bytes(), "the service listens")
        found = re.search(r"Listening on (http://\S+)", log.read_text())
        assert found is not None
        yield Served(program, process, found[1], log, key)
    finally:
        process.kill()
        process.wait()
