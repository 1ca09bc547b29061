"""What is installed: the wheel holds all that the program needs, and works away from the checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wheels import build_wheel
from venn_admit import __version__
from venn_admit.store.database.schema import head_revision

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]

# In the checkout and in the wheel.
FOLDERS = {
    "service/venn_admit": "venn_admit",
    "workers/venn_admit_workers": "venn_admit_workers",
    "client/venn_admit_client": "venn_admit_client",
    "migrations": "venn_admit/migrations",
    "examples/messages": "venn_admit/examples/messages",
    "examples/sentiment_small": "venn_admit/examples/sentiment_small",
}
WHERE_BUNDLED = """
from venn_admit.resources import bundled_folder

print(bundled_folder("migrations"), bundled_folder("examples"), sep="\\n")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from, which holds the wheel's content and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*install, str(wheel)], check=True)
    return folder


def run(installed: Path, elsewhere: Path, *arguments: str, **environment: str) -> str:
    """What Python prints with these arguments, somewhere else, without a way to the checkout."""
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(installed)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_holds_what_the_checkout_has_and_no_more(wheel: Path) -> None:
    expected = {
        f"{target}/{path.relative_to(ROOT / source)}"
        for source, target in FOLDERS.items()
        for path in (ROOT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == expected
    for name in (
        "venn_admit/migrations/env.py",
        "venn_admit/migrations/baseline/exemplars.sql",
        "venn_admit/migrations/routines/views/decision_v2.sql",
        "venn_admit/examples/sentiment_small/train.npz",
        "venn_admit/report/templates/page.html.j2",
        "venn_admit/store/sql/jobs.sql",
        "venn_admit/py.typed",
    ):
        assert name in held


def test_the_program_runs_from_it(installed: Path, tmp_path: Path, empty_database: str) -> None:
    database = {"VENN_ADMIT_DATABASE_URL": empty_database, "VENN_ADMIT_HOME": str(tmp_path / "home")}
    assert run(installed, tmp_path, "-m", "venn_admit.cli", "--version") == f"venn-admit {__version__}\n"
    migrations, examples = map(Path, run(installed, tmp_path, "-c", WHERE_BUNDLED).split())
    assert migrations == installed / "venn_admit" / "migrations"
    assert (examples / "sentiment_small" / "train.npz").is_file()

    run(installed, tmp_path, "-m", "venn_admit.cli", "db", "upgrade", **database)
    status = json.loads(run(installed, tmp_path, "-m", "venn_admit.cli", "db", "status", "--json", **database))
    assert status["revision"] == status["needed"] == head_revision()


def test_the_installed_command_is_the_program(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "venn-admit = venn_admit.cli.main:main" in archive.read(name).decode().splitlines()
