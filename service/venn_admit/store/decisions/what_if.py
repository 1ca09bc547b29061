"""What a change of training exemplars would concern: the points that rest on them, and the decisions on points."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.budget import block_rows
from venn_admit.core.types import Approximation, BoolArray, IntArray, Split
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.binary_copy import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    Array,
    FixedColumn,
    copy_out_whole,
    driver_cursor,
)
from venn_admit.store.database.statements import copy_query, statement
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
    """Return the points with any of these neighbours that calibrate or that a snapshot decided on; ascending ids."""
    parameters = {"neighbour_ids": neighbour_ids.tolist(), "calibration_id": calibration.id}
    return np.array(connection.execute(statement("what_if.resting_on"), parameters).scalars().all(), dtype=np.int64)


def in_split(connection: Connection, exemplar_ids: IntArray, split: Split) -> IntArray:
    """Return those of some exemplars that are in a split; ascending ids."""
    parameters = {"exemplar_ids": exemplar_ids.tolist(), "split": split}
    return np.array(connection.execute(statement("what_if.in_split"), parameters).scalars().all(), dtype=np.int64)


def newest_decisions(
    connection: Connection, classifier: Classifier, calibration: Calibration, memory_budget: int
) -> Iterator[DecidedBlock]:
    """Yield the newest decision of a snapshot on each exemplar, in blocks; memory_budget: bytes for everything.

    Between two blocks the connection serves other statements.
    """
    cursor, of_snapshot = driver_cursor(connection), {"calibration_id": calibration.id}
    newest = copy_out_whole(cursor, copy_query("what_if.newest_decisions"), of_snapshot, {"id": INT8})["id"]
    rows = block_rows(memory_budget, 8 * (classifier.class_count + 8))
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "weighted": BOOL,
        "require_full_match": BOOL,
        "decision": INT4,
        "match_count": INT4,
        "distance": FLOAT8,
        "logits": Array(">f8", classifier.class_count),
    }
    for start in range(0, len(newest), rows):
        wanted = {"decision_ids": newest[start : start + rows].tolist()}
        found = copy_out_whole(cursor, copy_query("what_if.decided"), wanted, columns)
        yield DecidedBlock(
            exemplar_ids=found["exemplar_id"],
            weighted=found["weighted"],
            require_full_match=found["require_full_match"],
            decision=found["decision"].astype(np.int64),
            approximation=Approximation(
                logits=found["logits"],
                predicted=network_prediction(found["logits"]),
                match_count=found["match_count"].astype(np.int64),
                distance=found["distance"],
            ),
        )
