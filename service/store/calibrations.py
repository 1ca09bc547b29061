"""Calibrators, their numbered snapshots, and the row-versioned points a snapshot consists of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Engine, Row

from service.core.bands import BandRadius
from service.core.types import BoolArray, CalibrationPoints, CalibratorSettings, IntArray, Split
from service.errors import NotFoundError, NotReadyError
from service.store.classifiers import Classifier
from service.store.copy import BOOL, FLOAT8, INT4, INT8, TEXT, Bits, FixedColumn, copy_in, copy_out_whole, driver_cursor
from service.store.engine import connect
from service.store.statements import copy_query, statement, stream


@dataclass(frozen=True, slots=True)
class Calibration:
    """A snapshot: what decisions are pinned to. `number` counts within the calibrator, `id` overall."""

    id: int
    calibrator_id: int
    classifier_id: int
    number: int
    revision: UUID
    knn_parameters_id: int
    settings: CalibratorSettings
    radius: BandRadius
    mc_count: int
    vp_count: int


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotPoints:
    """One split of a snapshot: ids (n,) int64, the points, and whether each ADMIT set is a singleton (n,)."""

    exemplar_ids: IntArray
    points: CalibrationPoints
    singleton: BoolArray


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What a new snapshot wrote: rows closed because they no longer hold, and rows opened."""

    closed: int
    opened: int


@dataclass(frozen=True, slots=True, eq=False)
class BandEvidence:
    """What one point's decision rests on, per class; see the statement `bands.band_evidence`.

    band_size: (C,) int64, n_c. threshold_score: (C,) float64, rank-th smallest score, inf where there is none.
    threshold: (C,) float64, tau_c. category_count: (C,) int64, points of each label in the category.
    """

    band_size: IntArray
    threshold_score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    category_count: IntArray


def settings_digest(settings: CalibratorSettings) -> bytes:
    """BLAKE2b-128 of the settings; equal numbers give equal digests, however they are written."""
    canonical = (
        settings.alpha.normalize(),
        settings.delta,
        settings.kappa,
        settings.bin_edges,
        tuple(threshold.normalize() for threshold in settings.thresholds),
    )
    return blake2b(repr(canonical).encode(), digest_size=16).digest()


def ensure_calibrator(connection: Connection, classifier: Classifier, settings: CalibratorSettings) -> int:
    """The key of the calibrator with these settings, made where it is new."""
    calibrator_id: int = connection.execute(
        statement("calibrations.ensure_calibrator"),
        {
            "classifier_id": classifier.id,
            "settings_digest": settings_digest(settings),
            "alpha": settings.alpha,
            "delta": settings.delta,
            "kappa": settings.kappa,
            "bin_edges": list(settings.bin_edges),
            "thresholds": list(settings.thresholds),
        },
    ).scalar_one()
    return calibrator_id


def lock_calibration(connection: Connection, classifier: Classifier) -> None:
    connection.execute(statement("calibrations.lock_calibration"), {"classifier_id": classifier.id})


def gather_points(
    connection: Connection,
    exemplar_ids: IntArray,
    split: Split,
    points: CalibrationPoints,
    bins: IntArray,
    admit_sets: BoolArray | None,
) -> None:
    """Send the rows of one split of the next snapshot; `create_incoming_points` comes before."""
    n = len(exemplar_ids)
    columns: dict[str, Any] = {
        "exemplar_id": INT8,
        "split": TEXT,
        "label": INT4,
        "predicted": INT4,
        "match_count": INT4,
        "bin": INT4,
        "distance": FLOAT8,
        "score": FLOAT8,
    }
    values: dict[str, Any] = {
        "exemplar_id": exemplar_ids,
        "split": [split.encode()] * n,
        "label": points.label,
        "predicted": points.predicted,
        "match_count": points.match_count,
        "bin": bins,
        "distance": points.distance,
        "score": points.score,
    }
    if admit_sets is not None:
        columns["admit_set"] = Bits(admit_sets.shape[1])
        values["admit_set"] = admit_sets
    copy_in(driver_cursor(connection), "incoming_point", columns, values)


def create_incoming_points(connection: Connection) -> None:
    connection.execute(statement("calibrations.create_incoming_points"))


def publish(
    connection: Connection,
    calibrator_id: int,
    *,
    knn_parameters_id: int,
    radius: BandRadius,
    mc_count: int,
    vp_count: int,
    reason: str,
) -> tuple[int, ChangedRows]:
    """Make the gathered rows the current snapshot, writing only those that changed; the new key and the counts."""
    number = (
        connection.execute(statement("calibrations.latest_number"), {"calibrator_id": calibrator_id}).scalar_one() + 1
    )
    of_number = {"calibrator_id": calibrator_id, "number": number}
    connection.execute(statement("calibrations.analyze_incoming_points"))
    closed = connection.execute(statement("calibrations.close_changed_points"), of_number).rowcount
    opened = connection.execute(statement("calibrations.open_changed_points"), of_number).rowcount
    connection.execute(statement("calibrations.retire_calibration"), {"calibrator_id": calibrator_id})
    calibration_id: int = connection.execute(
        statement("calibrations.add_calibration"),
        {
            **of_number,
            "knn_parameters_id": knn_parameters_id,
            "s_hat": radius.s_hat,
            "omega": radius.omega,
            "mc_count": mc_count,
            "vp_count": vp_count,
            "reason": reason,
        },
    ).scalar_one()
    return calibration_id, ChangedRows(closed=closed, opened=opened)


def vacuum_points(engine: Engine) -> None:
    """Let band queries read the index alone from now on, rather than once autovacuum has come by."""
    with connect(engine) as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(statement("calibrations.vacuum_points"))


def _calibration(row: Row[Any]) -> Calibration:
    return Calibration(
        id=row.id,
        calibrator_id=row.calibrator_id,
        classifier_id=row.classifier_id,
        number=row.number,
        revision=row.revision,
        knn_parameters_id=row.knn_parameters_id,
        settings=CalibratorSettings(
            alpha=Decimal(row.alpha),
            delta=row.delta,
            kappa=row.kappa,
            bin_edges=tuple(row.bin_edges),
            thresholds=tuple(row.thresholds),
        ),
        radius=BandRadius(s_hat=row.s_hat, omega=row.omega),
        mc_count=row.mc_count,
        vp_count=row.vp_count,
    )


def latest(connection: Connection, classifier: Classifier) -> Calibration:
    """The current snapshot of the calibrator that was calibrated last; NotReadyError before the first."""
    row = connection.execute(
        statement("calibrations.latest_calibration"), {"classifier_id": classifier.id}
    ).one_or_none()
    if row is None:
        raise NotReadyError(
            f"classifier {classifier.name!r} has no calibration yet: run `venn-admit calibrate {classifier.name}`"
        )
    return _calibration(row)


def by_id(connection: Connection, classifier: Classifier, calibration_id: int) -> Calibration:
    """One snapshot of a classifier; NotFoundError where it has none of that number."""
    row = connection.execute(
        statement("calibrations.calibration_by_id"), {"calibration_id": calibration_id}
    ).one_or_none()
    if row is None or row.classifier_id != classifier.id:
        raise NotFoundError(f"classifier {classifier.name!r} has no calibration {calibration_id}")
    return _calibration(row)


def read_points(connection: Connection, calibration: Calibration, split: Split) -> SnapshotPoints:
    """One split of a snapshot as it was when it was made, ordered by band."""
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "label": INT4,
        "predicted": INT4,
        "match_count": INT4,
        "distance": FLOAT8,
        "score": FLOAT8,
        "is_singleton": BOOL,
    }
    parameters = {"calibrator_id": calibration.calibrator_id, "split": split, "number": calibration.number}
    query = copy_query("calibrations.snapshot_points")
    rows = copy_out_whole(driver_cursor(connection), query, parameters, columns)
    return SnapshotPoints(
        exemplar_ids=rows["exemplar_id"],
        points=CalibrationPoints(
            label=rows["label"].astype(np.int64),
            predicted=rows["predicted"].astype(np.int64),
            match_count=rows["match_count"].astype(np.int64),
            distance=rows["distance"],
            score=rows["score"],
        ),
        singleton=rows["is_singleton"],
    )


def band_evidence(
    connection: Connection,
    calibration: Calibration,
    class_count: int,
    *,
    predicted: int,
    q_bin: int,
    distance: float,
) -> BandEvidence:
    """The evidence of one point from the current snapshot, by one index-only statement."""
    rows = connection.execute(
        statement("bands.band_evidence"),
        {
            "calibrator_id": calibration.calibrator_id,
            "class_count": class_count,
            "alpha": calibration.settings.alpha,
            "omega": calibration.radius.omega,
            "predicted": predicted,
            "bin": q_bin,
            "distance": distance,
        },
    ).all()
    return BandEvidence(
        band_size=np.array([row.band_size for row in rows], dtype=np.int64),
        threshold_score=np.array(
            [np.inf if row.threshold_score is None else row.threshold_score for row in rows], dtype=np.float64
        ),
        threshold=np.array([row.threshold for row in rows], dtype=np.float64),
        category_count=np.array([row.category_count for row in rows], dtype=np.int64),
    )


def latest_or_by_id(connection: Connection, classifier: Classifier, calibration_id: int | None) -> Calibration:
    """The snapshot asked for, or the current one where none is."""
    return latest(connection, classifier) if calibration_id is None else by_id(connection, classifier, calibration_id)


def export_rows(connection: Connection, calibration: Calibration) -> Iterator[Sequence[Row[Any]]]:
    """The points of a snapshot with their external ids, in order of ingestion, streamed in blocks."""
    return stream(
        connection,
        "calibrations.export_calibration",
        {"calibrator_id": calibration.calibrator_id, "number": calibration.number},
    )
