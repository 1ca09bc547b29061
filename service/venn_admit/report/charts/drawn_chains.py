"""What the chains of a certificate that stands came to: shares admitted, labels and evidence, over time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from venn_admit.core.monitoring.history import ChainAdvance, ChainHistory
from venn_admit.report.charts.drawing import CLASS_LOOKS, NAME_WIDTH, TARGET_COLOUR
from venn_admit.report.charts.drawn_calibration import COUNT_COLOUR, SHARE_COLOUR
from venn_admit.report.charts.looks import drawing_fonts, name_series
from venn_admit.report.evaluation.wording import shorten
from venn_admit.report.wording import class_text

ALARM_COLOUR = "#d55e00"
EARLIER_ALPHA = 0.5
"""Earlier chains than the newest keep this much of their colour."""
MOST_MARKS = 60
"""A chain with more advances than these has no marks, since they could not be told apart."""
LEAST_EVIDENCE = 1e-3
"""Evidence is drawn on a logarithmic axis, this small at least."""


def chains_figure(history: ChainHistory, class_names: Sequence[str]) -> Figure:
    """Return three panels over one axis of time, each value from its advance on until the next of its chain.

    If there are many classes, those are drawn whose next threshold has the least evidence.
    """
    advances, last = history.advances, _days(history.advances[-1].created_at)
    chains = [[one for one in advances if one.chain == number] for number in sorted({one.chain for one in advances})]
    newest = chains[-1][-1].evidence
    least = sorted(newest, key=lambda number: newest[number])[: len(CLASS_LOOKS)]
    shown = sorted(least, key=lambda number: -1 if number is None else number)
    with drawing_fonts(), mpl.rc_context({"date.converter": "concise"}):
        figure = Figure(figsize=(8.4, 5.8), layout="constrained")
        admitted, labels, evidence = figure.subplots(3, 1, sharex=True, height_ratios=(1.8, 1, 1.6))
        for of_chain in chains:
            end, alpha = (last, 1.0) if of_chain is chains[-1] else (_days(of_chain[-1].created_at), EARLIER_ALPHA)
            _draw_steps(admitted, of_chain, [one.admitted for one in of_chain], end, color=SHARE_COLOUR, alpha=alpha)
            _draw_steps(labels, of_chain, [one.labels for one in of_chain], end, color=COUNT_COLOUR, alpha=alpha)
            for look, number in zip(CLASS_LOOKS, shown, strict=False):
                known = [one for one in of_chain if number in one.evidence]
                found = [max(one.evidence[number], LEAST_EVIDENCE) for one in known]
                _draw_steps(evidence, known, found, end, color=look[0], linestyle=look[1], alpha=alpha)
        first = _days(advances[0].created_at)
        for axes in (admitted, labels, evidence):
            for number, of_chain in enumerate(chains):
                begun = _days(of_chain[0].created_at)
                axes.axvline(begun, color=TARGET_COLOUR, linewidth=1, linestyle=(0, (4, 3)))
                if axes is admitted:
                    axes.annotate(
                        f" chain {of_chain[0].chain}", (begun, 1.04 - 0.09 * (number % 2)), va="top", fontsize=9
                    )
            for alarm in history.alarms:
                start = max(_days(alarm.created_at), first)
                until = last if alarm.ended_at is None else _days(alarm.ended_at)
                axes.axvspan(
                    start, max(start, until), facecolor="none", edgecolor=ALARM_COLOUR, alpha=0.45, hatch="////"
                )
        _finish(admitted, labels, evidence)
        lines: list[Artist] = [
            Line2D([], [], color=look[0], linestyle=look[1]) for look, _ in zip(CLASS_LOOKS, shown, strict=False)
        ]
        names = [
            "all classes" if number is None else f"predicted as {shorten(class_names[number], NAME_WIDTH)}"
            for number in shown
        ]
        if history.alarms:
            lines.append(Patch(facecolor="none", edgecolor=ALARM_COLOUR, hatch="////"))
            alarmed = dict.fromkeys(class_text(alarm.about, class_names) for alarm in history.alarms)
            names.append("alarm: " + shorten(", ".join(alarmed), NAME_WIDTH))
        name_series(figure, lines, names, columns=3)
    return figure


def _days(time: datetime) -> float:
    """Days since 1970, as axes of dates count."""
    return time.timestamp() / 86400


def _draw_steps(axes: Axes, advances: Sequence[ChainAdvance], values: Sequence[float], end: float, **look: Any) -> None:
    """Values from each advance on, up to an end."""
    if advances:
        times = [*(_days(one.created_at) for one in advances), end]
        axes.step(times, [*values, values[-1]], where="post", linewidth=1.6, **look)
        if len(advances) <= MOST_MARKS:
            axes.plot(times[:-1], values, marker=".", color=look["color"], alpha=look["alpha"], linestyle="")


def _finish(admitted: Axes, labels: Axes, evidence: Axes) -> None:
    admitted.set(ylim=(0, 1.05), title="share admitted")
    labels.set(title="labels of its chain")
    labels.set_ylim(bottom=0)
    labels.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    labels.yaxis.set_major_formatter("{x:,.0f}")
    evidence.axhline(1, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    evidence.set(
        yscale="log", ylim=(LEAST_EVIDENCE / 1.5, 2), title="evidence for the next threshold, of what it needs"
    )
    evidence.xaxis_date()
    for axes in (admitted, labels, evidence):
        axes.set_title(axes.get_title(), loc="right", fontsize=10)
        axes.set_title("")
        axes.yaxis.tick_right()
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
