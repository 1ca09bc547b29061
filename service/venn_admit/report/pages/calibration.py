"""Reports on a calibration as self-contained HTML pages, without scripts or network."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from venn_admit.advice import Render
from venn_admit.report.calibration.common.coverage import key_figures, verdict
from venn_admit.report.calibration.common.history import days_picture
from venn_admit.report.calibration.common.partition_map import map_table
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Picture
from venn_admit.report.calibration.wording import advice_text, heading, pictures, sections, settings_text
from venn_admit.report.pages.environment import page_environment


def calibration_view(report: CalibrationReport, render: Render, draw: Callable[[Picture], Markup]) -> dict[str, Any]:
    """Return what the templates of a report show, in which steps are commands. draw: makes the element of a picture."""
    days = days_picture(report.days) if report.days else None
    return {
        "heading": heading(report),
        "settings": settings_text(report),
        "sections": sections(report, render),
        "advice": advice_text(report, render),
        "map": None if report.map is None else map_table(report, report.map),
        "days": (draw(days), days.caption) if days else None,
        "pictures": [(draw(one), one.caption) for one in pictures(report)],
        "verdict": verdict(report),
        "figures": key_figures(report),
        "queries": report.queries,
        "steps_are_words": False,
    }


def render_calibration(report: CalibrationReport, render: Render) -> str:
    """Return the HTML of the page; the same report gives the same text, and every name is escaped."""
    from venn_admit.report.charts.charts import to_svg  # with matplotlib, which a service imports once it draws

    def draw(picture: Picture) -> Markup:
        # Safe: matplotlib escapes the text it draws, to_svg the label.
        return Markup(to_svg(picture.draw(), picture.name, picture.caption))  # noqa: S704

    return page_environment().get_template("calibration.html.j2").render(calibration_view(report, render, draw))


def write_calibration_page(report: CalibrationReport, render: Render, folder: Path) -> Path:
    """Write index.html into a folder, which is made if it is missing, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(render_calibration(report, render), encoding="utf-8")
    return page
