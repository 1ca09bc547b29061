"""The tables drawn on a figure, for the picture that sums up an evaluation set."""

from collections.abc import Sequence
from math import isnan

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.transforms import Bbox

from venn_admit.service.core.evaluation.points import PartitionCell
from venn_admit.service.core.evaluation.tallies import Tally, Verdict
from venn_admit.service.report.charts.drawing import FEW_COLOUR
from venn_admit.service.report.evaluation.dataset import DatasetReport
from venn_admit.service.report.evaluation.wording import (
    FEW_MARK,
    PREDICTED,
    SETS_NOTE,
    SIDE_BY_SIDE,
    SIZES_ON_ONE_LINE,
    TRUE,
    accuracy_cells,
    accuracy_note,
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

CELL_COLOURS = {Verdict.MET: "#d6eee4", Verdict.MISSED: "#fadccd", Verdict.CANNOT_TELL: FEW_COLOUR}
PLAIN_COLOUR = "#f5f6f7"
NAME_WIDTH, NARROW_NAME_WIDTH = 13, 8
WIDE_SHEET = 0.12
"""Part of a table that is as wide as the sheet, for the names of its rows."""


def draw_selective(figure: FigureBase, report: DatasetReport) -> None:
    """Share correct among singletons, cells coloured and marked by verdict."""
    shown = report.shown_classes()
    rows = [
        [*(kind_tallies(row.singletons, kind)[c] for kind in (TRUE, PREDICTED) for c in shown), row.singletons.overall]
        for row in report.methods
    ]
    axes = figure.add_subplot()
    _draw_table(
        axes,
        texts=[[_with_interval(judged_text(tally, report), tally) for tally in row] for row in rows],
        colours=_verdict_colours(rows, report),
        names=[method_label(row.name) for row in report.methods],
        heads=[*(f"{kind}\n{name}" for kind in (TRUE, PREDICTED) for name in _names(report, shown)), "all"],
        names_width=WIDE_SHEET,
    )
    _note(
        axes,
        f"Cells: share correct, (n/N), below {interval_note(report)}.  {legend(report)}.",
        parameters_text(report),
        hidden_classes(report, shown),
    )


def draw_covered(figure: FigureBase, report: DatasetReport) -> None:
    """Share of sets that hold the label, over all, per class and by size, and their mean size."""
    shown, strata = report.shown_classes(), size_strata(report)
    kinds = (TRUE, PREDICTED) if len(shown) <= SIDE_BY_SIDE else (TRUE,)
    by_class = [
        [row.coverage.overall, *(kind_tallies(row.coverage, kind)[c] for kind in kinds for c in shown)]
        for row in report.methods
    ]
    by_size = [[size_tally(row, stratum) for stratum in strata] for row in report.methods]
    separator = " " if len(strata) <= SIZES_ON_ONE_LINE else "\n"
    axes = figure.add_subplot()
    _draw_table(
        axes,
        texts=[
            [
                f"{row.mean_size:.2f}",
                *(_with_interval(judged_share(tally, report), tally) for tally in of_class),
                *(_with_interval(judged_text(tally, report, separator), tally) for tally in of_size),
            ]
            for row, of_class, of_size in zip(report.methods, by_class, by_size, strict=True)
        ],
        colours=[
            [PLAIN_COLOUR, *colours]
            for colours in _verdict_colours([a + b for a, b in zip(by_class, by_size, strict=True)], report)
        ],
        names=[method_label(row.name) for row in report.methods],
        heads=[
            "mean\nsize",
            "all",
            *(f"{kind}\n{name}" for kind in kinds for name in _names(report, shown)),
            *(size_name(stratum).replace(" ", "\n") for stratum in strata),
        ],
        names_width=WIDE_SHEET,
    )
    _note(
        axes,
        "Cells: share of sets that hold the label, by size also (n/N), below "
        f"{interval_note(report)}.  {legend(report, 'covered')}.",
        SETS_NOTE,
    )


def draw_partitions(figure: FigureBase, report: DatasetReport) -> None:
    """Threshold, accuracy and n/N of the KNN for every q by d partition."""
    shown = report.shown_classes()
    separator = " " if len(shown) <= SIDE_BY_SIDE else "\n"

    def text(cell: PartitionCell) -> str:
        if cell.tally.count == 0:
            return "-"
        mark = f"{FEW_MARK} " if cell.tally.is_few else ""
        return f"{mark}{share_text(cell.threshold)}{separator}{tally_text(cell.tally)}"

    rows = [[row.overall, *(row.per_class[c] for c in shown)] for row in report.partitions.rows]
    axes = figure.add_subplot()
    _draw_table(
        axes,
        texts=[[text(cell) for cell in row] for row in rows],
        colours=[[FEW_COLOUR if cell.tally.is_few else PLAIN_COLOUR for cell in row] for row in rows],
        names=[f"{row.matches}, {row.distances.replace('>=', '≥')}" for row in report.partitions.rows],
        heads=["all", *_names(report, shown)],
    )
    _note(
        axes,
        f"Cells: threshold ({float(report.alpha):g}-quantile of the KNN's probability of the true class), "
        f"accuracy, (n/N).  Median of d = {report.partitions.median:.4g}",
    )


def draw_accuracy(figure: FigureBase, report: DatasetReport) -> None:
    """Accuracy and F0.5 of the network, the KNN and the localizer."""
    shown = report.shown_classes()
    rows = [accuracy_cells(row.accuracy, shown) for row in report.accuracy]
    axes = figure.add_subplot()
    _draw_table(
        axes,
        texts=[[_plain_text(*cell) for cell in row] for row in rows],
        colours=[[FEW_COLOUR if few else PLAIN_COLOUR for _, _, few in row] for row in rows],
        names=[row.name for row in report.accuracy],
        heads=["accuracy", "F0.5\nmacro", *_names(report, shown, NARROW_NAME_WIDTH)],
    )
    _note(axes, f"Below each figure: {accuracy_note(report)}.")


def _with_interval(figures: str, tally: Tally) -> str:
    return f"{figures}\n{interval_text(tally.interval)}" if tally.count else figures


def _plain_text(share: float, interval: tuple[float, float], few: bool) -> str:
    mark = f"{FEW_MARK} " if few else ""
    return "-" if isnan(share) else f"{mark}{share_text(share)}\n{interval_text(interval)}"


def _verdict_colours(rows: Sequence[Sequence[Tally]], report: DatasetReport) -> list[list[str]]:
    return [[CELL_COLOURS[tally.verdict(report.alpha)] for tally in row] for row in rows]


def _names(report: DatasetReport, shown: Sequence[int], width: int = NAME_WIDTH) -> list[str]:
    return [shorten(report.class_names[c], width) for c in shown]


def _draw_table(
    axes: Axes,
    texts: list[list[str]],
    colours: list[list[str]],
    names: list[str],
    heads: list[str],
    names_width: float = 0.2,
) -> None:
    axes.set_axis_off()
    table = axes.table(
        texts,
        cellColours=colours,
        rowLabels=names,
        colLabels=heads,
        cellLoc="center",
        bbox=Bbox.from_bounds(names_width, 0, 1 - names_width, 1),
    )
    table.set_in_layout(False)  # it stays within the axes, and measuring its many cells takes seconds
    table.auto_set_font_size(False)
    for (line, _), cell in table.get_celld().items():
        cell.get_text().set(parse_math=False, fontsize=9 if len(heads) <= 5 else 8)
        cell.set_edgecolor("white" if line else "none")


def _note(axes: Axes, *sentences: str) -> None:
    words = "\n".join(sentence for sentence in sentences if sentence)
    axes.text(0, -0.02, words, fontsize=9, verticalalignment="top", parse_math=False)
