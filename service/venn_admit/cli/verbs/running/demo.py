"""The verb `demo`."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo-report"),
) -> None:
    """Ingest, fit, calibrate, score and compare, on bundled real data."""
    from venn_admit.cli.verbs.running.demo_steps import run

    run(out)
