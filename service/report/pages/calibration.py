"""A report on a calibration as one self-contained HTML page, without scripts or network."""

from pathlib import Path

from markupsafe import Markup

from venn_admit.service.report.calibration.common.coverage import key_figures, verdict
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.steps import NextSteps
from venn_admit.service.report.calibration.wording import advice_text, heading, pictures, sections, settings_text
from venn_admit.service.report.charts.charts import to_svg
from venn_admit.service.report.pages.environment import page_environment


def render_calibration(report: CalibrationReport, steps: NextSteps) -> str:
    """Return the HTML of the page; the same report gives the same text, and every name is escaped."""
    drawn = [
        # Safe: matplotlib escapes the text it draws, to_svg the label.
        (Markup(to_svg(one.draw(), one.name, one.caption)), one.caption)  # noqa: S704
        for one in pictures(report)
    ]
    return (
        page_environment()
        .get_template("calibration.html.j2")
        .render(
            heading=heading(report),
            settings=settings_text(report),
            sections=sections(report, steps),
            advice=advice_text(report, steps),
            pictures=drawn,
            verdict=verdict(report),
            figures=key_figures(report),
            queries=report.queries,
        )
    )


def write_calibration_page(report: CalibrationReport, steps: NextSteps, folder: Path) -> Path:
    """Write index.html into a folder, which is made if it is missing, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(render_calibration(report, steps), encoding="utf-8")
    return page
