"""The points of a snapshot that is not stored, in the order in which a stored one is read."""

import numpy as np

from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.types import CalibrationPoints, Split
from venn_admit.store.calibrations.calibrations import SnapshotPoints


def points_of_split(rows: CalibrationRows, split: Split) -> SnapshotPoints:
    """Return one split of a snapshot's rows as `calibrations.read_points` returns it, ordered by band."""
    wanted = np.flatnonzero(rows.in_vp == (split == Split.VP))
    ids, distance = rows.exemplar_ids[wanted], rows.points.distance[wanted]
    order = wanted[np.lexsort((ids, distance, rows.bins[wanted]))]
    points = rows.points
    return SnapshotPoints(
        exemplar_ids=rows.exemplar_ids[order],
        points=CalibrationPoints(
            label=points.label[order],
            predicted=points.predicted[order],
            match_count=points.match_count[order],
            distance=points.distance[order],
            score=points.score[order],
        ),
        singleton=np.bitwise_count(rows.packed_sets[order]).sum(axis=1) == 1,
    )
