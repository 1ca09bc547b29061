"""What the tutorials and the guides tell readers to type does what they say; `pages` says which blocks are run."""

import logging
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import venn_admit
from docs.generate.readme_picture import METHODS as DRAWN
from docs.generate.readme_picture import picture
from tests.cli.databases import on_database
from tests.cli.program import Program
from tests.docs.pages import blocks, run_page

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIALS = ("tutorial", "tutorial-command-line", "tutorial-texts")
# In this order, behind a tutorial.
GUIDES = (
    "how-to/what-if",
    "how-to/bring-your-model",
    "how-to/rare-class",
    "how-to/labels",
    "how-to/review",
    "how-to/keep-current",
    "how-to/backup-and-upgrade",
    "how-to/certify",
    "how-to/standing",
    "reference/python",
    "how-to/change-the-extractor",
)

# Which tests/docs/test_client.py runs; the tutorials are run by tests/docs/test_from_wheel.py.
WITH_A_SERVICE = ("how-to/client",)

# As the README's table calls them, and as `evaluate` does.
METHODS = {
    "softmax >= 1 - alpha, one temperature": "softmax >= 1 - alpha",
    "act on everything (KNN)": "KNN",
    "split conformal, singletons": "Conf_BASE",
    "APS, singletons": "APS",
    "SGR": "SGR",
    "Venn-ADMIT, the paper's": "Venn-ADMIT weighted",
    "Venn-Abers, pointwise": "Venn-Abers network",
    "Venn-Abers, on average": "on average",
    "**Venn-Abers, strongest**": "certified",
}


def page(name: str) -> Path:
    return DOCS / f"{name}.md"


def check_table(readme: str, *evaluations: venn_admit.Evaluation) -> None:
    """See that the README's table is what `evaluate` finds, except for what depends on the processor."""
    for shown, method in METHODS.items():
        (row,) = [line for line in readme.splitlines() if line.startswith(f"| {shown} |")]
        expected = [float(number) for number in re.findall(r"\d*\.\d+", row.split("|", 3)[-1])]
        tallies = [
            tally
            for evaluation in evaluations
            for tally in evaluation.to_dict()["methods"][method]["per_predicted_class"].values()
        ]
        found = [number for tally in tallies for number in (tally["share_correct"], tally["n"] / tally["N"])]
        assert expected == pytest.approx(found, abs=0.01), shown


@pytest.fixture
def reader(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program of somebody who reads the pages, with a database that is still empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("venn_admit"), "level", logging.NOTSET)  # to be as it was in the end
    program = on_database(database, tmp_path)
    for name, value in program.environment.items():
        monkeypatch.setenv(name, value)  # for the Python blocks
    return program


def read(reader: Program, *pages: str) -> dict[str, Any]:
    def run_commands(content: str, where: str) -> str:
        return "".join(run_command(reader, line, where) for line in content.splitlines())

    names: dict[str, Any] = {}
    for name in pages:
        run_page(page(name), run_commands, names)
    return names


def run_command(program: Program, line: str, where: str) -> str:
    name, *arguments = shlex.split(line)
    if name == "python":
        return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout
    assert name == "venn-admit", f"{where}: only our own commands are run, got {line!r}; show others as `console`"
    outcome = program(*arguments)
    assert outcome.code == 0, f"{where}: {line}\n{outcome.stderr}"
    return outcome.stdout


def test_the_tutorial_and_the_guides(reader: Program) -> None:
    names = read(reader, "tutorial", *GUIDES)
    check_table((ROOT / "README.md").read_text("utf-8"), names["evaluation"], names["shifted"])
    drawn = picture({"test": names["evaluation"].to_dict(), "ood": names["shifted"].to_dict()})
    admitted = [[text.get_text() for text in axes.texts] for axes in drawn.axes]
    assert [[len(words), words[0]] for words in admitted] == [[len(DRAWN), "admits 100%"]] * 2


def test_no_page_with_commands_is_left_out() -> None:
    with_commands = {
        str(path.relative_to(DOCS).with_suffix(""))
        for path in DOCS.rglob("*.md")
        if any(block.language in ("sh", "python") for block in blocks(path))
    }
    assert with_commands == {*TUTORIALS, *GUIDES, *WITH_A_SERVICE}
