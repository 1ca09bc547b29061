"""Tables for a terminal of 100 columns or more: accuracy, partitions, share correct among admitted."""

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.core.evaluation import PartitionCell
from service.core.tallies import FEW, Tally, Verdict
from service.report.dataset import DatasetReport
from service.report.wording import (
    MARKS,
    ONE_LINE,
    PREDICTED,
    SIDE_BY_SIDE,
    TRUE,
    class_gap,
    headline,
    hidden_classes,
    judged_text,
    kind_tallies,
    legend,
    method_label,
    share_text,
    shorten,
    tally_text,
)

STYLES = {Verdict.WELL: "green", Verdict.UNDER: "bold red", Verdict.FEW: "dim"}

WIDE, NARROW = 13, 9
"""Characters of a class name over cells of one line, and over stacked cells."""


def report_tables(report: DatasetReport) -> RenderableType:
    """All tables of one evaluation set under its name, with the sentences that go with them."""
    parts: list[RenderableType] = [
        Text(f"{report.name}: {report.point_count:,} labelled points", style="bold"),
        accuracy_table(report),
        partition_view(report),
        *selective_tables(report),
        Text(headline(report)),
    ]
    if gap := class_gap(report):
        parts.append(Text(gap, style="yellow"))
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
        tallies = row.accuracy.tallies
        table.add_row(
            row.name,
            share_text(tallies.overall.share),
            share_text(row.accuracy.f_half_macro),
            *(share_text(tallies.per_true_class[c].share) for c in shown),
        )
    title = "Accuracy of every prediction, over all and per true class"
    return _titled(title, table, hidden_classes(report, shown))


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
        f"{MARKS[Verdict.FEW]} under {FEW} points,  - none.",
        hidden_classes(report, shown),
    )


def selective_tables(report: DatasetReport) -> list[RenderableType]:
    """Share correct among admitted points, methods as rows; one table, or one a kind of class where C > 2."""
    shown = report.shown_classes()
    title = "Share correct among admitted points"
    captions = (f"Cells: share correct, (n/N).  {legend(report)}.", hidden_classes(report, shown))
    if len(shown) <= SIDE_BY_SIDE:
        return [_titled(title, _selective_table(report, (TRUE, PREDICTED)), *captions)]
    return [
        _titled(f"{title}, per true class", _selective_table(report, (TRUE,))),
        _titled(f"{title}, per predicted class", _selective_table(report, (PREDICTED,)), *captions),
    ]


def _selective_table(report: DatasetReport, kinds: tuple[str, ...]) -> Table:
    shown = report.shown_classes()
    one_line = len(shown) <= ONE_LINE
    table = _table()
    table.add_column("method", no_wrap=True)
    for kind in kinds:
        _class_columns(table, report, shown, WIDE if one_line else NARROW, kind if len(kinds) > 1 else "")
    table.add_column("all", justify="right", no_wrap=True)
    for row in report.methods:
        tallies = [kind_tallies(row.selective, kind)[c] for kind in kinds for c in shown]
        table.add_row(
            Text(method_label(row.name)),
            *(_judged_cell(tally, report, one_line) for tally in (*tallies, row.selective.overall)),
        )
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)


def _titled(title: str, table: Table, *captions: str) -> RenderableType:
    # Outside the table, so that the words wrap at the terminal and not at a narrow table.
    return Group(Text(title, style="bold"), table, *(Text(words, style="dim") for words in captions if words))


def _class_columns(table: Table, report: DatasetReport, shown: tuple[int, ...], width: int, kind: str = "") -> None:
    for c in shown:
        name = shorten(report.class_names[c], width)
        table.add_column(Text(f"{kind}\n{name}" if kind else name), justify="right", no_wrap=True)


def _judged_cell(tally: Tally, report: DatasetReport, one_line: bool) -> Text:
    text = judged_text(tally, report, " " if one_line else "\n")
    return Text(text, style=STYLES[tally.verdict(report.alpha)])


def _partition_cell(cell: PartitionCell, separator: str) -> Text:
    if cell.tally.count == 0:
        return Text("-", style="dim")
    figures = f"{share_text(cell.threshold)} {tally_text(cell.tally)}".replace(" ", separator)
    few = cell.tally.count < FEW
    return Text(f"{MARKS[Verdict.FEW]} {figures}" if few else figures, style="dim" if few else "")
