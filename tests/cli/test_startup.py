"""What a command that only shows something imports: the less, the sooner it answers."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.program import ROOT, Program
from tests.cli.samples import NAME

pytestmark = pytest.mark.processes

# Whatever these would bring takes longer than all that such a command does.
HEAVY = {"alembic", "altair", "celery", "fastapi", "kombu", "matplotlib", "pyarrow", "scipy", "structlog", "torch"}
# Typer would import this to convert what need not be converted.
OF_OPTIONS = {"pydantic"}
# These serve the database.
OF_DATABASE = {"numpy", "psycopg", "sqlalchemy"}
# For waiting, and for workers.
OF_JOBS = {"psutil", "rich.progress", "rich.status", "venn_admit.cli.waiting"}
# What computes, and the tables, which statements do not need.
OF_COMPUTING = {
    "venn_admit.core.calibrators.certified.certify",
    "venn_admit.store.calibrations.calibrations",
    "venn_admit.store.database.tables",
}
# Records of results that these do not show; Markdown and tracebacks, which help does not.
OF_RESULTS = {f"venn_admit_client.records.{module}" for module in ("cascades", "decisions", "reports")}
OF_HELP = {"attr", "markdown_it", "pygments", "rich.markdown", "rich.status", "rich.traceback"}
VERBS = "venn_admit.cli.verbs"
RUN = """
import sys
from venn_admit.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def imported(environment: Mapping[str, str], *arguments: str) -> set[str]:
    """All modules that a command has imported when it ends."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout
    return set(ran.stderr.split())


@pytest.mark.parametrize("verb", [(), ("list",), ("report",), ("jobs", "list"), ("extract", "evaluate")], ids=" ".join)
def test_help_imports_neither_the_database_nor_what_computes(
    monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    """Nor the settings, whose environment variables are looked up only if there are any."""
    for name in os.environ:
        if name.startswith("VENN_ADMIT_"):
            monkeypatch.delenv(name)
    unwanted = HEAVY | OF_DATABASE | OF_OPTIONS | OF_HELP | {"rich.progress", "venn_admit_client.records"}
    assert imported({}, *verb, "--help") & unwanted == set()


@pytest.mark.parametrize(
    "verb", [("list",), ("show", NAME), ("calibrations", NAME), ("jobs", "list"), ("key", "list")], ids=" ".join
)
def test_what_only_shows_imports_nothing_that_computes_or_sends(calibrated: Program, verb: tuple[str, ...]) -> None:
    assert imported(calibrated.environment, *verb) & (HEAVY | OF_OPTIONS | OF_JOBS | {"numpy"}) == set()


@pytest.mark.parametrize("verb", [("list",), ("show", NAME), ("jobs", "list")], ids=" ".join)
def test_what_lists_makes_neither_tables_nor_what_computes(calibrated: Program, verb: tuple[str, ...]) -> None:
    assert imported(calibrated.environment, *verb) & (OF_COMPUTING | OF_RESULTS) == set()


def test_deciding_imports_nothing_that_fits(calibrated: Program, files: Path) -> None:
    brought = imported(calibrated.environment, "decide", NAME, str(files / "scored.npz"))
    assert "numpy" in brought
    assert "torch" not in brought


SERVING = """
import sys
from venn_admit.api import server
from venn_admit.web import site
print(*sys.modules)
"""


def test_a_service_imports_what_draws_and_computes_when_it_is_asked_for() -> None:
    ran = subprocess.run([sys.executable, "-c", SERVING], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "fastapi" in ran.stdout.split()
    assert set(ran.stdout.split()) & {"altair", "matplotlib", "scipy", "torch"} == set()


def test_a_fit_imports_no_compiler(own_ingested: Program) -> None:
    """Torch's optimizers import its own at their first step."""
    brought = imported(own_ingested.environment, "fit", NAME)
    assert "torch" in brought
    assert "torch._dynamo" not in brought


COLLECTIONS = """
import gc
from venn_admit.cli.main import main
before = gc.get_stats()[0]["collections"]
try:
    main()
finally:
    print("collections", gc.get_stats()[0]["collections"] - before, "frozen", gc.get_freeze_count() > 0)
"""


def test_a_short_command_collects_no_garbage(calibrated: Program) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COLLECTIONS, "list"],
        cwd=ROOT,
        env=os.environ | calibrated.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "collections 0 frozen True"


SETTLED = """
import gc
from venn_admit.cli import program
from venn_admit.cli.main import main
program.run = lambda _: [[] for _ in range(300_000)] and print(gc.get_threshold()[0], gc.get_freeze_count() > 10_000)
main()
"""


def test_a_long_command_collects_once_it_has_started() -> None:
    ran = subprocess.run([sys.executable, "-c", SETTLED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["50000", "True"]


CALLED = """
import gc
from venn_admit.cli import program
from venn_admit.cli.main import main
left = []
gc.callbacks.insert(0, lambda phase, _: phase == "stop" and left.append(len(gc.callbacks)))
program.run = lambda _: [[] for _ in range(300_000)] and print(left[0])
main()
"""


def test_no_callback_is_left_in_which_ctrl_c_during_the_first_collection_would_be_lost() -> None:
    ran = subprocess.run([sys.executable, "-c", CALLED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1"], ran.stderr


def test_a_verb_imports_no_other_verbs(calibrated: Program) -> None:
    of_verbs = {module for module in imported(calibrated.environment, "list") if module.startswith(VERBS)}
    assert of_verbs == {VERBS, f"{VERBS}.running", f"{VERBS}.running.catalogue"}
    assert imported({}, "jobs", "list", "--help") & {f"{VERBS}.running.catalogue", "venn_admit.cli.session"} == set()
