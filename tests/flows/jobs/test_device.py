"""Chunks whose neighbours come by way of a device store what the processor finds."""

from typing import Any

import numpy as np
import pytest

from tests.running import Bench, ChunkLimits, chunk_ordinals, run_chunk
from venn_admit.core.neighbours.on_device import DeviceLists
from venn_admit.flows.calibration.approximate import approximate_points
from venn_admit.flows.computing import chunk_runner
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers

OF_SCORED = """SELECT neighbours.exemplar_id, neighbours.neighbour_ids, neighbours.distances
FROM neighbours INNER JOIN exemplar ON neighbours.exemplar_id = exemplar.id
WHERE exemplar.split = 'scored' ORDER BY neighbours.exemplar_id"""


def test_the_device_of_the_settings_lists_the_same_neighbours(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cpu:0` is torch's name for the processor as a device; the program knows it only as one of torch's."""
    listed = 0
    list_candidates = DeviceLists.__call__

    def counted(lists: DeviceLists, *given: Any) -> Any:
        nonlocal listed
        listed += 1
        return list_candidates(lists, *given)

    monkeypatch.setattr(DeviceLists, "__call__", counted)
    job_id = edge.request_score("edge", edge.folder / "score.npz", chunk_rows=60).job_id
    runner = chunk_runner(edge.workspace(device="cpu:0"), ChunkLimits(), worker="here")
    ordinals = chunk_ordinals(edge.engine, job_id)
    assert sum(run_chunk(runner, job_id, ordinal) for ordinal in ordinals) == 160
    assert listed >= len(ordinals)

    stored = edge.rows(OF_SCORED)
    assert len(stored) == 160
    ids = np.array([row.exemplar_id for row in stored])
    with edge.engine.begin() as connection:
        for table in ("approximation", "neighbours"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE exemplar_id = ANY(%s)", (ids.tolist(),))
    with connect(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
    listed = 0
    found = approximate_points(edge.workspace(memory_budget=64 << 20), classifier, ids, None).new_neighbours
    assert listed == 0
    order = np.argsort(found.exemplar_ids)
    assert found.neighbour_ids[order].tolist() == [row.neighbour_ids for row in stored]
    assert found.distances[order].tolist() == [row.distances for row in stored]
