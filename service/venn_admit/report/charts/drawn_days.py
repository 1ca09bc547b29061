"""The chart of the last days: the share admitted, decisions, and labels."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from venn_admit.core.monitoring.days import Day

SHARE_COLOUR, COUNT_COLOUR = "#0072b2", "#8a8a8a"
TICKS = 7
"""About this many days have their date below the chart."""


def days_figure(days: Sequence[Day]) -> Figure:
    """Return a line of the share admitted above bars of decisions and of labels; a day without decisions is a gap."""
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    places = np.arange(len(days))
    shares = [day.share for day in days]
    share = np.array([tally.share if tally.count else np.nan for tally in shares])
    low, high = np.array([tally.interval if tally.count < tally.total else (tally.share,) * 2 for tally in shares]).T
    admitted, decisions, labels = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    admitted.vlines(places, low, high, color=SHARE_COLOUR, linewidth=1, alpha=0.55)
    admitted.plot(places, share, color=SHARE_COLOUR, marker="o", markersize=4.5, linewidth=1.8)
    admitted.set(ylim=(0, 1.05), title="share admitted")
    for axes, title, counts in (
        (decisions, "decisions", [day.decisions for day in days]),
        (labels, "labels", [day.labels for day in days]),
    ):
        axes.bar(places, counts, width=0.7, color=COUNT_COLOUR)
        axes.set(title=title, ylim=(0, max(1, 1.1 * max(counts))))
        axes.yaxis.get_major_locator().set_params(integer=True, nbins=3)
        axes.yaxis.set_major_formatter("{x:,.0f}")
    for axes in (admitted, decisions, labels):
        # What is read stands beside the newest, which a narrow screen shows first.
        axes.set_title(axes.get_title(), loc="right", fontsize=10)
        axes.set_title("")
        axes.yaxis.tick_right()
        axes.grid(alpha=0.25, axis="y")
        axes.set_axisbelow(True)
    shown = places[:: -max(1, len(days) // TICKS)][::-1]  # the last day has its date
    labels.set_xticks(shown, [f"{days[place].day:%d %b}" for place in shown])
    labels.set_xlim(-0.6, len(days) - 0.4)
    return figure
