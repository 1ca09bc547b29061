"""The three tables drawn on a figure, for the picture that sums up an evaluation set."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.transforms import Bbox

from service.core.evaluation import PartitionCell
from service.core.tallies import FEW, Verdict
from service.report.dataset import DatasetReport
from service.report.wording import (
    MARKS,
    ONE_LINE,
    PREDICTED,
    SIDE_BY_SIDE,
    TRUE,
    hidden_classes,
    judged_text,
    kind_tallies,
    legend,
    method_label,
    share_text,
    shorten,
    tally_text,
)

CELL_COLOURS = {Verdict.WELL: "#d6eee4", Verdict.UNDER: "#fadccd", Verdict.FEW: "#e9e9e9"}
PLAIN_COLOUR = "#f5f6f7"
NAME_WIDTH, NARROW_NAME_WIDTH = 13, 8


def draw_selective(figure: FigureBase, report: DatasetReport) -> None:
    """Share correct among admitted points, cells coloured and marked by verdict."""
    shown = report.shown_classes()
    tables = [(TRUE, PREDICTED)] if len(shown) <= SIDE_BY_SIDE else [(TRUE,), (PREDICTED,)]
    separator = " " if len(shown) <= ONE_LINE else "\n"
    for place, kinds in enumerate(tables, start=1):
        axes = figure.add_subplot(len(tables), 1, place)
        rows = [
            [*(kind_tallies(row.selective, kind)[c] for kind in kinds for c in shown), row.selective.overall]
            for row in report.methods
        ]
        _draw_table(
            axes,
            texts=[[judged_text(tally, report, separator) for tally in row] for row in rows],
            colours=[[CELL_COLOURS[tally.verdict(report.alpha)] for tally in row] for row in rows],
            names=[method_label(row.name) for row in report.methods],
            heads=[
                *(f"{kind}\n{name}" for kind in kinds for name in _names(report, shown)),
                "all",
            ],
        )
    _note(axes, f"Cells: share correct, (n/N).  {legend(report)}\n{hidden_classes(report, shown)}")


def draw_partitions(figure: FigureBase, report: DatasetReport) -> None:
    """Threshold, accuracy and n/N of the KNN for every q by d partition."""
    shown = report.shown_classes()
    separator = " " if len(shown) <= SIDE_BY_SIDE else "\n"

    def text(cell: PartitionCell) -> str:
        if cell.tally.count == 0:
            return "-"
        mark = f"{MARKS[Verdict.FEW]} " if cell.tally.count < FEW else ""
        return f"{mark}{share_text(cell.threshold)}{separator}{tally_text(cell.tally)}"

    rows = [[row.overall, *(row.per_class[c] for c in shown)] for row in report.partitions.rows]
    axes = figure.add_subplot()
    _draw_table(
        axes,
        texts=[[text(cell) for cell in row] for row in rows],
        colours=[
            [CELL_COLOURS[Verdict.FEW] if cell.tally.count < FEW else PLAIN_COLOUR for cell in row] for row in rows
        ],
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
    rows = [
        [
            row.accuracy.tallies.overall.share,
            row.accuracy.f_half_macro,
            *(row.accuracy.tallies.per_true_class[c].share for c in shown),
        ]
        for row in report.accuracy
    ]
    _draw_table(
        figure.add_subplot(),
        texts=[[share_text(share) for share in row] for row in rows],
        colours=[[PLAIN_COLOUR] * len(row) for row in rows],
        names=[row.name for row in report.accuracy],
        heads=["accuracy", "F0.5\nmacro", *_names(report, shown, NARROW_NAME_WIDTH)],
        height=0.5,
    )


def _names(report: DatasetReport, shown: Sequence[int], width: int = NAME_WIDTH) -> list[str]:
    return [shorten(report.class_names[c], width) for c in shown]


def _draw_table(
    axes: Axes,
    texts: list[list[str]],
    colours: list[list[str]],
    names: list[str],
    heads: list[str],
    height: float = 0.95,
) -> None:
    axes.set_axis_off()
    table = axes.table(
        texts,
        cellColours=colours,
        rowLabels=names,
        colLabels=heads,
        cellLoc="center",
        bbox=Bbox.from_bounds(0.2, 1 - height, 0.8, height),
    )
    table.auto_set_font_size(False)
    for (line, _), cell in table.get_celld().items():
        cell.get_text().set(parse_math=False, fontsize=9 if len(heads) <= 5 else 8)
        cell.set_edgecolor("white" if line else "none")


def _note(axes: Axes, words: str) -> None:
    axes.text(0, -0.02, words, fontsize=9, verticalalignment="top")
