"""The report on a calibration, with a partition map whose cells are links."""

from fastapi import Request, Response
from markupsafe import Markup

from venn_admit.service.api.routes.parts import CalibrationNumber, ClassifierName
from venn_admit.service.api.security.guard import needs
from venn_admit.service.api.steps import REQUESTS
from venn_admit.service.flows.reporting.report import report
from venn_admit.service.report.calibration.common.partition_map import MAP, caption
from venn_admit.service.report.calibration.sections import Picture
from venn_admit.service.report.pages.calibration import calibration_view
from venn_admit.service.store.access.keys import Scope
from venn_admit.service.web.access import router
from venn_admit.service.web.assets import environment
from venn_admit.service.web.partition_map import linked_map
from venn_admit.service.web.pictures import drawn
from venn_admit.service.web.rendering import address, page, runtime_of

routes = router()


@routes.get("/classifiers/{classifier}/report", dependencies=[needs(Scope.READ)])
def get_report(request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None) -> Response:
    """Show what `report` shows."""
    runtime = runtime_of(request)
    found = report(runtime.engine, classifier, calibration_id=calibration, memory_budget=runtime.memory_budget)

    def draw(picture: Picture) -> Markup:
        if picture.name != MAP or found.map is None:
            return drawn(picture)
        shown = linked_map(found, found.map)
        text = environment().get_template("partition_map.html.j2").render(shown=shown, address=address)
        return Markup(text)  # noqa: S704 - the template escapes what it shows

    view = calibration_view(found, REQUESTS, draw)
    if found.map is not None:
        (shown, _), *others = view["pictures"]
        view["pictures"] = [(shown, caption(found, found.map, has_bars=False)), *others]
    return page(request, "report", title=f"{classifier}: report", classifier=classifier, **view)
