"""Reports as they were computed last: computing one takes seconds if much is stored, and several pages show it."""

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Any

from fastapi import Request
from markupsafe import Markup

from venn_admit.flows.reports.report import report, report_standing
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Picture
from venn_admit.report.charts.charts import to_svg
from venn_admit.report.pages.html import calibration_view
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.decisions.reports import ReportStanding
from venn_admit.web.steps import on_page

MOST = 16
"""How many reports are kept: those that were asked for last."""
OLDEST = timedelta(minutes=10)
"""How long a report is shown at most, although traffic has come since."""
_TAG = re.compile(r"<[^>]*>")
_STYLES = re.compile(r'\sstyle="([^"]*)"')
# Round joints and butt ends, which the style sheet of the page gives instead.
_SHEET = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)


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


def report_view(report: CalibrationReport) -> dict[str, Any]:
    """Return what the templates of a report show on this page."""
    return calibration_view(report, on_page, drawn) | {"steps_are_words": True}


def drawn(picture: Picture) -> Markup:
    """Return a chart as an SVG element without styles of its own."""
    # Safe: matplotlib escapes the text it draws, to_svg the label.
    return Markup(without_styles(to_svg(picture.draw(), picture.name, picture.caption)))  # noqa: S704


def without_styles(svg: str) -> str:
    """Return SVG with attributes in place of styles, which look the same.

    >>> without_styles('<path style="fill: none; stroke: var(--blue)" d="M 0 0"/>')
    '<path fill="none" stroke="var(--blue)" d="M 0 0"/>'
    """
    # Within a tag only: a name that is drawn may look like an attribute.
    return _TAG.sub(lambda tag: _STYLES.sub(_attributes, tag[0]), _SHEET.sub("", svg))


def _attributes(found: re.Match[str]) -> str:
    parts = (part.partition(":") for part in found[1].split(";") if part.strip())
    pairs = ((name.strip(), value.strip()) for name, _, value in parts)
    return "".join(f' {name}="{value}"' for name, value in pairs)
