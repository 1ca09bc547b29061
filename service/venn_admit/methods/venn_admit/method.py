"""Venn-ADMIT as a method of calibration."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings
from venn_admit.core.calibrators.venn_admit.decide import Localizer, decide_one
from venn_admit.core.monitoring.what_if import SnapshotEffects
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation
from venn_admit.methods.describing import Judged, PointsToJudge, points_of_split
from venn_admit.methods.method import DecideEach, Explained, Made, NotKeptError, PointsToDecide, Snapshot
from venn_admit.methods.recent import Recent
from venn_admit.methods.shared_passes import MOST_SUPPORTS, SharedWeights
from venn_admit.methods.venn_admit.decided import decided_by_admit
from venn_admit.methods.venn_admit.describe import compare, describe, judge
from venn_admit.methods.venn_admit.make import MadeByAdmit, make
from venn_admit.methods.venn_admit.snapshot import AdmitSnapshot, indexed, load_snapshot
from venn_admit.methods.venn_admit.undivided import UndividedSnapshot
from venn_admit.store.calibrations import bands
from venn_admit.store.calibrations.bands import BandEvidence
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors
from venn_admit.store.workspace import Workspace

# How many points of a snapshot are decided by SQL before all of it is read.
POINTS_BY_SQL = 50

_Key = tuple[int, UUID]


class _Use:
    """How much a snapshot was used so far; threads may share it."""

    def __init__(self) -> None:
        self._points = 0
        self._counting = Lock()

    def reaches(self, points: int) -> bool:
        """Count points, and return whether it is these that make it worth reading the snapshot: of one request only."""
        with self._counting:
            before, self._points = self._points, self._points + points
            return before <= POINTS_BY_SQL < self._points

    def start_again(self) -> None:
        """Count from nothing, because the snapshot could not be read."""
        with self._counting:
            self._points = 0


class AdmitPointDecider:
    """Decides on some points at a time, as a job does, in every bit: from bands that SQL counts, or from the snapshot.

    To read a snapshot takes as long as to count some dozens of bands, so a process reads it after a number of them, or
    as soon as a point is weighted: weights need all of vp. So do sets that the point joins, without a division. The
    indexes of the snapshots used last are kept, and what
    weighs categories.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._uses: Recent[_Key, _Use] = Recent()
        self._snapshots: Recent[_Key, AdmitSnapshot | UndividedSnapshot] = Recent()
        self._weights: Recent[_Key, SharedWeights] = Recent(most=MOST_SUPPORTS)

    def look_up(
        self, connection: Connection | None, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> DecideEach:
        """Read the evidence of the bands, unless the snapshot itself is known; see the protocol `PointDecider`."""
        key = (calibration.id, calibration.revision)
        use, is_known = self._uses.get(key, _Use), self._snapshots.known(key) is not None
        if connection is None and not is_known:
            raise NotKeptError
        by_snapshot = calibration.settings.undivided or points.vectors is not None or is_known
        by_snapshot = by_snapshot or use.reaches(len(points.view.predicted))
        if by_snapshot or connection is None:
            return partial(self._decide_by_snapshot, classifier, calibration, points, use)
        views = [points.view.take(np.array([row])) for row in range(len(points.view.predicted))]
        evidence = [_evidence(connection, classifier, calibration, view) for view in views]
        return partial(_decide_by_bands, classifier, calibration, views, evidence)

    def _decide_by_snapshot(
        self,
        classifier: Classifier,
        calibration: Calibration,
        points: PointsToDecide,
        use: _Use,
        *,
        require_full_match: bool,
    ) -> Sequence[Explained]:
        key = (calibration.id, calibration.revision)
        try:
            snapshot = self._snapshots.get(
                key, lambda: load_snapshot(self._workspace, classifier, calibration.id, weighted=False)
            )
        except BaseException:
            use.start_again()
            raise
        if isinstance(snapshot, UndividedSnapshot):
            return snapshot.explain_each(points, require_full_match=require_full_match)
        localizer = None
        if points.vectors is not None:
            shared = self._weights.get(key, lambda: SharedWeights(self._support(classifier, snapshot)))
            localizer = Localizer(points.vectors, shared.category_weight)
        decided = snapshot.decide_with(localizer, points, require_full_match=require_full_match)
        return snapshot.explained(decided)

    def _support(self, classifier: Classifier, snapshot: AdmitSnapshot) -> LocalizerSupport:
        ids = snapshot.vp.exemplar_ids[snapshot.venn.order]
        return LocalizerSupport(
            self._workspace.cache.localizer_vectors(self._workspace.engine, classifier, snapshot.calibration, ids),
            snapshot.parameters.eta_loc,
            keep_tiles=True,
            memory_budget=self._workspace.memory_budget,
        )


def _decide_by_bands(
    classifier: Classifier,
    calibration: Calibration,
    views: Sequence[Approximation],
    evidence: Sequence[BandEvidence],
    *,
    require_full_match: bool,
) -> Sequence[Explained]:
    found = []
    for view, band in zip(views, evidence, strict=True):
        decided = decide_one(
            view,
            calibration.settings,
            band_size=band.band_size,
            threshold_score=band.threshold_score,
            category_count=band.category_count,
            neighbour_count=classifier.neighbour_count,
            require_full_match=require_full_match,
        )
        counts = band.category_count * int(decided.sets.singleton[0])
        (fields,) = decided_by_admit(view, decided).fields_of_each()
        found.append(Explained(fields, counts))
    return found


def _evidence(
    connection: Connection, classifier: Classifier, calibration: Calibration, approximation: Approximation
) -> BandEvidence:
    return bands.band_evidence(
        connection,
        calibration,
        classifier.class_count,
        predicted=int(approximation.predicted[0]),
        q_bin=int(bin_of(approximation.match_count, calibration.settings.q_bins)[0]),
        distance=float(approximation.distance[0]),
    )


class VennAdmit:
    """The method `venn-admit`; see the protocol `Method` for what it does."""

    weighted_by_default = True
    load = staticmethod(load_snapshot)
    point_decider = AdmitPointDecider
    describe = staticmethod(describe)

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters | None,
        settings: MethodSettings,
        *,
        memory_budget: int,
        instead: Replacements | None = None,
    ) -> MadeByAdmit:
        require_vectors(classifier, "the method venn-admit")
        assert isinstance(settings, CalibratorSettings)
        assert parameters is not None, "a classifier with vectors is calibrated with its parameters"
        return make(connection, classifier, parameters, settings, memory_budget=memory_budget, instead=instead)

    def compare(
        self,
        connection: Connection,
        classifier: Classifier,
        calibration: Calibration,
        made: Made,
        instead: Replacements,
        *,
        memory_budget: int,
    ) -> SnapshotEffects:
        assert isinstance(made, MadeByAdmit)
        return compare(connection, classifier, calibration, made, instead, memory_budget)

    def ready(
        self,
        workspace: Workspace,
        classifier: Classifier,
        calibration: Calibration,
        parameters: StoredParameters,
        made: Made,
        *,
        weighted: bool,
    ) -> AdmitSnapshot | UndividedSnapshot:
        assert isinstance(made, MadeByAdmit)
        mc, vp = (points_of_split(made.rows, split) for split in (Split.MC, Split.VP))
        followed = replace(calibration, band_radius=made.radius)
        return indexed(workspace, classifier, followed, parameters, mc, vp, weighted=weighted)

    def judge(self, snapshot: Snapshot, points: PointsToJudge) -> Judged:
        assert isinstance(snapshot, AdmitSnapshot | UndividedSnapshot)
        return judge(snapshot, points)
