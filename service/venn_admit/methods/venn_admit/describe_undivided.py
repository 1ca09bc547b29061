"""How a snapshot without a division judges held-out data, and how it differs from another."""

from collections import Counter
from dataclasses import replace

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.localizer import localizer_logits
from venn_admit.core.calibrators.bands import BandRadius
from venn_admit.core.calibrators.venn_admit.sets import smallest_class_count
from venn_admit.core.comparison.band_rival import admit_rival
from venn_admit.core.evaluation.points import KNN, UNDIVIDED_ADMIT, OwnMethod
from venn_admit.core.monitoring.what_if import SnapshotCount, SnapshotEffects, SnapshotFact
from venn_admit.core.split_names import Split
from venn_admit.core.types import AdmitSets, IntArray, SelectiveMethod
from venn_admit.methods.describing import Judged, PointsToJudge, points_of_split
from venn_admit.methods.venn_admit.make import MadeByAdmit
from venn_admit.methods.venn_admit.undivided import UndividedSnapshot, index_of
from venn_admit.report.evaluation.evaluated import settings_of_bands
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.store.exemplars.classifiers import Classifier


def judge_undivided(snapshot: UndividedSnapshot, points: PointsToJudge) -> Judged:
    """Return what the snapshot makes of the points, and beside it what mc and vp make of them as they are divided."""
    settings, rows, vp = snapshot.calibration.settings, points.rows, points.held_out.vp
    assert rows.approximation is not None, "the method decides by the KNN"
    memory_budget, eta_loc = snapshot.workspace.memory_budget, snapshot.parameters.eta_loc
    divided, words = admit_rival(
        points.held_out,
        points.vp_vectors,
        rows.approximation,
        points.own_vectors,
        replace(settings, undivided=False),
        neighbour_count=snapshot.neighbour_count,
        eta_loc=eta_loc,
        memory_budget=memory_budget,
    )
    localized = localizer_logits(
        points.own_vectors,
        points.vp_vectors(np.arange(len(vp.label))),
        vp.seen.knn.logits,
        eta_loc,
        memory_budget=memory_budget,
    )
    return Judged(
        own=OwnMethod(
            name=UNDIVIDED_ADMIT,
            baseline=KNN,
            predicted=rows.predicted,
            confidence=rows.lower,
            bounds={"plain": (rows.lower, rows.upper)},
            has_bands=True,
        ),
        settings=settings_of_bands(settings, snapshot.neighbour_count),
        admit=divided,
        localizer_predicted=localized.argmax(axis=1),
        selective=(SelectiveMethod(UNDIVIDED_ADMIT, rows.predicted, rows.admitted, None),),
        parameters=(("Venn-ADMIT, divided", words),),
    )


def compare_undivided(
    connection: Connection, classifier: Classifier, calibration: Calibration, made: MadeByAdmit, memory_budget: int
) -> SnapshotEffects:
    """Return how sets of the points of both snapshots differ, each made from the others; see the protocol `Method`."""
    before = calibrations.read_points(connection, calibration, Split.VP)
    after = points_of_split(made.rows, Split.VP)
    settings, found = calibration.settings, Counter[str]()

    def sets(points: SnapshotPoints, radius: BandRadius) -> AdmitSets:
        index = index_of(points, classifier, settings, radius.omega, memory_budget)
        return index.own_sets(memory_budget=memory_budget)

    was, would_be = sets(before, calibration.radius), sets(after, made.radius)
    count_sets(found, was, settings.kappa)
    _, of_before, of_after = np.intersect1d(
        before.exemplar_ids, after.exemplar_ids, assume_unique=True, return_indices=True
    )
    count_differences(found, _taken(was, of_before), _taken(would_be, of_after))
    return effects(calibration.radius, made, found)


def _taken(sets: AdmitSets, rows: IntArray) -> AdmitSets:
    return AdmitSets(**{name: getattr(sets, name)[rows] for name in AdmitSets.__slots__})


def count_sets(found: Counter[str], sets: AdmitSets, kappa: int) -> None:
    """Count what sets of the snapshot before come to."""
    found["points"] += len(sets.singleton)
    found["usable"] += int((smallest_class_count(sets.band_size) >= kappa).sum())
    found["singletons"] += int(sets.singleton.sum())


def count_differences(found: Counter[str], was: AdmitSets, would_be: AdmitSets) -> None:
    """Count the points whose bands, thresholds and sets differ."""
    for name in ("band_size", "threshold", "included"):
        found[name] += int((getattr(was, name) != getattr(would_be, name)).any(axis=1).sum())


def effects(radius: BandRadius, made: MadeByAdmit, found: Counter[str]) -> SnapshotEffects:
    """Return the differences in words and counts.

    radius: of the snapshot before.
    """
    return SnapshotEffects(
        facts=(
            SnapshotFact("s_hat", radius.s_hat, made.radius.s_hat),
            SnapshotFact("omega", radius.omega, made.radius.omega),
            SnapshotFact("usable", found["usable"], made.usable_count),
            SnapshotFact("singletons", found["singletons"], made.singleton_count),
        ),
        counts=(
            SnapshotCount("bands", found["band_size"], found["points"]),
            SnapshotCount("thresholds", found["threshold"], found["points"]),
            SnapshotCount("sets", found["included"], found["points"]),
        ),
    )
