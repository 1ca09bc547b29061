"""The colours of charts, on light and dark ground.

They are those of Okabe & Ito (2008), which are told apart with every kind of colour vision. On dark ground they are
lighter, in the same hues.
"""

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
