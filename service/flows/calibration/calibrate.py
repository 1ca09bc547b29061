"""A new snapshot of a calibrator from the current labels and approximations (sections 3 to 5)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.service.core.approximation.knn import nonconformity
from venn_admit.service.core.calibrators.bands import BandRadius, band_radius, bin_of
from venn_admit.service.core.calibrators.snapshot_rows import CalibrationRows, join_points, join_rows, rows_of_split
from venn_admit.service.core.calibrators.venn_admit.sets import AdmitIndex, smallest_class_count
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.core.types import HELD_OUT_SPLITS, CalibrationPoints, CalibratorSettings, IntArray, Split
from venn_admit.service.errors import Code, NotReadyError, OutdatedError
from venn_admit.service.flows.calibration.approximate import points_to_approximate, require_support
from venn_admit.service.flows.jobs.submit import Send, Submission, submit_job
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.calibrations.calibration_points import ChangedRows, vacuum_points
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.exemplars import approximations, classifiers, exemplars
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.work import recalibrations

SettingsOf = Callable[[Classifier], CalibratorSettings]


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A new snapshot.

    usable_count: points of vp whose band holds at least kappa points of every class. largest_kappa: the
    largest that leaves any, 0 if every band of vp lacks at least one class. left_out: points of mc and vp that wait for
    the next snapshot, because they arrived while approximations were computed.
    """

    calibrator_id: int
    calibration_id: int
    settings: CalibratorSettings
    radius: BandRadius
    mc_count: int
    vp_count: int
    singleton_count: int
    usable_count: int
    largest_kappa: int
    changed: ChangedRows
    left_out: int


def request_approximations(
    engine: Engine, name: str, settings_of: SettingsOf, *, chunk_rows: int, send: Send | None = None
) -> int:
    """Submit the job that brings mc and vp up to date under the current parameters, and return its key.

    send: as for `submit_job`. Raises as `calibrate` does for settings, and NotReadyError before the first fit.
    """
    with submit_job(engine, send) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        settings_of(classifier)
        lacking, parameters = lacking_points(connection, classifier)
        return add_approximation_job(submission, classifier, lacking, parameters, chunk_rows=chunk_rows)


def lacking_points(connection: Connection, classifier: Classifier) -> tuple[IntArray, StoredParameters]:
    """Return the held-out points without an up-to-date approximation, and the parameters to approximate them with.

    Raises NotReadyError before the first fit, and if mc or vp hold too little to calibrate with.
    """
    parameters = require_parameters(connection, classifier)
    require_support(connection, classifier)
    _require_classes(connection, classifier)
    return points_to_approximate(connection, classifier, list(HELD_OUT_SPLITS), parameters), parameters


def add_approximation_job(
    submission: Submission,
    classifier: Classifier,
    exemplar_ids: IntArray,
    parameters: StoredParameters,
    *,
    chunk_rows: int,
) -> int:
    """Record the job that approximates these points, and return its key."""
    return submission.add_job(
        classifier,
        kind="approximate",
        exemplar_ids=exemplar_ids,
        chunk_rows=chunk_rows,
        knn_parameters_id=parameters.id,
        completes_neighbours=True,
    )


def calibrate(
    engine: Engine,
    name: str,
    settings_of: SettingsOf,
    *,
    reason: str,
    keep: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Calibrated:
    """Compute a snapshot from one view of the data, make it current, and put its setting in use.

    Readers use the previous snapshot until then.

    Args:
        engine: The database.
        name: The classifier.
        settings_of: Returns the settings for the classifier, or raises InvalidInputError.
        reason: Why the snapshot is made; it is stored.
        keep: How many snapshots of the setting to keep, beside those that decisions or jobs refer to; None: all.
        memory_budget: Bytes that temporary arrays may take.

    Raises:
        NotReadyError: Data or approximations are missing; nothing is stored.
    """
    with transaction(engine) as guard:
        classifier = classifiers.by_name(guard, name)
        settings = settings_of(classifier)
        calibrations.lock_calibrator(guard, classifier, settings)
        calibrated = take_snapshot(guard, classifier, settings, reason=reason, keep=keep, memory_budget=memory_budget)
    vacuum_changed(engine, calibrated)
    return calibrated


def take_snapshot(
    guard: Connection,
    classifier: Classifier,
    settings: CalibratorSettings,
    *,
    reason: str,
    keep: int | None,
    calibrator_id: int | None = None,
    leave_out: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Calibrated:
    """Make a snapshot, mark the request that it serves as served, and delete older ones that need not be kept.

    guard: a transaction that holds the calibrator's lock. calibrator_id: None to put the setting in use, and to add
    it if it is new. leave_out: whether points without an approximation wait for the next snapshot; otherwise they raise
    OutdatedError, as changed training data always do. Raises NotReadyError if data are missing.
    """
    # Read before the data, so that a request that arrives in between does not count as served.
    requested_at = recalibrations.requested_at(guard, classifier, settings)
    # A second transaction, because its view of the data must not be older than the lock.
    with connect(guard.engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            classifier = classifiers.by_id(connection, classifier.id)
            calibrated = _calibrate(
                connection,
                classifier,
                settings,
                calibrator_id,
                reason,
                leave_out=leave_out,
                memory_budget=memory_budget,
            )
    # Each statement of the first transaction sees all that is committed, later requests and decisions included.
    if requested_at is not None:
        recalibrations.serve(guard, calibrated.calibrator_id, requested_at, whole=not calibrated.left_out)
    if keep is not None:
        calibrations.delete_old(guard, calibrated.calibrator_id, keep)
    return calibrated


def vacuum_changed(engine: Engine, calibrated: Calibrated) -> None:
    """Make the rows of a snapshot quick to read, once the transactions that wrote it and guarded it are over.

    While one of them is open, the new rows cannot be marked as visible to all.
    """
    if calibrated.changed.opened or calibrated.changed.closed:
        vacuum_points(engine)


def _calibrate(
    connection: Connection,
    classifier: Classifier,
    settings: CalibratorSettings,
    calibrator_id: int | None,
    reason: str,
    *,
    leave_out: bool,
    memory_budget: int,
) -> Calibrated:
    parameters = require_parameters(connection, classifier)
    require_support(connection, classifier)
    left_out = approximations.without_approximation(connection, classifier, [Split.MC, Split.VP], parameters.id)
    outdated = approximations.outdated_neighbours(connection, classifier)
    if len(outdated) or (len(left_out) and not leave_out):
        raise OutdatedError(
            f"{len(left_out) + len(outdated)} points of {classifier.name!r} arrived or changed during the calibration "
            "and have no approximation yet: run it again",
            code=Code.CHANGED_DURING_CALIBRATION,
            classifier=classifier.name,
        )
    _require_classes(connection, classifier)
    mc_ids, mc = read_points(connection, classifier, Split.MC, parameters, memory_budget)
    radius = require_radius(mc, settings)
    admit = AdmitIndex(mc, class_count=classifier.class_count, settings=settings, omega=radius.omega)

    vp = _admit_sets_of_vp(connection, classifier, parameters, settings, admit, memory_budget)

    mc_bins = bin_of(mc.match_count, settings.bin_edges)
    mc_rows = rows_of_split(mc_ids, mc, mc_bins, None, class_count=classifier.class_count)
    if calibrator_id is None:
        calibrator_id = calibrations.choose_calibrator(connection, classifier, settings)
    calibration_id, changed = calibrations.publish(
        connection,
        calibrator_id,
        join_rows([mc_rows, *(block.rows for block in vp)]),
        knn_parameters_id=parameters.id,
        radius=radius,
        reason=reason,
    )
    smallest = np.concatenate([block.smallest_class_count for block in vp])
    return Calibrated(
        calibrator_id,
        calibration_id,
        settings,
        radius,
        mc_count=len(mc_ids),
        vp_count=len(smallest),
        singleton_count=sum(block.singleton_count for block in vp),
        usable_count=int((smallest >= settings.kappa).sum()),
        largest_kappa=int(smallest.max()),
        changed=changed,
        left_out=len(left_out),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _SetBlock:
    """A block of vp with its ADMIT sets, without the logits, which are large."""

    rows: CalibrationRows
    smallest_class_count: IntArray
    singleton_count: int


def _admit_sets_of_vp(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: CalibratorSettings,
    admit: AdmitIndex,
    memory_budget: int,
) -> list[_SetBlock]:
    found = []
    for block in approximations.split_blocks(connection, classifier, Split.VP, parameters.id, memory_budget):
        approximation = block.approximation
        sets = admit.sets(
            approximation.logits,
            approximation.predicted,
            approximation.match_count,
            approximation.distance,
            memory_budget=memory_budget,
        )
        bins = bin_of(approximation.match_count, settings.bin_edges)
        found.append(
            _SetBlock(
                rows=rows_of_split(
                    block.exemplar_ids, _points(block), bins, sets.included, class_count=classifier.class_count
                ),
                smallest_class_count=smallest_class_count(sets.band_size),
                singleton_count=int(sets.singleton.sum()),
            )
        )
    return found


def require_parameters(connection: Connection, classifier: Classifier) -> StoredParameters:
    parameters = approximations.current_parameters(connection, classifier)
    if parameters is None:
        raise NotReadyError(
            f"classifier {classifier.name!r} has no KNN parameters yet: fit it first",
            code=Code.NOT_FITTED,
            classifier=classifier.name,
        )
    return parameters


def require_radius(mc: CalibrationPoints, settings: CalibratorSettings) -> BandRadius:
    """Return the radius of the bands; NotReadyError if there is none, or if it is 0."""
    radius = band_radius(mc, settings.delta)
    if radius.omega == 0:
        raise NotReadyError(
            "s_hat is 0: all points of mc that have q > 0 and are predicted correctly lie at the same distance to "
            "training, so a band would hold equal distances only; check whether the vectors are the right ones, or "
            "calibrate by q alone, with an infinite delta",
            code=Code.EQUAL_DISTANCES,
        )
    return radius


def _require_classes(connection: Connection, classifier: Classifier) -> None:
    for split in (Split.MC, Split.VP):
        classes = exemplars.split_classes(connection, classifier, split)
        if len(classes) < 2:
            held = f"only class {classes[0]}" if classes else "no labelled exemplar"
            raise NotReadyError(
                f"split {split} of {classifier.name!r} holds {held}: expected at least two classes; "
                "ingest more held-out data",
                code=Code.TOO_FEW_CLASSES,
                classifier=classifier.name,
            )


def _points(block: approximations.LabelledApproximations) -> CalibrationPoints:
    approximation = block.approximation
    return CalibrationPoints(
        label=block.labels,
        predicted=approximation.predicted,
        match_count=approximation.match_count,
        distance=approximation.distance,
        score=nonconformity(approximation.logits, block.labels),
    )


def read_points(
    connection: Connection, classifier: Classifier, split: Split, parameters: StoredParameters, memory_budget: int
) -> tuple[IntArray, CalibrationPoints]:
    """Return ids and points of a split, in order of ingestion, without their logits."""
    ids, points = [], []
    for block in approximations.split_blocks(connection, classifier, split, parameters.id, memory_budget):
        ids.append(block.exemplar_ids)
        points.append(_points(block))
    return np.concatenate(ids), join_points(points)
