"""The held-out data of a snapshot, as the methods that are compared with it see it."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.service.core.approximation.knn import nonconformity
from venn_admit.service.core.comparison.adaptive import uniform_draws
from venn_admit.service.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints
from venn_admit.service.core.comparison.methods import ComparisonCalibration
from venn_admit.service.core.types import Approximation, FloatArray, IntArray, Split, join_approximations
from venn_admit.service.errors import NotReadyError
from venn_admit.service.flows.calibration.approximate import positions
from venn_admit.service.flows.decisions.score import Snapshot
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.exemplars import approximations, exemplars
from venn_admit.service.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class ReadHeldOut:
    """Held-out data: of knn, mc and vp, one after the other, ids (n,) int64 and 1 - pi^y (n,) float64; and by split."""

    ids: IntArray
    nonconformity: FloatArray
    splits: HeldOut


def read_held_out(
    connection: Connection, classifier: Classifier, snapshot: Snapshot, memory_budget: int
) -> ReadHeldOut:
    """Return the snapshot's mc and vp, and knn as it is now. memory_budget: bytes that temporary arrays may take."""
    parts = [
        (part.exemplar_ids, part.points.score, part.points.label, _view(connection, classifier, snapshot, part))
        for part in (snapshot.mc, snapshot.vp)
    ]
    none = np.empty(0, dtype=np.int64)
    blocks = list(approximations.split_blocks(connection, classifier, Split.KNN, snapshot.parameters.id, memory_budget))
    ids = np.concatenate([none, *(block.exemplar_ids for block in blocks)])
    label = np.concatenate([none, *(block.labels for block in blocks)])
    view = join_approximations([parts[0][-1].take(none), *(block.approximation for block in blocks)])
    parts.insert(0, (ids, nonconformity(view.logits, label), label, view))

    def points(ids: IntArray, label: IntArray, view: Approximation) -> HeldOutPoints:
        logits = exemplars.network_logits(connection, classifier, ids)
        return HeldOutPoints(exemplars.keys(connection, ids).document_keys, label, ViewedPoints(logits, view))

    knn, mc, vp = (points(ids, label, view) for ids, _, label, view in parts)
    return ReadHeldOut(
        ids=np.concatenate([ids for ids, *_ in parts]),
        nonconformity=np.concatenate([score for _, score, *_ in parts]),
        splits=HeldOut(knn, mc, vp),
    )


def comparison_calibration(
    connection: Connection, classifier: Classifier, held_out: ReadHeldOut
) -> ComparisonCalibration:
    """Return all held-out labelled points, in the order of their external ids: sums round by it."""
    splits = (held_out.splits.knn, held_out.splits.mc, held_out.splits.vp)
    keys = exemplars.keys(connection, held_out.ids)
    order = np.array(sorted(range(len(keys.ids)), key=keys.row_keys.__getitem__), dtype=np.int64)
    return ComparisonCalibration(
        keys=[keys.document_keys[row] for row in order],
        label=np.concatenate([split.label for split in splits])[order],
        network_logits=np.concatenate([split.seen.network_logits for split in splits])[order],
        nonconformity=held_out.nonconformity[order],
        vectors=exemplars.vectors(connection, classifier, keys.ids[order]),
        draws=uniform_draws([keys.row_keys[row] for row in order], seed=classifier.seed),
    )


def _view(
    connection: Connection, classifier: Classifier, snapshot: Snapshot, part: calibrations.SnapshotPoints
) -> Approximation:
    """The KNN's view of the points of a part of the snapshot, in their order."""
    wanted = part.exemplar_ids
    ids, approximation = approximations.read_approximations(connection, classifier, wanted, snapshot.parameters.id)
    if len(ids) != len(wanted):
        raise NotReadyError(
            f"{len(wanted) - len(ids):,} points of calibration {snapshot.calibration.id} have other neighbours by now, "
            "and no approximation under its parameters: evaluate with a newer calibration"
        )
    return approximation.take(positions(ids, wanted))
