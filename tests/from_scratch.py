"""The data of a classifier put into a new one, as if they had always been as they are now."""

from typing import Any

import numpy as np
from sqlalchemy import Row

from tests.running import Bench
from venn_admit.core.types import KnnParameters

_CURRENT = """
SELECT external_id, point.split, point.label, point.predicted, match_count, distance, score, admit_set
FROM calibration_point AS point
INNER JOIN exemplar ON exemplar.id = point.exemplar_id
INNER JOIN classifier ON classifier.id = exemplar.classifier_id
WHERE classifier.name = :name AND valid_until IS NULL
ORDER BY external_id
"""
_STORED = """
SELECT exemplar.id, external_id, document_id, split, label, network_logits, stored.vector::real[] AS r
FROM exemplar
INNER JOIN classifier ON classifier.id = exemplar.classifier_id
INNER JOIN exemplar_vector AS stored ON stored.exemplar_id = exemplar.id AND stored.classifier_id = classifier.id
WHERE name = :name
ORDER BY exemplar.id
"""


def current_points(bench: Bench, name: str) -> list[Row[Any]]:
    """Every row of the current snapshot, but for keys; of a classifier with one calibrator."""
    return bench.rows(_CURRENT, name=name)


def stored_exemplars(bench: Bench, name: str) -> list[Row[Any]]:
    """Every exemplar with its vector, in order of ingestion."""
    return bench.rows(_STORED, name=name)


def store_again(
    bench: Bench, name: str, again: str, knn: KnnParameters, eta_loc: float, *, version: int | None = None
) -> None:
    """Make the classifier `again` with the training and held-out data of `name`, each in the split it is in.

    version: without the training exemplars that came after it; None: with all.
    """
    (before,) = bench.rows(
        "SELECT dimension, class_names, neighbour_count FROM classifier WHERE name = :name", name=name
    )
    bench.create(
        again,
        dimension=before.dimension,
        class_count=len(before.class_names),
        neighbour_count=before.neighbour_count,
    )
    stored = stored_exemplars(bench, name)
    for split in ("train", "knn", "mc", "vp"):
        late = version if split == "train" else None
        part = [row for row in stored if row.split == split and (late is None or row.id <= late)]
        if part:
            arrays = {
                "id": np.array([row.external_id for row in part]),
                "r": np.array([row.r for row in part], dtype=np.float32),
                "f": np.array([row.network_logits for row in part], dtype=np.float32),
                "y": np.array([row.label for row in part]),
            }
            if all(row.document_id is not None for row in part):
                arrays["doc"] = np.array([row.document_id for row in part])
            bench.ingest(again, bench.write("again.npz", arrays), split)
    bench.adopt(again, knn, eta_loc)
