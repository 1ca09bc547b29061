"""Where the data lie if nothing says where: by the home of the user, and the first command says so."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import ROOT
from tests.conftest import open_folder
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.processes

# Whose default folder for root is not the machine's.
PROGRAM = """
import sys
from pathlib import Path
from venn_admit.runtime import home
from venn_admit.store.embedded import users
home._HOME_FOR_ROOT = users.HOME_FOR_ROOT = Path(sys.argv[1])
from venn_admit.cli.main import main
main(sys.argv[2:])
"""
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root's data may lie outside of the home")


@dataclass(frozen=True)
class Person:
    """Somebody with a home, who sets nothing."""

    home: Path
    shared: Path
    become: tuple[str, ...]

    def __call__(self, *arguments: str) -> tuple[Any, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("VENN_ADMIT_", "XDG_"))}
        done = subprocess.run(
            [*self.become, sys.executable, "-c", PROGRAM, str(self.shared), *arguments, "--json"],
            cwd=ROOT,
            env=kept | {"HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    def create(self, name: str) -> str:
        """Create a classifier; return what was said beside the result."""
        return self("create", name, "--classes", "a,b", "--dim", "2")[1]

    def names(self) -> list[str]:
        return [found["classifier"] for found in self("list")[0]["classifiers"]]


def person(folder: Path, name: str, *, mode: int = 0o755, uid: int | None = None) -> Person:
    home = folder / name
    home.mkdir()
    home.chmod(mode)
    if uid is not None:
        os.chown(home, uid, uid)
    become = () if uid is None else ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")
    return Person(home, folder / "shared", become)


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o755, pytest.param(0o700, marks=as_root)])
def test_two_homes_have_a_database_each(folder: Path, mode: int) -> None:
    ann, bob = person(folder, "ann", mode=mode), person(folder, "bob", mode=mode)
    for one in (ann, bob):
        said = one.create(one.home.name)
        assert one.names() == [one.home.name]
        (data,) = folder.rglob(f"*{one.home.name}*/**/postgres/PG_VERSION")
        assert said == f"the data are kept in {data.parents[1]}\n"
        assert one("list")[1] == ""
    assert [(folder / "shared").exists(), (ann.home / ".local").exists()] == [mode == 0o700, mode == 0o755]


def test_the_data_of_an_ordinary_user_are_below_its_home(folder: Path) -> None:
    user = person(folder, "user", mode=0o700, uid=NOBODY if IS_ROOT else None)
    said = user.create("reviews")
    assert user.names() == ["reviews"]
    data = user.home / ".local/share/venn-admit"
    assert said == f"the data are kept in {data}\n"
    assert (data / "postgres" / "PG_VERSION").exists()
    assert not user.shared.exists()


@as_root
def test_root_is_told_of_the_data_that_all_its_homes_used_to_share(folder: Path) -> None:
    ann = person(folder, "ann")
    (ann.shared / "postgres").mkdir(parents=True)
    said = ann.create("reviews")
    assert said.startswith(f"the data are kept in {ann.home / '.local/share/venn-admit'}; ")
    assert f"VENN_ADMIT_HOME={ann.shared} would use" in said
