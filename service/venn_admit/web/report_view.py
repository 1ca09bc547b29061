"""What the page shows of a report: that of its own page."""

from typing import Any

from venn_admit.report.calibration.contents import CalibrationReport
from venn_admit.report.pages.html import calibration_view
from venn_admit.web.pictures import drawn
from venn_admit.web.steps import PAGE_STEPS


def report_view(report: CalibrationReport) -> dict[str, Any]:
    """Return what the templates of a report show on this page."""
    return calibration_view(report, PAGE_STEPS, drawn) | {"steps_are_words": True}
