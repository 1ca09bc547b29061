"""`python -m benchmarks [SUBJECT ...] [--large]`: one table; see README.md."""

import os
import platform
from enum import StrEnum
from importlib import import_module
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measurement


class Subject(StrEnum):
    """A module of this package with a function `measure`."""

    NEIGHBOURS = "neighbours"
    BANDS = "bands"
    VENN_ABERS = "venn_abers"
    LOCALIZER = "localizer"
    MEMORY_LAYER = "memory_layer"
    GROWTH = "growth"
    BASELINES = "baselines"
    INGESTION = "ingestion"
    STORAGE = "storage"
    ONE_QUERY = "one_query"
    ONE_POINT = "one_point"
    SCORING = "scoring"
    LOGITS_ONLY = "logits_only"
    RECALIBRATION = "recalibration"
    STANDING = "standing"
    REPORTING = "reporting"
    KEEPING = "keeping"
    SERVING = "serving"
    PAGES = "pages"
    STARTUP = "startup"


def main(
    subjects: Annotated[list[Subject] | None, typer.Argument(help="What to measure; all by default.")] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Full sizes: minutes, and gigabytes of memory and disk.")
    ] = False,
) -> None:
    """Time the expensive steps beside the barest thing that does the same work."""
    progress = Console(stderr=True)
    measurements: list[Measurement] = []
    for subject in subjects or Subject:
        with progress.status(f"measuring {subject}"):
            measurements += import_module(f"benchmarks.{subject}").measure(large)
    output = Console()
    output.width = max(output.width, 140)  # where there is no terminal, or a narrow one
    output.print(_table(measurements))


def _table(measurements: list[Measurement]) -> Table:
    table = Table(
        caption=f"Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads on {os.cpu_count()} CPUs; ratio: peer's time / ours"
    )
    for heading in ("what", "size", "peer"):
        table.add_column(heading)
    for heading in ("ours", "peer", "ratio", "peak ours", "peak peer"):
        table.add_column(heading, justify="right")
    if any(found.note for found in measurements):
        table.add_column("note")
    for found in measurements:
        table.add_row(
            found.what,
            found.size,
            found.against,
            _time(found.ours),
            _time(found.peer),
            f"{found.ratio:.2f}" if found.ratio < 10 else f"{found.ratio:,.0f}",
            _memory(found.ours_peak),
            _memory(found.peer_peak),
            *([found.note] if len(table.columns) > 8 else []),
        )
    return table


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def _memory(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:,.0f} MiB"


if __name__ == "__main__":
    typer.run(main)
