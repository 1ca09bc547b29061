"""Reports, and tables of methods, as they were computed last: computing one takes seconds if much is stored."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Any

from fastapi import Request
from markupsafe import Markup

from venn_admit.flows.data.catalogue import show_calibration
from venn_admit.flows.reports.methods_table import MethodsTable, methods_table
from venn_admit.flows.reports.report import report, report_standing
from venn_admit.methods.recent import Recent
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Picture
from venn_admit.report.pages.calibration import calibration_view
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.decisions.reports import ReportStanding
from venn_admit.web.steps import on_page

OLDEST = timedelta(minutes=10)
"""How long a report is shown at most, although traffic has come since."""
_TAG = re.compile(r"<[^>]*>")
_STYLES = re.compile(r'\sstyle="([^"]*)"')
# Round joints and butt ends, which the style sheet of the page gives instead.
_SHEET = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)


@dataclass(frozen=True, eq=False)
class CachedReport:
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
class _Slot:
    """The newest version of one report; the holder of the lock computes it, and others wait."""

    lock: Lock = field(default_factory=Lock)
    newest: CachedReport | None = None


class ReportCache:
    """The reports of one process. Threads may share it; a report that several ask for is computed once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._slots = Recent[tuple[str, int], _Slot]()

    def get(self, name: str, calibration_id: int | None, *, again: bool = False) -> tuple[CachedReport, bool]:
        """Return a report, and whether requests have come since that it does not show.

        calibration_id: the snapshot; None: the one in use. again: whether to compute it even if it is known. Raises
        NotFoundError if there is no such classifier or snapshot, and NotReadyError if there is no snapshot yet.
        """
        asked_at = datetime.now(UTC)
        standing = report_standing(self._runtime.engine, name, calibration_id)
        slot = self._slots.get((name, standing.calibration), _Slot)
        with slot.lock:
            known = slot.newest
            if known is None or not known.serves(standing, asked_at) or (again and known.as_of < asked_at):
                known = slot.newest = self._computed(name, standing.calibration)
        return known, known.standing.newest_request != standing.newest_request

    def _computed(self, name: str, calibration_id: int) -> CachedReport:
        runtime, began = self._runtime, datetime.now(UTC)
        # Read before the report, so that a change in between causes it to be computed again.
        standing = report_standing(runtime.engine, name, calibration_id)
        found = report(runtime, name, calibration_id=calibration_id)
        return CachedReport(found, began, standing)


class MethodsCache:
    """The tables of methods of one process, which are computed one after the other; a snapshot never changes."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tables = Recent[tuple[str, int], tuple[MethodsTable, datetime]]()
        self._computing = Lock()

    def get(self, name: str, calibration_id: int | None) -> tuple[MethodsTable, datetime]:
        """Return the table of a snapshot, and when it was computed; None: of the one in use.

        Raises as `ReportCache.get` does, and NotReadyError if the points of the snapshot cannot be read.
        """
        row, _ = show_calibration(self._runtime.engine, name, calibration_id)
        key = (name, row.calibration)

        def compute() -> tuple[MethodsTable, datetime]:
            began = datetime.now(UTC)
            return methods_table(self._runtime, *key), began

        with self._computing:
            return self._tables.get(key, compute)


def report_cache(request: Request) -> ReportCache:
    """Return the reports of the process that answers a request."""
    cache: ReportCache = request.app.state.report_cache
    return cache


def methods_cache(request: Request) -> MethodsCache:
    """Return the tables of methods of the process that answers a request."""
    cache: MethodsCache = request.app.state.methods_cache
    return cache


def report_view(report: CalibrationReport) -> dict[str, Any]:
    """Return what the templates of a report show on this page."""
    return calibration_view(report, on_page, drawn) | {"steps_are_words": True}


def drawn(picture: Picture) -> Markup:
    """Return a chart as an SVG element without styles of its own."""
    from venn_admit.report.charts.charts import to_svg  # with matplotlib, a fifth of all that a service imports

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
