"""A program that is asked to end stops what it started, the embedded server included."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.cli.program import Program, wait_for
from tests.conftest import open_folder
from tests.patience import wait_until
from tests.store.embedded.test_users import USE_UNTIL_CLOSED, finish, line_from, postmaster, program

pytestmark = pytest.mark.processes

WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'venn_admit.classifier'::regclass AND NOT granted"
WORKERS_UP = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'venn-admit-worker'"


@pytest.fixture(scope="module")
def made_home() -> Iterator[Path]:
    """The home of a migrated embedded database that nobody uses."""
    with open_folder() as folder:
        made = Program({"VENN_ADMIT_HOME": str(folder / "home")}).apart("db", "upgrade")
        assert made.code == 0, made
        yield folder / "home"


@pytest.fixture(autouse=True)
def hangup_is_heeded() -> Iterator[None]:
    """A program that was started to ignore SIGHUP, as by nohup, does so: those of these tests must not inherit that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@contextmanager
def blocked_creation(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """`create` as it waits for a lock, the only user of its embedded server."""
    with program(USE_UNTIL_CLOSED, home) as other:
        address = line_from(other).replace("+psycopg", "")
        with closing(psycopg.connect(address)) as holder, closing(psycopg.connect(address, autocommit=True)) as look:
            holder.execute("LOCK TABLE venn_admit.classifier")
            creation = Program({"VENN_ADMIT_HOME": str(home)}).start("create", "x", "--classes", "a,b", "--dim", 2)
            with creation:
                try:
                    wait_until(lambda: look.execute(WAITING).fetchone() == (1,), "the creation waits")
                    finish(other)
                    yield creation
                finally:
                    creation.kill()


@pytest.mark.parametrize("request_to_end", [signal.SIGTERM, signal.SIGHUP])
def test_a_verb_that_is_asked_to_end_stops_the_embedded_server(made_home: Path, request_to_end: signal.Signals) -> None:
    with blocked_creation(made_home) as creation:
        creation.send_signal(request_to_end)
        stdout, stderr = wait_for(creation)
    assert (creation.returncode, stdout, stderr) == (128 + request_to_end, "", "terminated\n")
    assert postmaster(made_home) is None


@pytest.mark.parametrize("verb", ["worker", "beat"])
def test_a_worker_or_beat_that_is_asked_to_end_stops_the_embedded_server(made_home: Path, verb: str) -> None:
    with Program({"VENN_ADMIT_HOME": str(made_home), "VENN_ADMIT_WORKER_CONCURENCY": "2"}).start(verb) as process:
        try:
            with program(USE_UNTIL_CLOSED, made_home) as other:
                with closing(psycopg.connect(line_from(other).replace("+psycopg", ""), autocommit=True)) as look:
                    wait_until(lambda: look.execute(WORKERS_UP).fetchone() == (True,), f"{verb} uses the database")
                finish(other)
            process.terminate()
            _, stderr = wait_for(process)
        finally:
            process.kill()
    assert process.returncode in {0, 128 + signal.SIGTERM}, stderr
    assert postmaster(made_home) is None
    assert "VENN_ADMIT_WORKER_CONCURENCY has no effect" in stderr.splitlines()[0]
