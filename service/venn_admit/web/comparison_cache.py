"""Tables of methods as they were computed: a table takes seconds, and its snapshot never changes."""

from collections import OrderedDict
from datetime import UTC, datetime
from threading import Lock

from fastapi import Request

from venn_admit.flows.data.catalogue import show_calibration
from venn_admit.flows.reports.methods_table import MethodsTable, methods_table
from venn_admit.runtime.workspace import Runtime

MOST = 16
"""How many tables are kept: those that were asked for last."""


class KeptComparisons:
    """The tables of one process. Threads may share it; they are computed one after the other."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: OrderedDict[tuple[str, int], tuple[MethodsTable, datetime]] = OrderedDict()
        self._computing = Lock()

    def get(self, name: str, calibration_id: int | None) -> tuple[MethodsTable, datetime]:
        """Return the table of a snapshot, and when it was computed; None: of the current one.

        Raises:
            NotFoundError: There is no such classifier or snapshot.
            NotReadyError: There is no snapshot yet, or its points cannot be read.
        """
        runtime = self._runtime
        row, _ = show_calibration(runtime.engine, name, calibration_id)
        key = (name, row.calibration)
        with self._computing:
            if key not in self._kept:
                began = datetime.now(UTC)
                found = methods_table(runtime, *key)
                self._kept[key] = (found, began)
            self._kept.move_to_end(key)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
            return self._kept[key]


def kept_comparisons(request: Request) -> KeptComparisons:
    """Return the tables of the process that answers a request."""
    kept: KeptComparisons = request.app.state.kept_comparisons
    return kept
