"""The colours of the charts, and what they become on a page: it shows them on light ground, or on dark.

Colours are those of Okabe & Ito (2008), which are told apart with every kind of colour vision. On dark ground they are
lighter, in the same hues.
"""

import re

CHART_COLOURS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#1d2126"),
    "grid": ("#b0b0b0", "#5b636d"),
    "blue": ("#0072b2", "#4aaeea"),
    "red": ("#d55e00", "#ff8a3d"),
    "green": ("#009e73", "#33c79b"),
    "pink": ("#cc79a7", "#e29bc3"),
    "orange": ("#e69f00", "#f2b632"),
    "sky": ("#56b4e9", "#7cc8f4"),
    "grey": ("#555555", "#b4bcc5"),
    "mid": ("#8a8a8a", "#8f98a3"),
    "faint": ("#bdbdbd", "#59616b"),
    "pale": ("#ececec", "#31373f"),
    "few-cells": ("#e9e9e9", "#2b3037"),
    "met-sign": ("#00694d", "#5fd3ae"),
    "missed-sign": ("#b34700", "#ff9a57"),
}
"""Colours by the name of the variable of a page: on light ground, as the charts draw it, and on dark ground."""

INK = "#000000"
"""Lines and words in it take the colour of the page's text. What stands on a coloured cell has one of the next two."""

DARK_INK, LIGHT_INK = "#010101", "#fefefe"

_NAMES = {light: name for name, (light, _) in CHART_COLOURS.items()}
_HEX = re.compile(r"(?<=: )#[0-9a-f]{6}\b")
_ATTRIBUTE = re.compile(r'\bfill="(#[0-9a-f]{6})"')
"""The colour of the ground of a hatch, where no variable may stand."""


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
