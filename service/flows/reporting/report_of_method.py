"""The report on a calibration, by its method."""

from collections.abc import Callable, Mapping

import numpy as np
from sqlalchemy import Engine

from venn_admit.service.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.service.core.calibrators.venn_abers.settings import AUTO
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.core.types import Split
from venn_admit.service.flows.reporting.report import report
from venn_admit.service.report.calibration.cells import CellsReport
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.store.calibrations import calibrations, score_choices
from venn_admit.service.store.calibrations.setting_forms import VENN_ABERS, VENN_ADMIT
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions import reports
from venn_admit.service.store.exemplars import classifiers

Reporter = Callable[[Engine, str, int, int], CalibrationReport | CellsReport]


def report_of_method(
    engine: Engine, name: str, *, calibration_id: int | None, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> CalibrationReport | CellsReport:
    """Return the report that the method of a calibration has; arguments and errors are those of `report`."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
    return REPORTERS[calibration.method](engine, name, calibration.id, memory_budget)


def _bands(engine: Engine, name: str, calibration_id: int, memory_budget: int) -> CalibrationReport:
    return report(engine, name, calibration_id=calibration_id, memory_budget=memory_budget)


def _cells(engine: Engine, name: str, calibration_id: int, _memory_budget: int) -> CellsReport:
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        origin = reports.snapshot_origin(connection, calibration)
        choice = score_choices.choice_of(connection, calibration.id)
        mc = calibrations.read_points(connection, calibration, Split.MC).points
    settings, right = calibration.abers_settings, mc.predicted == mc.label
    index = VennAbersIndex(
        CellPoints(mc.predicted, mc.match_count, mc.score),
        right,
        class_count=classifier.class_count,
        bin_edges=settings.bin_edges,
    )
    return CellsReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        calibration=calibration.id,
        is_current=origin.is_current,
        created_at=origin.created_at,
        reason=origin.reason,
        method=calibration.method,
        alpha=settings.alpha,
        thresholds=settings.thresholds,
        bin_edges=settings.bin_edges,
        asked=settings.score or AUTO,
        score=choice.kind,
        network_share=choice.network_share,
        reliability_share=choice.reliability_share,
        points=np.bincount(mc.predicted, minlength=classifier.class_count).tolist(),
        right=np.bincount(mc.predicted[right], minlength=classifier.class_count).tolist(),
        steps=len(index.steps.cell),
    )


REPORTERS: Mapping[str, Reporter] = {VENN_ADMIT: _bands, VENN_ABERS: _cells}
