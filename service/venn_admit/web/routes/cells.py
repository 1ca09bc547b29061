"""A cell of the partition map, opened."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from venn_admit.api.models.common import LARGEST_INTEGER, LARGEST_KEY
from venn_admit.api.routes.parts import ClassifierName
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.flows.reports.cell import open_cell
from venn_admit.http.guards.guard import needs
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import router
from venn_admit.web.rendering import page, runtime_of

routes = router()

_Place = Annotated[int, Path(ge=0, le=LARGEST_INTEGER)]


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
