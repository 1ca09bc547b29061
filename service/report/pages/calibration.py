"""A report on a calibration as one self-contained HTML page, without scripts or network."""

from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.steps import NextSteps
from venn_admit.service.report.calibration.wording import advice_text, heading, sections, settings_text
from venn_admit.service.report.charts.charts import to_svg

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

CAPTION = (
    "The points of vp by q: which of them the Venn predictor decides on, and why the others are rejected before. More "
    "labels, coarser bins of q or a larger delta would raise bands that are below kappa."
)


def partitions_figure(report: CalibrationReport) -> Figure:
    """Return a chart of the points of vp in each bin of q, stacked by the kind of their ADMIT sets."""
    partitions, names = report.partitions, report.bin_names()
    right, singleton = partitions.right.sum(axis=1), partitions.singleton.sum(axis=1)
    usable, every = partitions.usable.sum(axis=1), partitions.vp_count.sum(axis=(1, 2))
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    axes = figure.add_subplot(
        ylabel="points of vp", xlabel=f"q: matching nearest neighbours, of {report.neighbour_count}"
    )
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


def render_calibration(report: CalibrationReport, steps: NextSteps) -> str:
    """Return the HTML of the page; the same report gives the same text, and every name is escaped."""
    environment = Environment(
        loader=PackageLoader("venn_admit.service.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    svg = to_svg(partitions_figure(report), "partitions", CAPTION)
    return environment.get_template("calibration.html.j2").render(
        heading=heading(report),
        settings=settings_text(report),
        sections=sections(report),
        advice=advice_text(report, steps),
        # Safe: matplotlib escapes the text it draws, to_svg the label.
        chart=Markup(svg),  # noqa: S704
        caption=CAPTION,
    )


def write_calibration_page(report: CalibrationReport, steps: NextSteps, folder: Path) -> Path:
    """Write index.html into a folder, which is made if it is missing, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(render_calibration(report, steps), encoding="utf-8")
    return page
