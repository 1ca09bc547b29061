"""What the page shows of a report: that of its own page, with a partition map whose cells are links."""

from typing import Any

from markupsafe import Markup

from venn_admit.service.report.calibration.common.partition_map import MAP, caption
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.sections import Picture
from venn_admit.service.report.pages.calibration import calibration_view
from venn_admit.service.web.assets import environment
from venn_admit.service.web.partition_map import linked_map
from venn_admit.service.web.pictures import drawn
from venn_admit.service.web.rendering import address
from venn_admit.service.web.steps import PAGE_STEPS


def report_view(report: CalibrationReport) -> dict[str, Any]:
    """Return what the templates of a report show on this page."""

    def draw(picture: Picture) -> Markup:
        if picture.name != MAP or report.map is None:
            return drawn(picture)
        shown = linked_map(report, report.map)
        text = environment().get_template("partition_map.html.j2").render(shown=shown, address=address)
        return Markup(text)  # noqa: S704 - the template escapes what it shows

    view = calibration_view(report, PAGE_STEPS, draw) | {"steps_are_words": True}
    if report.map is not None:
        (shown, _), *others = view["pictures"]
        view["pictures"] = [(shown, caption(report, report.map, has_bars=False)), *others]
    return view
