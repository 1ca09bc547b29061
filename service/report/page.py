"""One self-contained HTML page: the tables and charts of every evaluation set, without scripts or network."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from service.core.tallies import FEW, Verdict
from service.report.charts import coverage_figure, heatmap_figure, reliability_figure, save_charts, to_svg
from service.report.dataset import RECOMMENDED, DatasetReport
from service.report.wording import (
    MARKS,
    PREDICTED,
    TRUE,
    class_gap,
    headline,
    hidden_classes,
    kind_tallies,
    share_text,
    target_text,
)

FIGURES = {
    "coverage": (
        coverage_figure,
        "Coverage against admitted share. From the left, points are admitted in the order of their lower "
        "probability, the highest first; a curve shows the share correct among those admitted so far. "
        f"A dot is what {RECOMMENDED} admits; it should lie above the dotted target.",
    ),
    "reliability": (
        reliability_figure,
        "Lower probability against observed frequency. Each mark is a bin of points with a similar lower "
        "probability; it should not lie clearly below the diagonal. Bars are 95 % Wilson intervals; the "
        "lower panel shows how many points a bin holds.",
    ),
    "heatmap": (
        heatmap_figure,
        "Accuracy of the KNN by q and d. Upwards, more of the nearest neighbours agree; to the right, the "
        "point is further from the training data.",
    ),
}


def render_page(
    title: str,
    facts: Mapping[str, str],
    reports: Sequence[DatasetReport],
    next_steps: Sequence[str] = (),
) -> str:
    """HTML of the page.

    facts: name and value, in the order shown: the classifier, alpha, kappa, omega, the calibration's number.
    next_steps: what to try next, a line each; a line that starts with "venn-admit" or "make" is a command.
    The same arguments give the same text. Every name is escaped.
    """
    environment = Environment(
        loader=PackageLoader("service.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = share_text
    return environment.get_template("page.html.j2").render(
        title=title,
        facts=facts,
        reports=[(report, _charts(report, f"set{number}")) for number, report in enumerate(reports, start=1)],
        next_steps=next_steps,
        kinds=(TRUE, PREDICTED),
        kind_tallies=kind_tallies,
        headline=headline,
        class_gap=class_gap,
        hidden_classes=hidden_classes,
        target_text=target_text,
        marks=MARKS,
        verdicts=Verdict,
        few=FEW,
    )


def write_report(
    directory: Path,
    title: str,
    facts: Mapping[str, str],
    reports: Sequence[DatasetReport],
    next_steps: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write index.html and the PNG charts of every evaluation set; returns the paths, the page first.

    The directory is made where it is missing; files of the same names are replaced.
    """
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    page.write_text(render_page(title, facts, reports, next_steps), encoding="utf-8")
    return (page, *(path for report in reports for path in save_charts(report, directory)))


def _charts(report: DatasetReport, prefix: str) -> list[tuple[Markup, str]]:
    """The charts as SVG, each with its caption."""
    return [
        # Safe: matplotlib escapes the text it draws, to_svg the label.
        (Markup(to_svg(draw(report), f"{prefix}-{name}", f"{report.name}: {caption}")), caption)  # noqa: S704
        for name, (draw, caption) in FIGURES.items()
    ]
