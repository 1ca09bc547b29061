"""What a change of training exemplars would concern: the points that rest on them, and the decisions on points."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from venn_admit.core.budget import block_rows
from venn_admit.core.types import Approximation, BoolArray, IntArray
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.binary_copy import BOOL, INT4, INT8, FixedColumn, read_columns
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.exemplars.approximations import view_columns, view_of_decisions
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class DecidedBlock:
    """The newest decisions of a snapshot on n exemplars.

    exemplar_ids: (n,) int64, ascending. weighted, require_full_match: (n,) bool, the options of each. decision: (n,)
    int64, the admitted class, -1 if rejected. approximation: the KNN's view that it was made by.
    """

    exemplar_ids: IntArray
    weighted: BoolArray
    require_full_match: BoolArray
    decision: IntArray
    approximation: Approximation


def resting_on(connection: Connection, calibration: Calibration, neighbour_ids: IntArray) -> IntArray:
    """Return the points with any of these neighbours that are held out or that a snapshot decided on; ascending ids."""
    parameters = {"neighbour_ids": neighbour_ids, "calibration_id": calibration.id}
    return execute_ids(connection, "what_if.resting_on", **parameters)


def newest_decisions(
    connection: Connection, classifier: Classifier, calibration: Calibration, memory_budget: int
) -> Iterator[DecidedBlock]:
    """Yield the newest decision of a snapshot on each exemplar, in blocks; memory_budget: bytes for everything.

    Between two blocks the connection serves other statements.
    """
    newest = read_columns(connection, "what_if.newest_decisions", {"id": INT8}, calibration_id=calibration.id)["id"]
    rows = block_rows(memory_budget, 8 * (classifier.class_count + 8))
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "weighted": BOOL,
        "require_full_match": BOOL,
        "decision": INT4,
        **{name: column for name, column in view_columns(classifier).items() if name != "predicted"},
    }
    for start in range(0, len(newest), rows):
        decision_ids = newest[start : start + rows].tolist()
        found = read_columns(connection, "what_if.decided", columns, decision_ids=decision_ids)
        yield DecidedBlock(
            exemplar_ids=found["exemplar_id"],
            weighted=found["weighted"],
            require_full_match=found["require_full_match"],
            decision=found["decision"],
            approximation=view_of_decisions(found),
        )
