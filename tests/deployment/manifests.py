"""The files of the deployment, as the tests read them."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import yaml

from tests.cli.program import get_command
from venn_admit.cli.program import app
from venn_admit.runtime.settings import FIELDS, PREFIX, read_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
USER = 10001
SERVICE_ROLE = "venn_admit_worker"


def compose_file() -> dict[str, Any]:
    """Return docker-compose.yml, whose anchors are resolved."""
    content = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(content, dict)
    return content


def kubernetes_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects that the folder for Kubernetes holds, each with the name of its file."""
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml*")):
        for one in yaml.safe_load_all(file.read_text()):
            yield file.name, one


def check_command(command: list[str]) -> None:
    """See that the program takes a command line, which may be several for a shell."""
    if command[:2] == ["sh", "-ec"]:
        for line in command[2].split("&&"):
            check_command(shlex.split(line))
        return
    assert command[0] == "venn-admit"
    verb, arguments = get_command(app), command[1:]
    while isinstance(verb, typer.core.TyperGroup):
        assert arguments[0] in verb.commands, f"{' '.join(command)}: there is no verb {arguments[0]!r}"
        verb, arguments = verb.commands[arguments[0]], arguments[1:]
    verb.make_context(verb.name, arguments)  # which ends the program if it does not take them


def check_settings(variables: dict[str, Any]) -> None:
    """See that every variable of the program is one that it reads, and that it accepts their values."""
    names = [name for name in variables if name.startswith(PREFIX)]
    assert names
    fields = {name.removeprefix(PREFIX).lower(): variables[name] for name in names}
    assert fields.keys() <= FIELDS.keys()
    given = {name: value for name, value in fields.items() if not str(value).startswith("${")}
    read_settings(**given)
