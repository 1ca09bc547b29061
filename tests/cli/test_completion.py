"""Shell completion: what the shell asks, and the script that makes it ask."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.program import Program, get_command


def completions(*words: str) -> list[str]:
    """What is offered for the last of the words."""
    asked = {
        "_VENN_ADMIT_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("venn-admit", *words)),
        "COMP_CWORD": str(len(words)),
    }
    outcome = Program(asked)()
    assert (outcome.code, outcome.stderr) == (0, "")
    return outcome.stdout.split()


def test_verbs_and_options_complete_without_a_database() -> None:
    assert set(completions("re")) == {"recalibrate", "rename", "replay", "report", "retire", "review"}
    assert completions("jobs", "re") == ["resume"]
    assert completions("calibrate", "colours", "--ka") == ["--kappa"]


@pytest.fixture
def built_alone() -> Iterator[None]:
    """The verbs are built for this test alone: Typer looks at the environment when it builds them."""
    get_command.cache_clear()
    yield
    get_command.cache_clear()


@pytest.mark.usefixtures("built_alone")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str) -> None:
    """Named here, though the program finds the shell out for itself: a test runs under any."""
    program = Program({"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    outcome = program("--show-completion", shell)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert f"complete_{shell}" in outcome.stdout
    assert "venn-admit" in outcome.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=outcome.stdout, text=True, check=True)
