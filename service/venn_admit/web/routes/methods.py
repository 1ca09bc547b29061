"""The table of methods: a calibration's own beside its rivals."""

from collections.abc import Sequence

from fastapi import Request, Response

from venn_admit.api.routes.parts import CalibrationNumber, ClassifierName
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.http.guards.guard import needs
from venn_admit.report.evaluation.glance import matters
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import router
from venn_admit.web.comparison_cache import kept_comparisons
from venn_admit.web.rendering import page

routes = router()


@routes.get("/classifiers/{classifier}/methods", dependencies=[needs(Scope.READ)])
def get_methods(request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None) -> Response:
    """Show what each method admits of the calibration data, and how often it is right."""
    table, as_of = kept_comparisons(request).get(classifier, calibration)
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
        rows=[row for row in rows if row[0].is_own or matters(row[0].name)],
        others=[row for row in rows if not (row[0].is_own or matters(row[0].name))],
        as_of=as_of,
    )


def _worst(names: Sequence[str], tallies: Sequence[Tally]) -> tuple[str, Tally] | None:
    """Return the class that is right least often, of those that are admitted; None if none is."""
    found = [(name, tally) for name, tally in zip(names, tallies, strict=True) if tally.count]
    return min(found, key=lambda one: one[1].share, default=None)
