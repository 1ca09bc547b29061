"""Cascades on a terminal: their stages and what they serve."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from rich.console import RenderableType

from venn_admit.cli.output import shown
from venn_admit.cli.tables.rows import table
from venn_admit.report.cascade import (
    CASCADE_COLUMNS,
    STAGE_COLUMNS,
    cascade_rows,
    promise_sentence,
    stage_rows,
)
from venn_admit_client.records.cascades import CascadeReport, Served, cost_text


def cascade_lines(found: CascadeReport) -> list[RenderableType]:
    """Return how a cascade stands."""
    stages = table(STAGE_COLUMNS, stage_rows(found), title=found.cascade, right=STAGE_COLUMNS[3:])
    return [stages, *promise_sentence(found)]


def cascades_table(found: Sequence[CascadeReport]) -> RenderableType:
    """Return a table of cascades."""
    return table(CASCADE_COLUMNS, cascade_rows(found), right=CASCADE_COLUMNS[3:])


def served_lines(name: str, found: Served, jobs: Sequence[int], out: Path) -> list[RenderableType]:
    """Return what a cascade serves of points."""
    columns = ("stage", "classifier", "reached", "served", "waiting", "not needed", "cost")
    rows = [
        (
            str(one.place),
            one.classifier or "person",
            one.reached,
            one.served,
            one.waiting,
            one.unneeded,
            cost_text(one.cost),
        )
        for one in found.stages
    ]
    total = len(found.ids)
    by_models = sum(one.served for one in found.stages if one.classifier is not None)
    lines: list[RenderableType] = [
        table(columns, rows, title=name, right=columns[-1:]),
        f"{total:,} points: {by_models:,} served by classifiers ({by_models / total:.1%}), by certificate "
        f"{found.certificate}; cost {cost_text(found.cost)}, by the last stage alone {cost_text(found.cost_of_last)}. "
        f"The answers are in {shown(str(out))}.",
    ]
    following = next((one for one in found.stages if one.waiting and one.place == len(jobs) + 1), None)
    if following is not None:
        given = " ".join(f"--job {job}" for job in jobs)
        command = f"venn-admit cascade score {quote(shown(name))} FILE {given} --out OUT"
        lines.append(f"{following.waiting:,} need {following.classifier}: run `{command}` with them.")
    return lines
