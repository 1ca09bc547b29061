"""The pages of a calibration: its report, the methods beside it, and one cell of its partition map."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query, Request, Response

from venn_admit.api.models.common import LARGEST_INTEGER
from venn_admit.api.routes.parts import CalibrationNumber, ClassifierName, runtime_of
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.flows.reports.report import open_cell
from venn_admit.http.guards.guard import needs
from venn_admit.http.paging import LARGEST_KEY
from venn_admit.report.evaluation.glance import matters
from venn_admit.store.access.keys import Scope
from venn_admit.web.caches import methods_cache, report_cache
from venn_admit.web.rendering import page
from venn_admit.web.visitors import router

routes = router()
_Place = Annotated[int, Path(ge=0, le=LARGEST_INTEGER)]


@routes.get("/classifiers/{classifier}/report", dependencies=[needs(Scope.READ)])
def get_report(
    request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None, again: bool = False
) -> Response:
    """Show what `report` shows, as it was computed last if nothing but traffic came since. again: compute it again."""
    found, is_behind = report_cache(request).get(classifier, calibration, again=again)
    return page(
        request,
        "report",
        title=f"{classifier}: report",
        classifier=classifier,
        as_of=found.as_of,
        is_behind=is_behind,
        calibration=found.report.snapshot.id,
        **found.view,
    )


@routes.get("/classifiers/{classifier}/methods", dependencies=[needs(Scope.READ)])
def get_methods(request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None) -> Response:
    """Show what each method admits of the calibration data, and how often it is right."""
    table, as_of = methods_cache(request).get(classifier, calibration)
    rows = [
        (
            one,
            _worst(table.class_names, one.admission.right.per_predicted_class),
            _worst(table.class_names, one.admission.right.per_true_class),
        )
        for one in table.methods
    ]
    return page(
        request,
        "methods",
        title=f"{classifier}: methods",
        classifier=classifier,
        table=table,
        pointwise=Promised.POINTWISE.sentence,
        average=Promised.AVERAGE.sentence,
        rows=[row for row in rows if row[0].is_own or matters(row[0].name)],
        others=[row for row in rows if not (row[0].is_own or matters(row[0].name))],
        as_of=as_of,
    )


def _worst(names: Sequence[str], tallies: Sequence[Tally]) -> tuple[str, Tally] | None:
    """Return the class that is right least often, of those that are admitted; None if none is."""
    found = [(name, tally) for name, tally in zip(names, tallies, strict=True) if tally.count]
    return min(found, key=lambda one: one[1].share, default=None)


@routes.get(
    "/classifiers/{classifier}/calibrations/{calibration}/cells/{row}/{column}", dependencies=[needs(Scope.READ)]
)
def get_cell(
    request: Request,
    classifier: ClassifierName,
    calibration: Annotated[int, Path(ge=1, le=LARGEST_KEY)],
    row: _Place,
    column: _Place,
    after: Annotated[int | None, Query(ge=1, le=LARGEST_KEY)] = None,
    right: bool = False,
) -> Response:
    """Show the counts, the thresholds, the accuracy and some exemplars of a cell.

    after, right: the last exemplar of the page before, and whether its prediction is right.
    """
    following = None if after is None else (right, after)
    found = open_cell(runtime_of(request).engine, classifier, calibration, row, column, after=following)
    return page(
        request,
        "cell",
        title=f"{classifier}: cell of the partition map",
        classifier=classifier,
        cell=found,
        tally=Tally,
        is_first=following is None,
    )
