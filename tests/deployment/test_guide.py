"""The guide to Docker and Kubernetes: its commands name verbs, services and files that exist."""

import re
import shlex

import pytest

from tests.deployment.manifests import ROOT, check_command, compose_file, kubernetes_objects
from tests.docs.pages import FENCE, blocks

PAGE = ROOT / "docs/how-to/docker.md"
TEXT = PAGE.read_text()
COMMANDS = [
    line.removeprefix("$ ")
    for block in blocks(PAGE)
    if block.language == "console"
    for line in block.content.replace("\\\n", " ").splitlines()
]
COMPOSE = compose_file()


def after(words: str) -> list[list[str]]:
    """What follows these words in a command, up to a pipe, be it in a block or in a sentence."""
    inline = re.findall(r"`([^`]+)`", FENCE.sub("", TEXT).replace("\n", " "))
    found = [re.search(rf"{words} ([^|>]+)", command) for command in (*COMMANDS, *inline)]
    return [shlex.split(one[1]) for one in found if one]


def test_its_commands_of_the_program_exist() -> None:
    commands = after(r"(?:worker|--) venn-admit")
    assert ["key", "create", "operator", "--scope", "admin"] in commands
    for command in commands:
        check_command(["venn-admit", *command])


def test_its_services_exist() -> None:
    ours = {"worker", "beat", "migrate", "api"}
    assert ours <= {word for command in after("docker compose") for word in command}
    assert ours <= COMPOSE["services"].keys()
    scaled = {word.partition("=")[0] for word in re.findall(r"--scale (\w+)=", TEXT)}
    assert scaled == {"api", "worker"}
    assert scaled <= COMPOSE["services"].keys()


def test_its_variables_are_those_of_the_compose_file() -> None:
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", TEXT, re.MULTILINE))
    assert told == set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))


def test_it_makes_every_secret() -> None:
    (names,) = re.findall(r"for name in ([\w ]+); do .* > secrets/\$\{name\}_password", TEXT)
    made = {f"{name}_password" for name in names.split()} | set(re.findall(r"> secrets/(\w+)$", TEXT, re.MULTILINE))
    assert made == COMPOSE["secrets"].keys()


@pytest.mark.parametrize("path", re.findall(r"--filename (\S+)", TEXT))
def test_its_manifests_exist(path: str) -> None:
    assert (ROOT / path).exists()


def test_it_waits_for_the_job_that_it_makes() -> None:
    (job,) = [one["metadata"]["name"] for _, one in kubernetes_objects() if one["kind"] == "Job"]
    assert re.findall(r"job/(\S+)", TEXT) == [job]
