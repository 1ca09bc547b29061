"""Tables for a terminal of 100 columns or more: accuracy, partitions, what is admitted, what the sets cover."""

from collections.abc import Sequence
from math import isnan

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from venn_admit.service.core.evaluation.points import PartitionCell
from venn_admit.service.core.evaluation.tallies import Tally
from venn_admit.service.report.evaluation.dataset import DatasetReport
from venn_admit.service.report.evaluation.verdict_view import STYLES, verdict_view
from venn_admit.service.report.evaluation.wording import (
    FEW_MARK,
    ONE_LINE,
    PREDICTED,
    SETS_NOTE,
    SIDE_BY_SIDE,
    SIZES_ACROSS,
    SIZES_ON_ONE_LINE,
    TRUE,
    accuracy_cells,
    accuracy_note,
    few_text,
    hidden_classes,
    interval_note,
    interval_text,
    judged_share,
    judged_text,
    kind_tallies,
    legend,
    method_label,
    parameters_text,
    share_text,
    shorten,
    size_name,
    size_strata,
    size_tally,
    tally_text,
)

WIDE, NARROW = 13, 9
"""Characters of a class name over cells of one line, and over stacked cells."""


def report_tables(report: DatasetReport, *, details: bool = False) -> RenderableType:
    """Return the verdict on one evaluation set under its name and the share correct among what each method admits.

    Args:
        report: What was measured.
        details: Whether tables of coverage, accuracy and partitions follow.
    """
    parts: list[RenderableType] = [verdict_view(report), *selective_tables(report)]
    if details:
        parts += [coverage_table(report), *size_tables(report), accuracy_table(report), partition_view(report)]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def accuracy_table(report: DatasetReport) -> RenderableType:
    """Accuracy and F0.5 of the network, the KNN and the localizer, over all and per true class."""
    shown = report.shown_classes()
    table = _table()
    table.add_column("prediction", no_wrap=True)
    table.add_column("accuracy", justify="right")
    table.add_column("F0.5 macro", justify="right")
    _class_columns(table, report, shown, NARROW)
    for row in report.accuracy:
        table.add_row(row.name, *(_plain_cell(*cell) for cell in accuracy_cells(row.accuracy, shown)))
    return _titled(
        "Accuracy of every prediction, over all and per true class",
        table,
        f"Below each figure: {accuracy_note(report)}.  {FEW_MARK} {few_text(report)}.",
        hidden_classes(report, shown),
    )


def partition_view(report: DatasetReport) -> RenderableType:
    """Threshold, accuracy and n/N of the KNN for every q by d partition, over all and per true class."""
    shown = report.shown_classes()
    one_line = len(shown) <= SIDE_BY_SIDE
    table = _table()
    table.add_column("q", no_wrap=True)
    table.add_column("d", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    _class_columns(table, report, shown, WIDE if one_line else NARROW)
    previous = ""
    for row in report.partitions.rows:
        if previous not in ("", row.matches):
            table.add_section()
        cells = (row.overall, *(row.per_class[c] for c in shown))
        table.add_row(
            "" if row.matches == previous else row.matches,
            row.distances.replace(">=", "≥"),
            *(_partition_cell(cell, " " if one_line else "\n") for cell in cells),
        )
        previous = row.matches
    return _titled(
        "Partitions by q (matching neighbours) and d (distance to training), over all and per true class",
        table,
        f"Cells: threshold ({float(report.alpha):g}-quantile of the KNN's probability of the true class), "
        "accuracy, (n/N).\n"
        f"K = {report.neighbour_count}, median of d = {report.partitions.median:.4g};  "
        f"{FEW_MARK} {few_text(report)},  - none.",
        hidden_classes(report, shown),
    )


def selective_tables(report: DatasetReport) -> list[RenderableType]:
    """Share correct among singletons, methods as rows; one table, or one a kind of class where C > 2."""
    shown = report.shown_classes()
    title = "Share correct among singletons (admitted points)"
    captions = (
        f"Cells: share correct, (n/N), below {interval_note(report)}.\n{legend(report)}.",
        parameters_text(report),
        hidden_classes(report, shown),
    )
    if len(shown) <= SIDE_BY_SIDE:
        return [_titled(title, _selective_table(report, (TRUE, PREDICTED)), *captions)]
    return [
        _titled(f"{title}, per true class", _selective_table(report, (TRUE,))),
        _titled(f"{title}, per predicted class", _selective_table(report, (PREDICTED,)), *captions),
    ]


def coverage_table(report: DatasetReport) -> RenderableType:
    """Share of sets that hold the label and their mean size, over all and per class, methods as rows."""
    shown = report.shown_classes()
    kinds = (TRUE, PREDICTED) if len(shown) <= SIDE_BY_SIDE else (TRUE,)
    table = _table()
    table.add_column("method", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    for kind in kinds:
        _class_columns(table, report, shown, NARROW, kind if len(kinds) > 1 else "")
    for row in report.methods:
        tallies = [row.coverage.overall, *(kind_tallies(row.coverage, kind)[c] for kind in kinds for c in shown)]
        table.add_row(
            Text.assemble(method_label(row.name), (f"\n  mean size {row.mean_size:.2f}", "dim")),
            *(_judged_cell(judged_share(tally, report), tally, report, "\n") for tally in tallies),
        )
    return _titled(
        "What the sets cover" if len(kinds) > 1 else "What the sets cover, over all and per true class",
        table,
        f"Cells: share of sets that hold the label, below {interval_note(report)}.\n{legend(report, 'covered')}.",
        SETS_NOTE,
        hidden_classes(report, shown),
    )


def size_tables(report: DatasetReport) -> list[RenderableType]:
    """Coverage by set size, methods as rows; many sizes go on in further tables."""
    strata = size_strata(report)
    separator = " " if len(strata) <= SIZES_ON_ONE_LINE else "\n"
    tables: list[RenderableType] = []
    for start in range(0, len(strata), SIZES_ACROSS):
        across = strata[start : start + SIZES_ACROSS]
        table = _table()
        table.add_column("method", no_wrap=True)
        for stratum in across:
            table.add_column(size_name(stratum), justify="right", no_wrap=True)
        for row in report.methods:
            tallies = [size_tally(row, stratum) for stratum in across]
            table.add_row(
                Text(method_label(row.name)),
                *(_judged_cell(judged_text(tally, report), tally, report, separator) for tally in tallies),
            )
        title = "What the sets of each size cover" + (", continued" if start else "")
        tables.append(
            _titled(title, table, f"Cells: share of sets that hold the label, (n/N), {interval_note(report)}.")
        )
    return tables


def _selective_table(report: DatasetReport, kinds: tuple[str, ...]) -> Table:
    shown = report.shown_classes()
    one_line = len(shown) <= ONE_LINE
    table = _table()
    table.add_column("method", no_wrap=True)
    for kind in kinds:
        _class_columns(table, report, shown, WIDE if one_line else NARROW, kind if len(kinds) > 1 else "")
    table.add_column("all", justify="right", no_wrap=True)
    separator = " " if one_line else "\n"
    for row in report.methods:
        tallies = [*(kind_tallies(row.singletons, kind)[c] for kind in kinds for c in shown), row.singletons.overall]
        table.add_row(
            Text(method_label(row.name)),
            *(_judged_cell(judged_text(tally, report, separator), tally, report, "\n") for tally in tallies),
        )
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)


def _titled(title: str, table: Table, *captions: str) -> RenderableType:
    # Outside the table, so that the words wrap at the terminal and not at a narrow table.
    return Group(Text(title, style="bold"), table, *(Text(words, style="dim") for words in captions if words))


def _class_columns(table: Table, report: DatasetReport, shown: Sequence[int], width: int, kind: str = "") -> None:
    for c in shown:
        name = shorten(report.class_names[c], width)
        table.add_column(Text(f"{kind}\n{name}" if kind else name), justify="right", no_wrap=True)


def _judged_cell(figures: str, tally: Tally, report: DatasetReport, separator: str) -> Text:
    """Figures in the colour of the verdict and, after `separator`, the interval."""
    text = Text(figures, style="dim" if tally.is_few else STYLES[tally.verdict(report.alpha)])
    return Text.assemble(text, (f"{separator}{interval_text(tally.interval)}", "dim")) if tally.count else text


def _plain_cell(share: float, interval: tuple[float, float], few: bool) -> Text:
    if isnan(share):
        return Text("-", style="dim")
    figure = f"{FEW_MARK} {share_text(share)}" if few else share_text(share)
    return Text.assemble((figure, "dim" if few else ""), (f"\n{interval_text(interval)}", "dim"))


def _partition_cell(cell: PartitionCell, separator: str) -> Text:
    if cell.tally.count == 0:
        return Text("-", style="dim")
    figures = f"{share_text(cell.threshold)} {tally_text(cell.tally)}".replace(" ", separator)
    few = cell.tally.is_few
    return Text(f"{FEW_MARK} {figures}" if few else figures, style="dim" if few else "")
