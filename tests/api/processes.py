"""`serve` as a process of its own."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.cli.program import ROOT, Program
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.cli.worker_process import worker_environment


class ServingProcess(NamedTuple):
    """A process that answers over HTTP, and the URL at which it does."""

    process: "subprocess.Popen[bytes]"
    url: str

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(program: Program, *, port: int = 0) -> Iterator[ServingProcess]:
    """A process that serves a program's database; it is killed at the end. port: 0 for any that is free.

    It logs to a file: a pipe that nobody reads would stop it as soon as it is full.
    """
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        served = start_serving(program, log, port=port)
        try:
            yield served
        finally:
            served.kill()


def start_serving(program: Program, log: Path, *, port: int = 0) -> ServingProcess:
    """Start a process that serves a program's database, and return it once it listens.

    log: the file that it logs to, after what others have logged there.
    """
    start = log.stat().st_size if log.exists() else 0
    with log.open("ab") as opened:
        process = subprocess.Popen(
            [sys.executable, "-m", "venn_admit.cli", "serve", "--port", str(port)],
            cwd=ROOT,
            env=worker_environment() | program.environment,
            stdin=subprocess.DEVNULL,
            stdout=opened,
            stderr=subprocess.STDOUT,
        )

    def listening() -> re.Match[bytes] | None:
        return re.search(rb"Listening on (http://\S+)", log.read_bytes()[start:])

    try:
        wait_until(lambda: listening() or process.poll() is not None, "the service listens")
        found = listening()
        assert found is not None, f"it ended: {log.read_text()}"
    except BaseException:
        process.kill()
        process.wait()
        raise
    return ServingProcess(process, found[1].decode())


def end(process: "subprocess.Popen[bytes]") -> float:
    """Ask a process to end, and return after how many seconds it did."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_SECONDS)
    return time.monotonic() - began
