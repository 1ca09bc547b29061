"""Reports as they were computed last: computing one takes seconds if much is stored, and several pages show it."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Any

from fastapi import Request

from venn_admit.flows.reports.report import report, report_standing
from venn_admit.report.calibration.contents import CalibrationReport
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.decisions.reports import ReportStanding
from venn_admit.web.report_view import report_view

MOST = 16
"""How many reports are kept: those that were asked for last."""

OLDEST = timedelta(minutes=10)
"""How long a report is shown at most, although traffic has come since."""


@dataclass(frozen=True, eq=False)
class KeptReport:
    """A report. as_of: when it was begun; it shows what was stored then. standing: what it rested on."""

    report: CalibrationReport
    as_of: datetime
    standing: ReportStanding

    @cached_property
    def view(self) -> dict[str, Any]:
        """What the templates show of it; its pictures are drawn once."""
        return report_view(self.report)

    def serves(self, standing: ReportStanding, now: datetime) -> bool:
        """Whether it may be shown now: labels, calibrations and the monitor are as they were, and it is not too old."""
        return self.standing == standing and now - self.as_of < OLDEST


@dataclass(slots=True)
class _Place:
    """Where one report is kept; the holder of the lock computes it, and others wait."""

    lock: Lock = field(default_factory=Lock)
    kept: KeptReport | None = None


class KeptReports:
    """The reports of one process. Threads may share it; a report that several ask for is computed once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._places: OrderedDict[tuple[str, int], _Place] = OrderedDict()
        self._changing = Lock()

    def get(self, name: str, calibration_id: int | None, *, again: bool = False) -> tuple[KeptReport, bool]:
        """Return a report, and whether requests have come since that it does not show.

        Args:
            name: The classifier's name.
            calibration_id: The snapshot; None: the current one.
            again: Whether to compute it even if one is kept.

        Raises:
            NotFoundError: There is no such classifier or snapshot.
            NotReadyError: There is no snapshot yet.
        """
        asked_at = datetime.now(UTC)
        standing = report_standing(self._runtime.engine, name, calibration_id)
        place = self._place(name, standing.calibration)
        with place.lock:
            kept = place.kept
            if kept is None or not kept.serves(standing, asked_at) or (again and kept.as_of < asked_at):
                kept = place.kept = self._computed(name, standing.calibration)
        return kept, kept.standing.newest_request != standing.newest_request

    def _place(self, name: str, calibration_id: int) -> _Place:
        with self._changing:
            place = self._places.setdefault((name, calibration_id), _Place())
            self._places.move_to_end((name, calibration_id))
            if len(self._places) > MOST:
                self._places.popitem(last=False)
            return place

    def _computed(self, name: str, calibration_id: int) -> KeptReport:
        runtime, began = self._runtime, datetime.now(UTC)
        # Read before the report, so that a change in between causes it to be computed again.
        standing = report_standing(runtime.engine, name, calibration_id)
        found = report(runtime, name, calibration_id=calibration_id)
        return KeptReport(found, began, standing)


def kept_reports(request: Request) -> KeptReports:
    """Return the reports of the process that answers a request."""
    kept: KeptReports = request.app.state.kept_reports
    return kept
