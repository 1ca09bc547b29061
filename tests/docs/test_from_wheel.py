"""The pages as a new user has them: a wheel, and what they say to install besides, away from the checkout.

They run on the Postgres that comes with the package. `make test-wheel` runs this; it downloads all dependencies.
"""

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import open_folder
from tests.docs import pages
from tests.docs.test_commands import ROOT, page
from tests.patience import PATIENCE_SECONDS
from tests.wheels import build_wheel, install, make_environment

pytestmark = [pytest.mark.wheel, pytest.mark.slow]

# Which could lead back to the checkout, or to a database.
WITHOUT = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
INSTALL = re.compile(r"^\$ pip install (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Wheels:
    """The wheels of the checkout's distributions, by how the pages call them, and an environment with the first."""

    places: dict[str, Path]
    environment: Path

    def in_place_of(self, requirement: str) -> str:
        """A requirement as a page has it, with the wheel in place of the checkout."""
        place, bracket, extras = requirement.partition("[")
        return f"{self.places[place]}{bracket}{extras}" if place in self.places else requirement


@dataclass(frozen=True)
class Reader:
    """Somebody in a folder of their own, with an environment."""

    environment: Path
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        kept = {variable: value for variable, value in os.environ.items() if variable not in WITHOUT}
        path = f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return kept | {"PATH": path, "VENN_ADMIT_HOME": str(self.folder / "home")}

    def read(self, name: str, **variables: str) -> None:
        """Type what a page says."""
        run = [str(self.environment / "bin" / "python"), "-P", pages.__file__, str(page(name))]
        done = subprocess.run(
            run,
            cwd=self.folder,
            env=self.variables | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"{name}.md: every block does what it says\n")

    def asks(self, *arguments: str) -> Any:
        """What a command answers as JSON."""
        command = [str(self.environment / "bin" / "venn-admit"), *arguments, "--json"]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def running(self, verb: str, saying: str) -> Iterator[re.Match[str]]:
        """Run a verb of the program beside what follows; yields what it said."""
        log = self.folder / f"{verb}.log"
        with log.open("wb") as opened:
            command = [str(self.environment / "bin" / "venn-admit"), *verb.split()]
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.variables, stdout=opened, stderr=subprocess.STDOUT
            )
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while (said := re.search(saying, log.read_text())) is None:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield said
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


@pytest.fixture(scope="module")
def wheels() -> Iterator[Wheels]:
    """The wheels, and a virtual environment with the first and its dependencies, which are large."""
    with open_folder(large=True) as folder:
        places = {}
        for place, of in (("path/to/the/checkout", ROOT), ("path/to/the/checkout/client", ROOT / "client")):
            into = folder / of.name
            into.mkdir()
            places[place] = build_wheel(into, of=of)
        environment = make_environment(folder / "environment")
        install(environment, str(places["path/to/the/checkout"]))
        yield Wheels(places, environment)


@contextmanager
def reading(wheels: Wheels, *names: str) -> Iterator[Reader]:
    """Somebody who has installed what these pages say, in a new environment beside that of the wheel."""
    with open_folder(large=True) as folder:
        environment = make_environment(folder / "environment")
        (packages(environment) / "wheel.pth").write_text(f"{packages(wheels.environment)}\n")
        for name in names:
            commands = [block.content for block in pages.blocks(page(name)) if block.language == "console"]
            for wanted in INSTALL.findall("".join(commands)):
                install(environment, *map(wheels.in_place_of, shlex.split(wanted)))
        # A program that pip finds installed has its command in the other environment.
        command = environment / "bin" / "venn-admit"
        if not command.exists():
            command.write_text(f"#!{environment / 'bin' / 'python'}\nfrom venn_admit.cli.main import main\nmain()\n")
            command.chmod(0o755)
        yield Reader(environment, folder)


def test_the_tutorial_as_a_new_user_has_it(wheels: Wheels) -> None:
    with reading(wheels, "tutorial") as reader:
        reader.read("tutorial")


def test_the_tutorial_from_texts_as_a_new_user_has_it(wheels: Wheels) -> None:
    """Network and KNN are about as often right, and neither is always, within three standard errors of 300 messages.

    Among the partitions that the page shows, the one with q = K is more often right than the one with q = 0, and the
    nearest quarter by d than the farthest.
    """
    with reading(wheels, "tutorial-texts") as reader:
        reader.read("tutorial-texts")
        found = json.loads((reader.folder / "teams" / "evaluation" / "evaluation.json").read_text("utf-8"))
        files = ("messages/test.csv", "--train", "messages/train.csv", "--fit", "messages/held-out.csv")
        layer = reader.asks("extract", "evaluate", "teams/model", *files)["levels"]["document"]
    network, knn = (found["accuracy"][who]["accuracy"] for who in ("network", "KNN"))
    assert 0.8 < network < 0.97
    assert knn == pytest.approx(network, abs=0.05)
    counts, edges = np.array(layer["partitions"]["count"]), layer["partitions"]["match_edges"]
    assert (edges[:2], edges[-2:]) == ([0, 1], [25, 26])
    for who in ("network", "knn"):
        right = np.array(layer["partitions"][f"{who}_right"])
        by_q, by_d = (right.sum(axis=axis) / counts.sum(axis=axis) for axis in (1, 0))
        assert by_q[0] < by_q[-1], who
        assert by_d[0] > by_d[-1], who


def test_the_guide_to_ones_own_model_as_a_new_user_has_it(wheels: Wheels) -> None:
    with reading(wheels, "tutorial", "how-to/bring-your-model") as reader:
        reader.read("how-to/bring-your-model")


def test_the_guide_to_the_client_as_a_new_user_has_it(wheels: Wheels) -> None:
    """It goes on from the tutorial for the command line."""
    with reading(wheels, "tutorial-command-line", "how-to/client") as reader:
        reader.read("tutorial-command-line")
        with reader.running("serve --port 0", r"Listening on (\S+)") as said, reader.running("worker", "ready"):
            key = (reader.folder / "home" / "api-key").read_text().strip()
            reader.read("how-to/client", SERVICE_URL=said[1], SERVICE_KEY=key)


def test_it_comes_from_the_wheel(wheels: Wheels) -> None:
    where = "import venn_admit; print(venn_admit.__file__)"
    python = wheels.environment / "bin" / "python"
    done = subprocess.run([python, "-P", "-c", where], cwd="/", capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(wheels.environment)
