"""The tutorials as a new user has them: a wheel in an environment that holds nothing else, away from the checkout.

They run on the Postgres that comes with the package. `make test-wheel` runs this; it downloads all dependencies.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import open_folder
from tests.docs import pages
from tests.docs.test_commands import ROOT, TUTORIALS, page
from tests.wheels import build_wheel

pytestmark = [pytest.mark.wheel, pytest.mark.slow]

# Which could lead back to the checkout, or to a database.
WITHOUT = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


@pytest.fixture(scope="module")
def environment() -> Iterator[Path]:
    """A virtual environment with the wheel and its dependencies."""
    with open_folder() as folder:
        (folder / "wheel").mkdir()
        wheel = build_wheel(folder / "wheel")
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        install = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
        constraints = ["--constraint", str(ROOT / "constraints.txt")]
        wanted = f"{wheel}[encoders]"
        done = subprocess.run([*install, *constraints, wanted], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        yield environment


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_as_a_new_user_has_it(environment: Path, name: str) -> None:
    kept = {variable: value for variable, value in os.environ.items() if variable not in WITHOUT}
    with open_folder() as elsewhere:
        variables = {
            "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "VENN_ADMIT_HOME": str(elsewhere / "home"),
        }
        run = [str(environment / "bin" / "python"), "-P", pages.__file__, str(page(name))]
        done = subprocess.run(
            run, cwd=elsewhere, env=kept | variables, capture_output=True, text=True, check=False, timeout=1800
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{name}.md: every block does what it says\n")


def test_it_comes_from_the_wheel(environment: Path) -> None:
    where = "import venn_admit; print(venn_admit.__file__)"
    python = environment / "bin" / "python"
    done = subprocess.run([python, "-P", "-c", where], cwd="/", capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(environment)
