"""What a terminal shows first: the verdict on an evaluation, in a few lines."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.evaluated import calibration_text
from venn_admit.report.evaluation.verdicts import (
    CANNOT_TELL_NOTE,
    NONE_ADMITTED,
    answer,
    class_gap,
    class_verdicts,
    headline,
    overall_verdict,
    settling,
)
from venn_admit.report.evaluation.wording import (
    MARKS,
    PREDICTED,
    extent,
    hidden_classes,
    interval_text,
    left_out,
    share_text,
    shorten,
    without_vectors,
)

STYLES = {Verdict.MET: "green", Verdict.MISSED: "bold red", Verdict.CANNOT_TELL: ""}

NAME_WIDTH = 13
"""Columns of a class name."""


def verdict_view(report: DatasetReport) -> RenderableType:
    """Return the verdict on every predicted class, how much is admitted, and what cannot be told yet."""
    lines = [Text(f"{report.name}: {extent(report)}", style="bold")]
    if report.calibration is not None:
        lines.append(Text(calibration_text(report.calibration), style="dim"))
    lines += [Text(missing) for missing in (left_out(report), without_vectors(report)) if missing]
    lines.append(Text(answer(report), style=STYLES[overall_verdict(report)]))
    after = [Text(headline(report))]
    if gap := class_gap(report):
        after.append(Text(gap, style="yellow"))
    if Verdict.CANNOT_TELL in {one.verdict for one in class_verdicts(report)}:
        after.append(Text(CANNOT_TELL_NOTE, style="dim"))
    if hidden := hidden_classes(report, report.shown_classes()):
        after.append(Text(hidden, style="dim"))
    return Group(*lines, _class_verdicts(report), *after)


def _class_verdicts(report: DatasetReport) -> Table:
    """Return a table with a line per predicted class; of many classes, those that have a column in the tables."""
    every = class_verdicts(report)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  verdict", no_wrap=True)
    table.add_column(PREDICTED, no_wrap=True)
    table.add_column("share right", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("")
    for c in report.shown_classes():
        one = every[c]
        name = Text(shorten(one.name, NAME_WIDTH))
        if one.tally.count == 0:
            table.add_row("", name, "-", "-", NONE_ADMITTED)
            continue
        table.add_row(
            Text(f"  {MARKS[one.verdict]} {one.verdict.words}", style=STYLES[one.verdict]),
            name,
            f"{share_text(one.tally.share)} of {one.tally.count:,}",
            Text(interval_text(one.tally.interval), style="dim"),
            settling(one, report),
        )
    return table
