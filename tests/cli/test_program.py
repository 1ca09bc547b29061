"""The program as a whole: help, exit codes, errors, where what goes, the database it finds or does not."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import venn_admit
from tests.cli import samples
from tests.cli.databases import CALIBRATION, copied
from tests.cli.program import Program, check_refusal, contents, get_command, nothing_stored, wait_for
from tests.cli.samples import NAME, SCORED_ROWS
from tests.migrations.migrating import as_a_newer_program_left_it
from tests.patience import PATIENCE_SECONDS
from venn_admit.cli import program
from venn_admit.cli.main import main
from venn_admit.cli.program import app
from venn_admit.errors import DatabaseError, InvalidInputError, NotFoundError, NotReadyError, VennAdmitError
from venn_admit.flows.data import create as create_flow
from venn_admit.runtime.interruption import Terminated
from venn_admit.store.database import schema
from venn_admit.store.database.engine import create_engine

UNREACHABLE = DatabaseError.exit_code
PASSWORD = "hunter2"

OF_PROGRAM: Any = get_command(app)
VERBS = [
    path
    for name, verb in OF_PROGRAM.commands.items()
    for path in ([(name, under) for under in verb.commands] if hasattr(verb, "commands") else [(name,)])
]


@contextmanager
def worker(program: Program) -> Iterator[None]:
    """A worker that was started beforehand."""
    with program.start("worker", "--concurrency", 1) as process:
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while not program("db", "status", "--json").result["workers"]:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline, "the worker does not come up"
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            _, stderr = wait_for(process)
    assert process.returncode == 0, stderr


@pytest.mark.processes
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_cannot_show_ends_nothing(own_calibrated: Program, encoding: str) -> None:
    """It is escaped."""
    assert own_calibrated("rename", NAME, "colours 🎨").code == 0
    shell = Program(own_calibrated.environment | {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding})
    listed = shell.apart("list")
    assert listed.code == 0, listed.stderr
    assert r"colours \U0001f3a8" in listed.stdout
    assert shell.apart("show", "🎨").code == NotFoundError.exit_code


@pytest.mark.processes
@pytest.mark.parametrize(("where", "code", "said"), [("&-", 0, ""), ("/dev/full", 1, "the output cannot be written: ")])
def test_nobody_takes_the_output(own_calibrated: Program, where: str, code: int, said: str) -> None:
    command = ["bash", "-c", f'"$0" -m venn_admit.cli list --json >{where}', sys.executable]
    environment = os.environ | own_calibrated.environment
    done = subprocess.run(command, check=False, env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") <= 1


def requests(files: Path, out: Path) -> list[tuple[object, ...]]:
    """Return a sound request to every verb that needs a database."""
    return [
        ("create", "other", "--classes", "good,bad", "--dim", 2),
        ("ingest", NAME, files / "train.npz", "--split", "train"),
        ("fit", NAME),
        ("calibrate", NAME, *CALIBRATION),
        ("list",),
        ("show", NAME),
        ("calibrations", NAME),
        ("rename", NAME, NAME),
        ("retire", NAME, 1),
        ("score", NAME, files / "scored.npz", "--out", out / "scores.parquet"),
        ("decide", NAME, files / "scored.npz"),
        ("index", "audit", NAME),
        ("evaluate", NAME, files / "scored.npz"),
        ("monitor", NAME),
        ("what-if", NAME, "--leave-out", "train-1"),
        ("replay", 1),
        ("export", NAME, "--what", "exemplars", "--out", out / "exemplars.parquet"),
        ("worker",),
        ("db", "upgrade"),
        ("db", "status"),
    ]


def test_help_is_complete() -> None:
    outcome = Program({})("--help")
    assert outcome.code == 0
    for verb, *_ in VERBS:
        assert f" {verb} " in outcome.stdout
    assert "─ Commands ─" not in outcome.stdout, "every verb has its heading"


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_of_every_verb(verb: tuple[str, ...]) -> None:
    outcome = Program({})(*verb, "--help")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert f"Usage: venn-admit {' '.join(verb)} " in outcome.stdout
    assert "│" not in outcome.stdout, "a frame leaves a third of the line to what an option does"


@pytest.mark.parametrize("verb", [("decide",), ("db", "status")], ids=" ".join)
def test_help_has_a_short_name(verb: tuple[str, ...]) -> None:
    assert Program({})(*verb, "-h") == Program({})(*verb, "--help")


def test_help_shows_arguments_as_they_are_typed_and_no_value_of_a_flag() -> None:
    told = Program({})("decide", "--help").stdout
    assert "Usage: venn-admit decide [OPTIONS] NAME [FILE]\n" in re.sub(" +\n", "\n", told)
    assert "<bool>" not in told


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_is_in_the_words_of_the_command_line(verb: tuple[str, ...]) -> None:
    """Not in those of Python: no lists, ranges of x, or brackets around names that have some."""
    told = Program({})(*verb, "--help").stdout
    usage = told.splitlines()[0]
    assert not re.search(r"\[\[|\}|\]\.\.\.\]", usage), usage
    assert not re.search(r"<list|range>|<=|[^ ]>=", told)
    assert "2147483647" not in told


def test_help_says_between_which_numbers_one_lies() -> None:
    assert "[default: 8470; 0 to 65535]" in " ".join(Program({})("serve", "--help").stdout.split())
    assert "[default: 20; at least 1]" in Program({})("jobs", "list", "--help").stdout


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [(KeyboardInterrupt(), 130, "interrupted\n"), (Terminated(signal.SIGTERM), 143, "terminated\n")],
)
def test_an_interruption_before_a_verb_begins_is_one_line(
    raised: KeyboardInterrupt, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the time of a short command is for imports."""

    def run(_arguments: object) -> None:
        raise raised

    monkeypatch.setattr(program, "run", run)
    with pytest.raises(SystemExit) as ended:
        main(["list"])
    assert ended.value.code == code
    assert capsys.readouterr() == ("", said)


def test_version() -> None:
    outcome = Program({})("--version")
    assert (outcome.code, outcome.stdout) == (0, f"venn-admit {venn_admit.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("creat",),
        ("create", "other"),
        ("create", "other", "--classes", "a,b", "--dim", "many"),
        ("ingest", NAME),
        ("calibrate", NAME, "--method", "venn-admit", "--kappa", 0),
        ("calibrate", NAME, "--method", "venn-admit", "--kappa", 2**31),
        ("calibrate", NAME, "--method", "venn-admit", "--kappa", "1.5"),
        ("score", NAME, "--out", "x.parquet"),
        ("worker", "--concurrency", 0),
        ("jobs", "list", "--limit", 10**20),
        ("calibrations", NAME, "--limit", 10**20),
        ("fit", NAME, "--unknown"),
    ],
)
def test_arguments_that_do_not_parse(ingested: Program, arguments: tuple[object, ...]) -> None:
    with nothing_stored(ingested):
        outcome = ingested(*arguments)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "Usage: venn-admit" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_an_option_that_is_given_twice_is_refused(ingested: Program) -> None:
    """The last one alone would count, so that less would be promised than was asked for."""
    refused = ingested("calibrate", NAME, "--certify", "predicted", "--certify=true")
    assert (refused.code, refused.stdout) == (2, "")
    assert "'--certify': given 2 times; give it once, with commas between values" in " ".join(
        refused.stderr.replace("│", " ").split()
    )


@pytest.mark.processes
def test_a_run_from_a_shell(program: Program, tmp_path: Path) -> None:
    """The result alone is on standard output, progress on standard error."""
    made = program.apart("create", NAME, "--classes", "a,b,c", "--dim", samples.DIMENSION, "--json")
    assert made.result["classifier"] == NAME
    assert made.stderr == ""
    ingested = program.apart(
        "ingest", NAME, samples.save(tmp_path, "train.npz", samples.train()), "--split", "train", "--json"
    )
    assert ingested.result["new"] == samples.TRAIN_ROWS
    assert ingested.stdout.count("\n") == 1
    assert "Ingesting train.npz" in ingested.stderr


@pytest.mark.processes
def test_an_error_at_a_shell(ingested: Program) -> None:
    with nothing_stored(ingested):
        outcome = ingested.apart("fit", "nobody", "--json")
        check_refusal(outcome, NotFoundError.exit_code, "no classifier is named 'nobody'")
        assert outcome.stderr.count("\n") == 1


@pytest.mark.processes
def test_debug_shows_where_an_error_comes_from(ingested: Program) -> None:
    outcome = ingested.apart("--debug", "fit", "nobody")
    assert (outcome.code, outcome.stdout) == (NotFoundError.exit_code, "")
    assert outcome.stderr.startswith("Traceback (most recent call last):")
    assert outcome.stderr.splitlines()[-1].startswith("error: no classifier is named 'nobody'")
    assert "Traceback" not in ingested("fit", "nobody").stderr  # it holds for one run


def test_an_error_nobody_foresaw(ingested: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of a kind")

    monkeypatch.setattr(create_flow, "create", fail)
    verb = ("create", "other", "--classes", "a,b", "--dim", 2)
    check_refusal(ingested(*verb), VennAdmitError.exit_code, "ZeroDivisionError: of a kind; .*--debug")
    assert "Traceback" in ingested("--debug", *verb).stderr


def test_an_interruption(ingested: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(create_flow, "create", interrupt)
    outcome = ingested("create", "other", "--classes", "a,b", "--dim", 2)
    assert (outcome.code, outcome.stderr) == (128 + signal.SIGINT, "interrupted\n")


def test_exit_codes_are_one_for_each_family() -> None:
    families = (VennAdmitError, InvalidInputError, NotFoundError, NotReadyError, DatabaseError)
    assert [family.exit_code for family in families] == [1, 2, 3, 4, 5]


def test_upgrade_and_status(empty_database: str, tmp_path: Path, files: Path) -> None:
    program = Program({"VENN_ADMIT_DATABASE_URL": empty_database, "VENN_ADMIT_HOME": str(tmp_path / "home")})
    head = schema.head_revision()
    outcome = program("db", "status", "--json")
    assert outcome.code == NotReadyError.exit_code
    status = json.loads(outcome.stdout)
    assert status == {
        "database": "the server in VENN_ADMIT_DATABASE_URL",
        "revision": None,
        "needed": head,
        "workers": 0,
    }
    told = program("db", "status")
    assert told.code == NotReadyError.exit_code
    assert f"Revision none, needed {head}: run `venn-admit db upgrade`." in told.stdout
    for request in requests(files, tmp_path)[:-3]:
        check_refusal(program(*request), NotReadyError.exit_code, "revision none, .*; run `venn-admit db upgrade`$")
    unchecked = program("db", "check")
    assert (unchecked.code, unchecked.stderr.endswith("; run `venn-admit db upgrade`\n")) == (4, True)
    assert contents(program.url) == {}

    for _ in range(2):
        assert program("db", "upgrade", "--json").result == {"revision": head}
    assert program("db", "status", "--json").result == status | {"revision": head}
    assert program("db", "upgrade").stdout == f"The database is at revision {head}.\n"
    assert f"Revision {head}, which is up to date.\nWorkers up: 0.\n" in program("db", "status").stdout

    # A newer program upgrades it: probes must not stop the workers of this one while they go on.
    engine = create_engine(empty_database)
    as_a_newer_program_left_it(engine, head)
    told = program("db", "status")
    assert (told.code, told.stdout.splitlines()[1]) == (
        0,
        f"Revision 9999, by a newer program; this one is of {head}, and works on it.",
    )
    assert program("list").code == 0
    unchecked = program("db", "check")
    assert unchecked.code == NotReadyError.exit_code
    assert unchecked.stderr.endswith(f"this program checks one of revision {head}: install the newer version\n")
    as_a_newer_program_left_it(engine, "9000")
    engine.dispose()
    told = program("db", "status")
    assert told.code == program("list").code == program("db", "check").code == NotReadyError.exit_code
    assert f"this one is of {head}, and too old for it: install the newer version." in told.stdout


@contextmanager
def closed_port() -> Iterator[int]:
    """A port nobody listens on: it is taken, but not opened."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.processes
def test_a_database_that_is_down(files: Path, tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    out.mkdir()
    with closed_port() as port:
        url = f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/calibration"
        program = Program({"VENN_ADMIT_DATABASE_URL": url, "VENN_ADMIT_HOME": str(home)})
        for request in requests(files, out):
            outcome = program(*request)
            saying = rf"the database postgresql://me:\*\*\*@127\.0\.0\.1:{port}/calibration cannot be reached: .*check"
            check_refusal(outcome, UNREACHABLE, saying)
            assert PASSWORD not in outcome.stderr
        shown = program.apart("--debug", "fit", NAME)
    assert (shown.code, shown.stdout) == (UNREACHABLE, "")
    assert "Traceback" in shown.stderr
    assert PASSWORD not in shown.stderr
    assert not list(out.iterdir())
    assert not home.exists()


def test_an_address_that_is_none() -> None:
    program = Program({"VENN_ADMIT_DATABASE_URL": f"mysql://me:{PASSWORD}@host/name"})
    outcome = program("db", "status")
    check_refusal(outcome, InvalidInputError.exit_code, "VENN_ADMIT_DATABASE_URL: expected postgresql://")
    assert PASSWORD not in outcome.stderr


def check_home_refused(program: Program, *request: object) -> None:
    check_refusal(program(*request), UNREACHABLE, f"{program.home}.*: .*set VENN_ADMIT_HOME to a ")


# Root may write whatever the mode of a folder.
@pytest.fixture(params=["no folder", "no such place", *(["no right"] if os.geteuid() else [])])
def read_only_home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A home that can be neither made nor written."""
    if request.param == "no such place":
        yield Path("/proc/venn-admit")
    elif request.param == "no folder":
        (tmp_path / "file").touch()
        yield tmp_path / "file" / "home"
    else:
        folder = tmp_path / "folder"
        folder.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
        yield folder
        folder.chmod(stat.S_IRWXU)


def test_a_read_only_home(read_only_home: Path, files: Path, tmp_path: Path) -> None:
    """Which is where the database would be, where no server is named."""
    program = Program({"VENN_ADMIT_HOME": str(read_only_home)})
    out = tmp_path / "out"
    out.mkdir()
    for request in requests(files, out):
        check_home_refused(program, *request)
    assert not list(out.iterdir())


def test_a_read_only_home_beside_a_server(
    own_calibrated: Program, read_only_home: Path, files: Path, tmp_path: Path
) -> None:
    """No job is recorded that would find no worker; what needs none is done."""
    program = Program(own_calibrated.environment | {"VENN_ADMIT_HOME": str(read_only_home)})
    with nothing_stored(program):
        check_home_refused(program, "fit", NAME)
        check_home_refused(program, "calibrate", NAME)
        check_home_refused(program, "score", NAME, files / "scored.npz", "--out", tmp_path / "scores.parquet")
    assert program("ingest", NAME, files / "train.npz", "--split", "train").code == 0
    assert program("export", NAME, "--what", "parameters", "--out", tmp_path / "out.json").code == 0
    assert program("create", "other", "--classes", "a,b", "--dim", 2).code == 0


@pytest.mark.processes
def test_a_worker_with_a_read_only_home_takes_no_messages(own_calibrated: Program, read_only_home: Path) -> None:
    """It would fail the jobs that other workers can compute."""
    program = Program(own_calibrated.environment | {"VENN_ADMIT_HOME": str(read_only_home)})
    check_refusal(program.apart("worker"), UNREACHABLE, f"{program.home}.*: .*set VENN_ADMIT_HOME to a ")


@pytest.mark.processes
def test_without_a_server_the_database_is_in_the_home(home: Path) -> None:
    """It is made, migrated and stopped as need be."""
    program = Program({"VENN_ADMIT_HOME": str(home)})
    created = program.apart("create", "other", "--classes", "a,b", "--dim", 2)
    assert created.code == 0
    assert created.stderr.startswith(f"the data are kept in {home}")
    status = program.apart("db", "status", "--json").result
    assert status["database"] == str(home)
    assert status["revision"] == status["needed"] == schema.head_revision()
    assert program.apart("create", "other", "--classes", "a,b", "--dim", 2).code == InvalidInputError.exit_code


@pytest.mark.processes
def test_work_goes_to_a_worker_that_is_there(own_ingested: Program) -> None:
    with worker(own_ingested):
        assert own_ingested("db", "status", "--worker-here", "--json").result["workers"] == 1
        fitted = own_ingested.apart("fit", NAME, "--json")
        calibrated = own_ingested.apart("calibrate", NAME, *CALIBRATION, "--json")
    assert fitted.result["dev_discrepancies"] < fitted.result["dev"] / 5
    assert "Searching neighbours" in fitted.stderr
    assert calibrated.result["vp_singletons"] > 0
    assert "Approximating" in calibrated.stderr
    assert not (own_ingested.home / "logs").exists()
    assert own_ingested("db", "status", "--json").result["workers"] == 0
    asked = own_ingested("db", "status", "--worker-here")
    check_refusal(asked, NotReadyError.exit_code, "no worker on this machine takes messages")
    check_refusal(own_ingested("db", "status", "--beat-here"), NotReadyError.exit_code, "no beat has run here")


@pytest.mark.processes
def test_where_no_worker_is_there_one_is_started_and_stopped(
    own_calibrated: Program, calibrated: Program, server_url: str, files: Path, tmp_path: Path
) -> None:
    """What it computes is what this process does."""
    theirs, ours = tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    scored = own_calibrated.apart("score", NAME, files / "scored.npz", "--out", theirs, "--json")
    assert scored.result["rows"] == SCORED_ROWS
    assert "Scoring scored.npz" in scored.stderr
    (log,) = (own_calibrated.home / "logs").iterdir()
    assert '"chunk is done"' in log.read_text()
    assert own_calibrated("db", "status", "--json").result["workers"] == 0
    with copied(calibrated, server_url, tmp_path / "copy") as copy:
        assert copy("score", NAME, files / "scored.npz", "--out", ours).code == 0
    assert pq.read_table(theirs) == pq.read_table(ours)
