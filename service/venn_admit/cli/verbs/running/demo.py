"""The verb `demo`."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli import panels


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.RUNNING)(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo-report"),
) -> None:
    """Ingest, fit, calibrate, score and compare, on bundled real data."""
    from venn_admit.cli.verbs.running.demo_steps import run

    run(out)
