"""Marks that the charts share: how a verdict looks, and how marks that would overlap are set apart."""

from collections.abc import Sequence
from math import isnan

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from venn_admit.core.evaluation.tallies import Verdict

FEW_MARK_COLOUR = "#8a8a8a"
FEW_MARK_SIZE, FEW_ALPHA = 4, 0.55
"""Marks of too few points are small and faint, so that they do not draw the eye."""

VERDICT_COLOURS = {Verdict.MET: "#00694d", Verdict.MISSED: "#b34700", Verdict.CANNOT_TELL: "#555555"}
"""The colours of words and signs; darker than the hues of Okabe & Ito that they follow, to be read on white."""

VERDICT_MARKERS = {Verdict.MET: "o", Verdict.MISSED: "X", Verdict.CANNOT_TELL: "o"}


def verdict_mark(
    axes: Axes,
    place: tuple[float, float],
    interval: tuple[float, float],
    verdict: Verdict,
    colour: str,
    *,
    across: bool = False,
) -> None:
    """A mark by its verdict, with its interval: a full disc if met, a cross if missed, a ring if it cannot be told.

    across: whether the share, and so the interval, lies along the axis of x.
    """
    if across:
        axes.hlines(place[1], *interval, color=colour, linewidth=1.2, zorder=2.5)
    else:
        axes.vlines(place[0], *interval, color=colour, linewidth=1.2, zorder=2.5)
    axes.plot(
        *([coordinate] for coordinate in place),
        VERDICT_MARKERS[verdict],
        color=colour,
        markerfacecolor="white" if verdict is Verdict.CANNOT_TELL else colour,
        markeredgecolor="white" if verdict is Verdict.MET else colour,
        markeredgewidth=1.6 if verdict is Verdict.CANNOT_TELL else 0.8,
        markersize=10 if verdict is Verdict.MISSED else 8,
        zorder=3,
    )


def verdict_marks() -> list[Line2D]:
    """Return the entries of a legend for `verdict_mark`, one mark per verdict."""
    return [
        Line2D(
            [],
            [],
            color="black",
            marker=VERDICT_MARKERS[verdict],
            markerfacecolor="white" if verdict is Verdict.CANNOT_TELL else "black",
            linestyle="none",
            markersize=7,
        )
        for verdict in Verdict
    ]


def few_mark() -> Line2D:
    """Return the entry of a legend for marks of too few points."""
    return Line2D(
        [],
        [],
        color=FEW_MARK_COLOUR,
        marker="o",
        markerfacecolor="white",
        markersize=FEW_MARK_SIZE,
        alpha=FEW_ALPHA,
        linestyle="none",
    )


def apart(places: Sequence[tuple[float, float]], near: tuple[float, float], step: float) -> list[float]:
    """Return where across each mark is drawn: those that would overlap stand side by side, a step apart.

    places: across and up of each mark, NaN for one that is not drawn. near: two marks no further apart than this,
    across and up, would touch. A group keeps its middle, and the order of its marks.

    >>> apart([(0.5, 0.9), (0.8, 0.9), (0.5, 0.9)], near=(0.02, 0.02), step=0.1)
    [0.45, 0.8, 0.55]
    """
    groups: list[list[int]] = []
    for number, (x, y) in enumerate(places):
        if isnan(x) or isnan(y):
            continue
        touching = (
            group
            for group in groups
            if any(abs(places[i][0] - x) <= near[0] and abs(places[i][1] - y) <= near[1] for i in group)
        )
        group = next(touching, None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    across = [x for x, _ in places]
    for group in groups:
        group.sort(key=lambda i: (places[i][0], i))
        middle = sum(places[i][0] for i in group) / len(group)
        for position, i in enumerate(group):
            across[i] = middle + (position - (len(group) - 1) / 2) * step if len(group) > 1 else places[i][0]
    return across


def name_series(figure: FigureBase, lines: Sequence[Line2D], names: Sequence[str], columns: int) -> None:
    """Draw a legend below the panels, where it hides no point, with names as they are."""
    drawn = figure.legend(
        lines, [" "] * len(names), loc="outside lower center", ncols=columns, fontsize=9, frameon=False
    )
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set(parse_math=False, text=name)
