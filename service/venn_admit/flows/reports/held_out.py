"""The held-out data of a snapshot, as the methods that are compared with it see it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.knn import network_prediction, nonconformity
from venn_admit.core.approximation.localizer import localizer_logits
from venn_admit.core.calibrators.venn_abers.crossfit import fold_of
from venn_admit.core.comparison.adaptive import uniform_draws
from venn_admit.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints
from venn_admit.core.comparison.methods import ComparisonCalibration
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.calibration_data import crossfitted_localizer
from venn_admit.core.evaluation.points import PredictedPoints
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, Float32Array, FloatArray, IntArray, join_approximations
from venn_admit.errors import NotReadyError
from venn_admit.methods.method import Snapshot
from venn_admit.store.calibrations import calibrations
from venn_admit.store.exemplars import approximations, exemplars
from venn_admit.store.exemplars.approximations import positions
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class ReadHeldOut:
    """Held-out data: of knn, mc and vp, one after the other, ids (n,) int64 and 1 - pi^y (n,) float64; and by split.

    nonconformity: None if the classifier has logits only. vp: (n_vp,) int64, the rows of vp among them.
    """

    ids: IntArray
    nonconformity: FloatArray | None
    vp: IntArray
    splits: HeldOut


_Part = tuple[IntArray, IntArray, Approximation | None]
"""Ids, labels, and the KNN's view; None if the classifier has logits only."""


def read_held_out(
    workspace: Workspace, connection: Connection, classifier: Classifier, snapshot: Snapshot, *, besides: IntArray
) -> ReadHeldOut:
    """Return the snapshot's mc and vp, and knn as it is now.

    If the snapshot was made without vp, vp is taken as it is now, without some points.

    besides: (n,) int64, the ids of these points.
    """
    calibration = snapshot.calibration
    mc = _of_snapshot(connection, classifier, snapshot, Split.MC)

    def now(split: Split) -> _Part:
        return _as_it_is(connection, classifier, snapshot, split, besides, mc[-1], workspace.memory_budget)

    vp = _of_snapshot(connection, classifier, snapshot, Split.VP) if calibration.vp_count else now(Split.VP)
    parts = (now(Split.KNN), mc, vp)

    def points(ids: IntArray, label: IntArray, view: Approximation | None) -> HeldOutPoints:
        logits = exemplars.network_logits(connection, classifier, ids)
        return HeldOutPoints(exemplars.keys(connection, ids).document_keys, label, ViewedPoints(logits, view))

    ids = np.concatenate([ids for ids, *_ in parts])
    scores = [nonconformity(view.logits, label) for _, label, view in parts if view is not None]
    return ReadHeldOut(
        ids=ids,
        nonconformity=np.concatenate(scores) if scores else None,
        vp=np.arange(len(ids) - len(vp[0]), len(ids)),
        splits=HeldOut(*(points(*part) for part in parts)),
    )


def comparison_calibration(
    workspace: Workspace, connection: Connection, classifier: Classifier, held_out: ReadHeldOut
) -> tuple[ComparisonCalibration, IntArray]:
    """Return all held-out labelled points, in the order of their external ids, because sums round by it.

    Also return the row among them of each point that was read, (n,) int64.
    """
    splits = (held_out.splits.knn, held_out.splits.mc, held_out.splits.vp)
    keys = exemplars.keys(connection, held_out.ids)
    order = np.array(sorted(range(len(keys.ids)), key=keys.row_keys.__getitem__), dtype=np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    calibration = ComparisonCalibration(
        keys=[keys.document_keys[row] for row in order],
        label=np.concatenate([split.label for split in splits])[order],
        network_logits=np.concatenate([split.seen.network_logits for split in splits])[order],
        nonconformity=None if held_out.nonconformity is None else held_out.nonconformity[order],
        vectors=None
        if classifier.knn is None
        else workspace.cache.mapped_vectors(connection, classifier, keys.ids[order]),
        draws=uniform_draws([keys.row_keys[row] for row in order], seed=classifier.seed),
    )
    return calibration, place


def predicted_calibration_data(
    classifier: Classifier,
    held_out: ReadHeldOut,
    vectors: Callable[[IntArray], Float32Array],
    eta_loc: float | None,
    *,
    memory_budget: int,
) -> PredictedPoints:
    """Return the points of mc and vp with what the network, the KNN and the localizer predict for them.

    vectors: returns the vectors (m, D) of some of all points that were read, by their numbers. eta_loc: None leaves out
    the localizer. It has no support for points of vp if all of them are in one fold, and is then left out too.
    """
    mc, vp = held_out.splits.mc, held_out.splits.vp
    keys = [*mc.keys, *vp.keys]
    views = None if mc.seen.view is None else [mc.seen.knn, vp.seen.knn]
    localized = None
    if eta_loc is not None and len(vp.keys):
        mc_rows = np.arange(held_out.vp[0] - len(mc.keys), held_out.vp[0])
        of_vp = crossfitted_localizer(
            lambda rows: vectors(held_out.vp[rows]),
            vp.seen.knn.logits,
            fold_of(vp.keys, seed=classifier.seed),
            eta_loc,
            memory_budget=memory_budget,
        )
        if of_vp is not None:
            of_mc = localizer_logits(
                vectors(mc_rows), vectors(held_out.vp), vp.seen.knn.logits, eta_loc, memory_budget=memory_budget
            )
            localized = np.concatenate([of_mc, of_vp]).argmax(axis=1)
    return PredictedPoints(
        label=np.concatenate([mc.label, vp.label]),
        class_count=classifier.class_count,
        network_predicted=network_prediction(np.concatenate([mc.seen.network_logits, vp.seen.network_logits])),
        view=None if views is None else join_approximations(views),
        localizer_predicted=localized,
        documents=documents_of(keys),
    )


def _as_it_is(
    connection: Connection,
    classifier: Classifier,
    snapshot: Snapshot,
    split: Split,
    besides: IntArray,
    shaped: Approximation | None,
    memory_budget: int,
) -> _Part:
    """A split as it is now, without some points; shaped: any view, for the number of classes."""
    if shaped is None:
        found = exemplars.split_logits(connection, classifier, split)
        kept = np.flatnonzero(~np.isin(found.ids, besides))
        return found.ids[kept], found.labels[kept], None
    none = np.empty(0, dtype=np.int64)
    blocks = list(approximations.split_blocks(connection, classifier, split, snapshot.parameters.id, memory_budget))
    ids = np.concatenate([none, *(block.exemplar_ids for block in blocks)])
    label = np.concatenate([none, *(block.labels for block in blocks)])
    view = join_approximations([shaped.take(none), *(block.approximation for block in blocks)])
    kept = np.flatnonzero(~np.isin(ids, besides))
    return ids[kept], label[kept], view.take(kept)


def _of_snapshot(connection: Connection, classifier: Classifier, snapshot: Snapshot, split: Split) -> _Part:
    """A split as the snapshot has it; without a division, those of its points that are in the split by now."""
    undivided = snapshot.calibration.method_settings.undivided
    part = calibrations.read_points(connection, snapshot.calibration, Split.VP if undivided else split)
    wanted, label = part.exemplar_ids, part.points.label
    if undivided:
        chosen = np.isin(wanted, exemplars.in_split(connection, wanted, split))
        wanted, label = wanted[chosen], label[chosen]
    if classifier.knn is None:
        return wanted, label, None
    ids, approximation = approximations.read_approximations(connection, classifier, wanted, snapshot.parameters.id)
    if len(ids) != len(wanted):
        raise NotReadyError(
            f"{len(wanted) - len(ids):,} points of calibration {snapshot.calibration.id} have other neighbours by now, "
            "and no approximation under its parameters: evaluate with a newer calibration"
        )
    return wanted, label, approximation.take(positions(ids, wanted))
