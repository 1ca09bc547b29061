"""`serve` as a process of its own."""

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.program import Program, wait_for


@contextmanager
def serving(program: Program, *, port: int = 0) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The process and its URL; port 0: any that is free."""
    process = program.start("serve", "--port", port)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"Listening on (http://\S+)", line)
            if found:
                yield process, found[1]
                return
        pytest.fail(f"it ended: {process.communicate()}")
    finally:
        process.kill()
        process.communicate()


def end(process: "subprocess.Popen[str]") -> float:
    """Ask a process to end, and return after how many seconds it did."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    wait_for(process)
    return time.monotonic() - began
