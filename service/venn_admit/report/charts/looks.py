"""How charts look: their colours in a page, fonts for names in any script, and marks that verdicts have."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from math import isnan

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.lines import Line2D

from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.charts.colours import CHART_COLOURS
from venn_admit.report.evaluation.dataset import DatasetReport

INK = "#000000"
"""Lines and words in it take the colour of the page's text. What stands on a coloured cell has one of the next two."""
DARK_INK, LIGHT_INK = "#010101", "#fefefe"
_NAMES = {light: name for name, (light, _) in CHART_COLOURS.items()}
_HEX = re.compile(r"(?<=: )#[0-9a-f]{6}\b")
_ATTRIBUTE = re.compile(r'\bfill="(#[0-9a-f]{6})"')
"""The colour of the ground of a hatch, where no variable may stand."""
FAMILIES = (
    "DejaVu Sans",  # comes with matplotlib
    *(f"Noto Sans CJK {region}" for region in ("SC", "JP", "TC", "KR")),
    *(f"Noto Sans {region}" for region in ("SC", "JP", "TC", "KR")),
    *("Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *(f"Noto Sans {script}" for script in ("Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Thai", "Ethiopic")),
    *("Noto Emoji", "Symbola", "Segoe UI Symbol", "Arial Unicode MS", "Unifont"),
)
"""Asked for a character in this order, if they are installed."""
PAGE_FONTS = "'DejaVu Sans', Verdana, system-ui, sans-serif"
"""In the page. The first two are as wide as the charts are laid out for; a browser adds those for other scripts."""
UNKNOWN = "\N{WHITE SQUARE}"
FEW_MARK_COLOUR = "#8a8a8a"
FEW_MARK_SIZE, FEW_ALPHA = 4, 0.55
"""Marks of too few points are small and faint, so that they do not draw the eye."""
VERDICT_COLOURS = {Verdict.MET: "#00694d", Verdict.MISSED: "#b34700", Verdict.CANNOT_TELL: "#555555"}
"""The colours of words and signs; darker than the hues of Okabe & Ito that they follow, to be read on white."""
VERDICT_MARKERS = {Verdict.MET: "o", Verdict.MISSED: "X", Verdict.CANNOT_TELL: "o"}


def themed(tag: str) -> str:
    """Return a tag of SVG with the page's variables for colours.

    >>> themed('<path style="fill: #0072b2; stroke: #000000"/>')
    '<path style="fill: var(--blue); stroke: currentColor"/>'
    >>> themed('<rect fill="#ececec"/>')
    '<rect style="fill: var(--pale)"/>'
    >>> themed('<path style="fill: #123456"/>')
    '<path style="fill: #123456"/>'
    """
    return _HEX.sub(lambda found: _themed(found[0]), _ATTRIBUTE.sub(r'style="fill: \1"', tag))


def _themed(colour: str) -> str:
    if colour == INK:
        return "currentColor"
    return f"var(--{_NAMES[colour]})" if colour in _NAMES else colour


def drawing_fonts() -> AbstractContextManager[None]:
    """In its body, figures are made with all fonts that are installed, each for the characters the ones before lack."""
    return mpl.rc_context({"font.family": list(_installed())})


def with_drawable_names(report: DatasetReport) -> DatasetReport:
    """The report with names that can be drawn.

    A class some of whose characters no installed font has is called by its number, as in "class 3", because several
    such names would look alike; in the name of the evaluation set a square stands for such a character.
    """
    return replace(report, name=drawable_text(report.name), class_names=drawable_class_names(report.class_names))


def drawable_text(text: str) -> str:
    """The text, with a square in place of each character that cannot be drawn."""
    return "".join(character if _is_drawable(character) else UNKNOWN for character in text)


def drawable_class_names(class_names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, with a number in place of each that cannot be drawn."""
    return tuple(name if all(map(_is_drawable, name)) else f"class {number}" for number, name in enumerate(class_names))


@cache
def _installed() -> tuple[str, ...]:
    names = set(fontManager.get_font_names())
    return tuple(family for family in FAMILIES if family in names)


@cache
def _is_drawable(character: str) -> bool:
    return any(ord(character) in _characters(family) for family in _installed())


@cache
def _characters(family: str) -> frozenset[int]:
    """The code points a font has, in its regular and in its bold face."""
    faces = (get_font(findfont(FontProperties(family=[family], weight=weight))) for weight in ("normal", "bold"))
    regular, bold = (frozenset(face.get_charmap()) for face in faces)
    return regular & bold


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


def apart(positions: Sequence[tuple[float, float]], near: tuple[float, float], step: float) -> list[float]:
    """Return where across each mark is drawn: those that would overlap stand side by side, a step apart.

    positions: across and up of each mark, NaN for one that is not drawn. near: two marks no further apart than this,
    across and up, would touch. A group keeps its middle, and the order of its marks.

    >>> apart([(0.5, 0.9), (0.8, 0.9), (0.5, 0.9)], near=(0.02, 0.02), step=0.1)
    [0.45, 0.8, 0.55]
    """
    groups: list[list[int]] = []
    for number, (x, y) in enumerate(positions):
        if isnan(x) or isnan(y):
            continue
        touching = (
            group
            for group in groups
            if any(abs(positions[i][0] - x) <= near[0] and abs(positions[i][1] - y) <= near[1] for i in group)
        )
        group = next(touching, None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    across = [x for x, _ in positions]
    for group in groups:
        group.sort(key=lambda i: (positions[i][0], i))
        middle = sum(positions[i][0] for i in group) / len(group)
        for position, i in enumerate(group):
            across[i] = middle + (position - (len(group) - 1) / 2) * step if len(group) > 1 else positions[i][0]
    return across


def name_series(figure: FigureBase, lines: Sequence[Artist], names: Sequence[str], columns: int) -> None:
    """Draw a legend below the panels, where it hides no point, with names as they are."""
    drawn = figure.legend(
        lines, [" "] * len(names), loc="outside lower center", ncols=columns, fontsize=9, frameon=False
    )
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set(parse_math=False, text=name)
