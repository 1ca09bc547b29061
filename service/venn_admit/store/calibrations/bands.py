"""The evidence of one point's band and category, computed where the snapshot is stored."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from venn_admit.core.types import IntArray
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.statements import execute


@dataclass(frozen=True, slots=True, eq=False)
class BandEvidence:
    """The evidence for the decision on one point, per class; see the statement `bands.band_evidence`.

    band_size: (C,) int64, n_c. threshold_score: (C,) float64, rank-th smallest score, inf if there is none. threshold:
    (C,) float64, tau_c. category_count: (C,) int64, points of each label in the category.
    """

    band_size: IntArray
    threshold_score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    category_count: IntArray


def band_evidence(
    connection: Connection, calibration: Calibration, class_count: int, *, predicted: int, q_bin: int, distance: float
) -> BandEvidence:
    """Return the evidence for one point from the current snapshot, by one index-only statement."""
    rows = execute(
        connection,
        "bands.band_evidence",
        calibrator_id=calibration.calibrator_id,
        class_count=class_count,
        alpha=calibration.settings.alpha,
        omega=calibration.radius.omega,
        predicted=predicted,
        bin=q_bin,
        distance=distance,
    ).all()
    return BandEvidence(
        band_size=np.array([row.band_size for row in rows], dtype=np.int64),
        threshold_score=np.array(
            [np.inf if row.threshold_score is None else row.threshold_score for row in rows], dtype=np.float64
        ),
        threshold=np.array([row.threshold for row in rows], dtype=np.float64),
        category_count=np.array([row.category_count for row in rows], dtype=np.int64),
    )
