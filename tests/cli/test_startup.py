"""What a command that only shows something imports: the less, the sooner it answers."""

import os
import subprocess
import sys

import pytest

from tests.cli.program import ROOT, Program
from tests.cli.samples import NAME

pytestmark = pytest.mark.processes

# Whatever these would bring takes longer than all that such a command does.
HEAVY = {"alembic", "altair", "celery", "fastapi", "kombu", "matplotlib", "pyarrow", "scipy", "structlog", "torch"}
# These serve the database.
OF_DATABASE = {"numpy", "psycopg", "sqlalchemy"}
RUN = """
import sys
from venn_admit.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def imported(program: Program, *arguments: str) -> set[str]:
    """All modules that a command has imported when it ends."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=ROOT,
        env=os.environ | program.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout
    return set(ran.stderr.split())


@pytest.mark.parametrize("verb", [(), ("list",), ("extract", "evaluate")], ids=" ".join)
def test_help_imports_neither_the_database_nor_what_computes(program: Program, verb: tuple[str, ...]) -> None:
    assert imported(program, *verb, "--help") & (HEAVY | OF_DATABASE) == set()


@pytest.mark.parametrize("verb", [("list",), ("show", NAME), ("calibrations", NAME)], ids=" ".join)
def test_what_only_shows_imports_nothing_that_computes_or_sends(calibrated: Program, verb: tuple[str, ...]) -> None:
    assert imported(calibrated, *verb) & HEAVY == set()
