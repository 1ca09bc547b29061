"""The partition map: share right, share admitted, points and traffic in each partition of q and d."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from venn_admit.service.core.evaluation.tallies import MINIMUM_TO_JUDGE
from venn_admit.service.core.monitoring.partition_map import PartitionMap
from venn_admit.service.report.charts.colours import DARK_INK, LIGHT_INK
from venn_admit.service.report.charts.drawing import FEW_COLOUR
from venn_admit.service.report.charts.marks import FEW_MARK_COLOUR
from venn_admit.service.report.evaluation.wording import share_text

BAR = 0.075
"""Of the height of a cell, the bar of what is admitted at its foot."""


def map_figure(
    found: PartitionMap, *, match_names: Sequence[str], distance_names: Sequence[str], split: str, target: Decimal
) -> Figure:
    """Return the map, cells with fewer than `MINIMUM_TO_JUDGE` points in grey.

    match_names, distance_names: of the groups of q and of d. split: what the points are of. target: 1 - alpha, which
    the scale marks.
    """
    rows, columns = found.points.shape
    judged = found.points >= MINIMUM_TO_JUDGE
    right = np.where(judged, found.right / np.maximum(found.points, 1), np.nan)  # (Q, G)
    least = min(float(target), np.floor(10 * np.min(right, where=judged, initial=0.9)) / 10)
    scale = Normalize(least, 1.0)
    figure = Figure(figsize=(9.8, 1.3 + 0.92 * rows), layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor(FEW_COLOUR)
    mesh = axes.pcolormesh(np.ma.masked_invalid(right), cmap="cividis", norm=scale, edgecolor="white", linewidth=1.5)
    for row in range(rows):
        for column in range(columns):
            share = float(right[row, column])
            ink = FEW_MARK_COLOUR if np.isnan(share) else LIGHT_INK if scale(share) < 0.45 else DARK_INK
            _draw_cell(axes, found, (row, column), ink)
    bar = figure.colorbar(mesh, ax=axes, pad=0.015, aspect=30)
    bar.set_label(f"share of the predictions of {split} that is right")
    bar.ax.axhline(float(target), color="white", linewidth=3)
    bar.ax.axhline(float(target), color="black", linewidth=1.2)
    axes.set_yticks(np.arange(rows) + 0.5, match_names)
    axes.set_xticks(np.arange(columns) + 0.5, distance_names)
    axes.tick_params(length=0)
    axes.set_ylabel(f"q: matching nearest neighbours, of {found.match_edges[-1] - 1}")
    axes.set_xlabel("d: distance to the nearest training exemplar, by quartiles of the calibration data")
    return figure


def _draw_cell(axes: Axes, found: PartitionMap, place: tuple[int, int], ink: str) -> None:
    row, column = place
    points, admitted = int(found.points[place]), int(found.admitted[place])
    lines = [f"{points:,} point{'' if points == 1 else 's'}"] if points else ["no point"]
    if points >= MINIMUM_TO_JUDGE:
        share = share_text(found.right[place] / points)
        lines = [f"{share} right", f"{share_text(admitted / points)} admitted", *lines]
        axes.add_patch(
            Rectangle((column + 0.04, row + 0.05), 0.92, BAR, facecolor="none", edgecolor=ink, linewidth=0.8)
        )
        axes.add_patch(
            Rectangle((column + 0.04, row + 0.05), 0.92 * admitted / points, BAR, facecolor=ink, linewidth=0)
        )
    if total := int(found.traffic.sum()):
        lines.append(f"{share_text(found.traffic[place] / total)} of traffic")
    axes.text(
        column + 0.5,
        row + 0.57,
        "\n".join(lines),
        ha="center",
        va="center",
        color=ink,
        fontsize=9 if points >= MINIMUM_TO_JUDGE else 8,
        linespacing=1.2,
    )
