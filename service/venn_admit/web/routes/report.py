"""The report on a calibration."""

from fastapi import Request, Response

from venn_admit.api.routes.parts import CalibrationNumber, ClassifierName
from venn_admit.http.guards.guard import needs
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import router
from venn_admit.web.rendering import page
from venn_admit.web.report_cache import kept_reports

routes = router()


@routes.get("/classifiers/{classifier}/report", dependencies=[needs(Scope.READ)])
def get_report(
    request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None, again: bool = False
) -> Response:
    """Show what `report` shows, as it was computed last if nothing but traffic came since. again: compute it again."""
    kept, is_behind = kept_reports(request).get(classifier, calibration, again=again)
    return page(
        request,
        "report",
        title=f"{classifier}: report",
        classifier=classifier,
        as_of=kept.as_of,
        is_behind=is_behind,
        calibration=kept.report.snapshot.id,
        **kept.view,
    )
