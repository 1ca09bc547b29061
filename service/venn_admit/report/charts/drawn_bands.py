"""The chart of a calibration by Venn-ADMIT: which points of vp it can decide on, by q."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from venn_admit.core.monitoring.partitions import CalibrationPartitions

# Right singletons at the bottom; colours of Okabe & Ito (2008), and greys for what is rejected before.
PARTS = (
    ("singleton, right", "#0072B2", ""),
    ("singleton, wrong", "#D55E00", "////"),
    ("set not a singleton", "#bdbdbd", ""),
    ("band below kappa", "#ececec", "...."),
)
EDGE = "#555555"

UPRIGHT = 30
"""Up to this many bins of q, their names stand side by side."""


def partitions_figure(partitions: CalibrationPartitions, names: Sequence[str], neighbour_count: int) -> Figure:
    """Return a chart of the points of vp in each bin of q, stacked by the kind of their ADMIT sets.

    names: of the bins. neighbour_count: K.
    """
    right, singleton = partitions.right.sum(axis=1), partitions.singleton.sum(axis=1)
    usable, every = partitions.usable.sum(axis=1), partitions.vp_count.sum(axis=(1, 2))
    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    axes = figure.add_subplot(ylabel="points of vp", xlabel=f"q: matching nearest neighbours, of {neighbour_count}")
    bottom = np.zeros(len(names), dtype=np.int64)
    counts = (right, singleton - right, usable - singleton, every - usable)
    for (name, colour, hatch), height in zip(PARTS, counts, strict=True):
        axes.bar(
            names, height, bottom=bottom, label=name, color=colour, hatch=hatch, edgecolor="#555555", linewidth=0.4
        )
        bottom = bottom + height
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelrotation=90 if len(names) > UPRIGHT else 0)
    figure.legend(loc="outside upper center", ncols=len(PARTS), frameon=False)
    return figure
