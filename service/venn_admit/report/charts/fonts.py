"""Fonts for names in any script: those that are installed, and what is drawn if none has a name's characters."""

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

from venn_admit.report.evaluation.dataset import DatasetReport

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


def drawing_fonts() -> AbstractContextManager[None]:
    """In its body, figures are made with all fonts that are installed, each for the characters the ones before lack."""
    return mpl.rc_context({"font.family": list(_installed())})


def with_drawable_names(report: DatasetReport) -> DatasetReport:
    """The report with names that can be drawn.

    A class some of whose characters no installed font has is called by its number, as in "class 3", because several
    such names would look alike; in the name of the evaluation set a square stands for such a character.
    """
    return replace(
        report,
        name=drawable_text(report.name),
        class_names=drawable_class_names(report.class_names),
    )


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
