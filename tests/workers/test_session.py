"""A verb's session: it uses the workers there are, and starts one of its own where there is none."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.workers.processes import await_workers, live_workers, running_worker
from tests.workers.samples import SCORED_ROWS, progress, request_score, value
from venn_admit.cli import worker_process
from venn_admit.cli.opening import connect_unchecked
from venn_admit.cli.session import Session
from venn_admit.cli.waiting import Waiting
from venn_admit.cli.worker_process import KEPT_LOGS
from venn_admit.errors import JobError
from venn_admit.runtime.settings import get_settings

pytestmark = pytest.mark.processes


@pytest.fixture
def session(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", url)
    monkeypatch.setenv("VENN_ADMIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VENN_ADMIT_WORKER_CONCURRENCY", "1")
    get_settings.cache_clear()
    session = connect_unchecked()
    yield session
    session.broker.close()
    session.engine.dispose()


def own_workers(tmp_path: Path) -> int:
    """How many workers the session has started: each has a log."""
    return len(list((tmp_path / "home" / "logs").glob("worker-*.log")))


def test_it_starts_a_worker_where_those_that_were_there_have_left(
    session: Session, url: str, engine: Engine, tmp_path: Path
) -> None:
    done: list[int] = []
    with running_worker(url, tmp_path / "other", chunk_row=7) as other:
        await_workers(engine, 1)
        (unknown,) = other.of_event("unknown variable")
        assert "did you mean VENN_ADMIT_CHUNK_ROWS?" in unknown["reason"]
        with session.workers() as check_workers:
            session.run_job(request_score(engine, tmp_path), lambda state: done.append(state.rows_done))
            assert done[-1] == SCORED_ROWS
            assert own_workers(tmp_path) == 0

            assert other.stop() == 0
            await_workers(engine, 0)
            check_workers()
            assert own_workers(tmp_path) == 1
            with session.workers():
                await_workers(engine, 1)
                check_workers()
            assert live_workers(engine) == 1, "the inner block leaves the worker of the outer one"
        await_workers(engine, 0)


def start_instead(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(worker_process, "worker_command", lambda _: [sys.executable, "-c", program])


def test_a_worker_that_ends_is_told_with_its_last_words(
    session: Session, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, "import sys; sys.exit('out of luck')")
    job_id = request_score(engine, tmp_path)
    with pytest.raises(JobError, match=r"the worker ended with code 1; see .*worker-\d+\.log: out of luck"):
        session.run_job(job_id, lambda _: None)
    assert progress(engine, job_id).state == "running"


def test_a_worker_that_does_not_come_up_is_not_waited_for_forever(
    session: Session, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, "import sys; sys.stdin.read()")
    monkeypatch.setattr(worker_process, "START_SECONDS", 0.5)
    with pytest.raises(JobError, match="no worker started within"):
        session.run_job(request_score(engine, tmp_path), lambda _: None)


def test_nothing_is_started_for_a_job_that_is_done(session: Session, engine: Engine, tmp_path: Path) -> None:
    Waiting(session).run_job(value(engine, "SELECT max(id) FROM job WHERE state = 'done'"), "Scoring")
    assert own_workers(tmp_path) == 0


def test_logs_are_for_their_owner_and_the_last_few_are_kept(
    session: Session, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, "import sys; sys.exit('out of luck')")
    logs = tmp_path / "home" / "logs"
    logs.mkdir(parents=True)
    ended = 2**22 + 1  # more than the number of any process
    for age in range(KEPT_LOGS + 5):
        (logs / f"worker-{ended + age}.log").touch()
        os.utime(logs / f"worker-{ended + age}.log", (1000 - age, 1000 - age))
    with pytest.raises(JobError):
        session.run_job(request_score(engine, tmp_path), lambda _: None)
    own = logs / f"worker-{os.getpid()}.log"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert set(logs.iterdir()) == {own, *(logs / f"worker-{ended + age}.log" for age in range(KEPT_LOGS))}
