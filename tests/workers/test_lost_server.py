"""A worker and beat that run beside the embedded server start it again when it has died."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.cli.program import ROOT, Program
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.cli.worker_process import worker_environment

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("verb", ["worker", "beat"])
def test_it_is_started_again(home: Path, tmp_path: Path, verb: str) -> None:
    program = Program({"VENN_ADMIT_HOME": str(home), "VENN_ADMIT_DATABASE_URL": ""})
    command = [sys.executable, "-m", "venn_admit.cli", verb]
    log = tmp_path / "log"
    with log.open("wb") as opened:
        process = subprocess.Popen(
            command, cwd=ROOT, env=worker_environment() | program.environment, stdout=opened, stderr=opened
        )
    try:
        wait_until(lambda: program.apart("db", "status", f"--{verb}-here").code == 0, f"the {verb} is up")
        trace = home / "postgres" / "postmaster.pid"
        server = psutil.Process(int(trace.read_text().split()[0]))
        server.kill()
        server.wait(PATIENCE_SECONDS)
        wait_until(lambda: "it was started again" in log.read_text(), "the server is up again")
        # This command finds it up.
        before = trace.read_text()
        wait_until(lambda: program.apart("db", "status", f"--{verb}-here").code == 0, f"the {verb} goes on")
        assert trace.read_text() == before
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)
