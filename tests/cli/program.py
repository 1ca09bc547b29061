"""The program on one database: in this process, which is quick, or in one of its own, as from a shell."""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer.main
from sqlalchemy import text
from structlog.testing import capture_logs

from tests.patience import PATIENCE_SECONDS
from tests.running import run_chunk
from venn_admit.cli import session
from venn_admit.cli.main import main
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.runtime import workspace as runtime
from venn_admit.runtime.settings import get_settings
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.work import jobs

ROOT = Path(__file__).parents[2]


TABLES = """
SELECT oid::regclass::text
FROM pg_class
WHERE relnamespace = to_regnamespace('venn_admit') AND relkind IN ('r', 'p')
"""
DIGEST = """
SELECT
    '{0}' AS name,
    count(*) || ' rows ' || coalesce(md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))), '') AS digest
FROM {0} AS t
"""

# A row that is new or written again has a later transaction.
VERSION = "SELECT '{0}' AS name, count(*) || ' rows ' || coalesce(sum(xmin::text::bigint), 0) AS digest FROM {0}"

# Typer makes all verbs again at each call, which takes longer than most of them.
get_command = functools.cache(typer.main.get_command)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of the program left: its exit code and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """What --json wrote: one object, alone on standard output, after success."""
        assert self.code == 0, self
        parsed = json.loads(self.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
        assert isinstance(parsed, dict)
        return parsed


@dataclass(frozen=True, slots=True)
class Program:
    """The program with an environment of its own; the database's URL, where it has one."""

    environment: dict[str, str]

    @property
    def url(self) -> str:
        return self.environment["VENN_ADMIT_DATABASE_URL"]

    @property
    def home(self) -> Path:
        return Path(self.environment["VENN_ADMIT_HOME"])

    def __call__(self, *arguments: object) -> Outcome:
        """Run in this process, which is its own worker too."""
        stdout, stderr = StringIO(), StringIO()
        with self._settings(), _own_worker(), redirect_stdout(stdout), redirect_stderr(stderr):
            try:
                main(list(map(str, arguments)))
            except SystemExit as stop:
                code = stop.code
            else:
                pytest.fail("the program did not exit")
        assert isinstance(code, int)
        return Outcome(code, stdout.getvalue(), stderr.getvalue())

    def apart(self, *arguments: object) -> Outcome:
        """Run in a process of its own, which starts a worker where it needs one."""
        with self.start(*arguments) as process:
            stdout, stderr = wait_for(process)
        return Outcome(process.returncode, stdout, stderr)

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "venn_admit.cli", *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def _settings(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            get_settings.cache_clear()
            yield
        get_settings.cache_clear()


@contextmanager
def _own_worker() -> Iterator[None]:
    """Let sessions compute their jobs themselves, and close their connections at the end."""
    opened = []

    def make_engine(*arguments: Any, **options: Any) -> Any:
        opened.append(create_engine(*arguments, **options))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch, capture_logs():
        patch.setattr(typer.main, "get_command", get_command)
        patch.setattr(runtime, "create_engine", make_engine)
        patch.setattr(session.Session, "send", lambda _session, _job_id: None)
        patch.setattr(session.Session, "run_job", _run_job)
        patch.setattr(session.Session, "workers", nullcontext)
        try:
            yield
        finally:
            for engine in opened:
                engine.dispose()


def _run_job(
    self: session.Session, job_id: int, on_progress: Callable[[jobs.Progress], None], _on_wait: object = None
) -> None:
    runner = self.chunk_runner("test")
    with transaction(self.engine) as connection:
        chunks = jobs.take_unsent(connection, job_id)
    for chunk in chunks:
        run_chunk(runner, *chunk)
    compute_job(self.engine, runner, job_id)  # which leaves to a worker beside it what that has
    with connect(self.engine) as connection:
        on_progress(jobs.progress(connection, job_id))


def wait_for(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Return what a process wrote until its end; one that does not come to it is killed, and the test fails."""
    try:
        return process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def contents(url: str, digest: str = DIGEST) -> dict[str, str]:
    """Return, of every table of ours, how many rows it has and a digest of them."""
    engine = create_engine(url)
    try:
        with connect(engine) as connection:
            tables = connection.execute(text(TABLES)).scalars().all()
            if not tables:
                return {}
            digests = connection.execute(text(" UNION ALL ".join(map(digest.format, tables))))
            return {row.name: row.digest for row in digests}
    finally:
        engine.dispose()


def versions(url: str) -> dict[str, str]:
    """Return, of every table of ours, how many rows it has and what changes when one is written; cheap."""
    return contents(url, VERSION)


@contextmanager
def nothing_stored(program: Program) -> Iterator[None]:
    """See that the block leaves every table as it was."""
    before = versions(program.url)
    yield
    assert versions(program.url) == before


def check_refusal(outcome: Outcome, code: int, saying: str) -> None:
    """See that the program said in a line why it would not, and nothing else."""
    assert outcome.code == code, outcome
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    (said,) = (line for line in outcome.stderr.splitlines() if line.startswith("error: "))
    assert re.search(saying, said), said
