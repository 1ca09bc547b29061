"""The picture of a year: what is admitted, how much of it is right in truth, thresholds, labels, and what happened."""

from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.year.law import CLASS_NAMES
from tests.year.stream import ALARM, ALPHA, NEW_NETWORK, Calendar, Day
from venn_admit.report.charts.drawing import CLASS_LOOKS, TARGET_COLOUR
from venn_admit.report.charts.looks import drawing_fonts

DOTS_PER_INCH = 90


def picture(days: Sequence[Day], calendar: Calendar) -> Figure:
    """Return the picture: four panels over the same days."""
    with drawing_fonts():
        figure = Figure(figsize=(11, 9), layout="constrained")
        panels = figure.subplots(4, 1, sharex=True, height_ratios=(3, 3, 2, 2))
        _right(panels[0], days)
        _admitted(panels[1], days, calendar)
        _certified(panels[2], days)
        _labels(panels[3], days)
        for axes in panels:
            _events(axes, days, calendar)
            axes.grid(axis="y", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        _name_events(panels[0], days, calendar)
        panels[-1].set(xlabel="day", xlim=(0, calendar.days))
    return figure


def _of_class(days: Sequence[Day], number: int, values: str) -> list[float]:
    found = [getattr(day, values)[number] if getattr(day, values) else None for day in days]
    return [float("nan") if value is None else float(value) for value in found]


def _right(axes: Axes, days: Sequence[Day]) -> None:
    numbers = [day.day for day in days]
    axes.axhspan(0, 1 - ALPHA, color="black", alpha=0.05, linewidth=0)
    axes.axhline(1 - ALPHA, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    for number, (name, (colour, _)) in enumerate(zip(CLASS_NAMES, CLASS_LOOKS, strict=False)):
        axes.step(numbers, _of_class(days, number, "shares"), color=colour, where="post", label=f"predicted {name}")
    axes.set(ylabel="truly right of what\nis admitted", ylim=(0.76, 1.0))
    axes.legend(loc="lower left", frameon=False, fontsize=9)


def _admitted(axes: Axes, days: Sequence[Day], calendar: Calendar) -> None:
    numbers = [day.day for day in days]
    axes.plot(numbers, [day.scored_admitted / calendar.points for day in days], color="#bbbbbb", linewidth=0.8)
    axes.step(numbers, [day.admitted for day in days], color="#333333", where="post")
    axes.set(ylabel="admitted, by the law\nand of the day's points", ylim=(-0.02, 1.02))


def _certified(axes: Axes, days: Sequence[Day]) -> None:
    numbers = [day.day for day in days]
    for number, (colour, _) in enumerate(CLASS_LOOKS[: len(CLASS_NAMES)]):
        axes.step(numbers, _of_class(days, number, "certified"), color=colour, where="post")
    axes.set(ylabel="thresholds of the\nchain certified")


def _labels(axes: Axes, days: Sequence[Day]) -> None:
    for chain, own in groupby(days, lambda day: day.chain):
        of = list(own)
        axes.plot([day.day for day in of], [day.labels for day in of], color="#333333")
        axes.annotate(f"chain {chain}", (of[-1].day, of[-1].labels), ha="right", va="bottom", fontsize=9)
    axes.set(ylabel="labels that count\nfor the chain", ylim=(0, None))


def _events(axes: Axes, days: Sequence[Day], calendar: Calendar) -> None:
    axes.axvline(calendar.drift, color="#888888", linewidth=1)
    for day in days:
        if day.alarms:
            axes.axvspan(day.day, day.day + 1, color=TARGET_COLOUR, alpha=0.12, linewidth=0)
        for event in day.events:
            axes.axvline(day.day, color=TARGET_COLOUR if event == ALARM else "#888888", linewidth=1)


def _name_events(axes: Axes, days: Sequence[Day], calendar: Calendar) -> None:
    named = [(calendar.drift, "drift"), *((day.day, event) for day in days for event in day.events)]
    for place, (day, event) in enumerate(named):
        axes.annotate(
            event,
            (day, 1.0),
            xytext=(-4 if event != NEW_NETWORK else 4, 4 + 12 * (len(named) - place) if event != NEW_NETWORK else 4),
            textcoords="offset points",
            ha="right" if event != NEW_NETWORK else "left",
            fontsize=9,
        )
