"""Calibrators, their numbered snapshots, and the row-versioned points that a snapshot consists of."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Engine, Row

from venn_admit.core.calibrators.bands import BandRadius, distance_quartiles
from venn_admit.core.calibrators.certification import ClassKind, Kind, attributes_of
from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings, VennAbersSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, CalibrationPoints, FloatArray, IntArray
from venn_admit.errors import Code, NotFoundError, NotReadyError, OutdatedError
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.calibration_points import (
    POINT,
    ChangedRows,
    delete_unheld,
    logits_column,
    points_of,
    rows_of,
    write_changes,
)
from venn_admit.store.calibrations.settings_rows import settings_of
from venn_admit.store.database.binary_copy import BOOL, INT8, read_columns
from venn_admit.store.database.prepared import ask
from venn_admit.store.database.statements import execute, stream
from venn_admit.store.exemplars import forgotten
from venn_admit.store.exemplars.classifiers import Classifier, addressed
from venn_admit.store.exemplars.exemplars import DescribedExemplar
from venn_admit.store.exemplars.generations import having

DELETED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Calibration:
    """A snapshot, to which decisions are pinned. `number` counts within the calibrator, `id` overall.

    knn_parameters_id: None if the classifier has logits only. band_radius: None if the method has no bands.
    """

    id: int
    calibrator_id: int
    classifier_id: int
    number: int
    revision: UUID
    knn_parameters_id: int | None
    method_settings: MethodSettings
    band_radius: BandRadius | None
    mc_count: int
    vp_count: int

    @property
    def method(self) -> str:
        """The method by which it was made."""
        return self.method_settings.method

    @property
    def parameters_id(self) -> int:
        """Key of its KNN parameters, if the classifier has vectors."""
        assert self.knn_parameters_id is not None, f"calibration {self.id} is of a classifier with logits only"
        return self.knn_parameters_id

    @property
    def settings(self) -> CalibratorSettings:
        """Those of Venn-ADMIT, if this is the method."""
        assert isinstance(self.method_settings, CalibratorSettings), f"calibration {self.id} is by {self.method}"
        return self.method_settings

    @property
    def abers_settings(self) -> VennAbersSettings:
        """Those of Venn-Abers, if this is the method."""
        assert isinstance(self.method_settings, VennAbersSettings), f"calibration {self.id} is by {self.method}"
        return self.method_settings

    @property
    def is_asked_for_certificate(self) -> bool:
        """Whether it has a certificate, in which a policy passed or none did."""
        settings = self.method_settings
        return isinstance(settings, VennAbersSettings) and settings.certification is not None

    @property
    def has_score(self) -> bool:
        """Whether its method ranks predictions by a score."""
        return isinstance(self.method_settings, VennAbersSettings)

    @property
    def has_policy(self) -> bool:
        """Whether a policy decides, certified or on average, and not the thresholds of its settings."""
        return self.method_settings.has_policy

    @property
    def group_attributes(self) -> tuple[str, ...]:
        """The attributes whose groups decisions depend on."""
        return attributes_of(self.promised_kinds)

    @property
    def promised_kinds(self) -> tuple[Kind, ...]:
        """The kinds of classes that it promises something about: those of its certificate, or predicted ones."""
        settings = self.method_settings
        certification = settings.certification if isinstance(settings, VennAbersSettings) else None
        return (ClassKind.PREDICTED,) if certification is None else certification.kinds

    @property
    def radius(self) -> BandRadius:
        """The radius of its bands, if the method has bands."""
        assert self.band_radius is not None, f"calibration {self.id}, made by {self.method}, has no bands"
        return self.band_radius


class LatestKey(NamedTuple):
    """What the snapshot in use is known by: itself never changes, so that what was read of it before can be used.

    With its id and revision comes what may change of the classifier after it was made: its name, by a switch of
    generations, its extractor, and the revision of its training exemplars.
    """

    id: int
    revision: UUID
    name: str
    extractor: str | None
    support_revision: UUID


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotPoints:
    """One split of a snapshot: ids (n,) int64, the points, and whether each ADMIT set is a singleton (n,).

    logits: (n, C) float64, KNN(x), if the points are undivided, all of which are in vp then; otherwise None.
    """

    exemplar_ids: IntArray
    points: CalibrationPoints
    singleton: BoolArray
    logits: FloatArray | None = None


def store(
    connection: Connection,
    calibrator_id: int,
    rows: CalibrationRows,
    *,
    knn_parameters_id: int | None,
    reason: str,
    stored: CalibrationRows | None = None,
    among: IntArray | None = None,
) -> tuple[int, ChangedRows]:
    """Store a snapshot of these rows, writing only those that changed; return the new key and the counts.

    Its rows are open, so that it must become the current one, or the rows of that one be opened again. stored: the
    rows that are open, if they have been read. among: the exemplars whose rows may differ from these; None for all.
    """
    given = execute(connection, "calibrations.next_number", calibrator_id=calibrator_id).one()
    changed = write_changes(connection, calibrator_id, given.method, given.number, rows, stored, among)
    vp_count = int(rows.in_vp.sum())
    counts = len(rows.in_vp) - vp_count, vp_count
    calibration_id = _add(connection, calibrator_id, given.number, knn_parameters_id, counts, reason)
    quartiles = distance_quartiles(rows.points.distance)
    execute(connection, "calibrations.add_quartiles", calibration_id=calibration_id, quartiles=quartiles)
    return calibration_id, changed


def store_again(connection: Connection, before: Calibration, counts: tuple[int, int], *, reason: str) -> int:
    """Store a snapshot whose rows are the open ones, those of one before that are left; return the new key.

    counts: the points of mc, and of vp.
    """
    given = execute(connection, "calibrations.next_number", calibrator_id=before.calibrator_id).one()
    calibration_id = _add(connection, before.calibrator_id, given.number, before.knn_parameters_id, counts, reason)
    execute(connection, "calibrations.copy_quartiles", calibration_id=calibration_id, before=before.id)
    venn_abers.add_choice(connection, calibration_id, venn_abers.choice_of(connection, before.id))
    return calibration_id


def _add(
    connection: Connection,
    calibrator_id: int,
    number: int,
    knn_parameters_id: int | None,
    counts: tuple[int, int],
    reason: str,
) -> int:
    calibration_id: int = execute(
        connection,
        "calibrations.add_calibration",
        calibrator_id=calibrator_id,
        number=number,
        knn_parameters_id=knn_parameters_id,
        mc_count=counts[0],
        vp_count=counts[1],
        reason=reason,
    ).scalar_one()
    return calibration_id


def make_current(connection: Connection, calibrator_id: int, calibration_id: int) -> None:
    """Make a snapshot, whose rows are the open ones, the current one of its calibrator."""
    execute(connection, "calibrations.retire_calibration", calibrator_id=calibrator_id)
    execute(connection, "calibrations.make_current", calibration_id=calibration_id)


def open_again(connection: Connection, calibration: Calibration, class_count: int) -> None:
    """Make the rows of an older snapshot the open ones, under a number that no snapshot has."""
    calibrator_id, older = calibration.calibrator_id, calibration.number
    given = execute(connection, "calibrations.next_number", calibrator_id=calibrator_id).one()
    undivided = calibration.method_settings.undivided
    rows = rows_of(connection, calibrator_id, class_count, number=older, undivided=undivided)
    write_changes(connection, calibrator_id, given.method, given.number, rows)
    venn_abers.write_changes(
        connection, calibrator_id, given.number, venn_abers.steps_of(connection, calibrator_id, number=older)
    )


def add_band_radius(connection: Connection, calibration_id: int, radius: BandRadius) -> None:
    """Store the radius of the bands of a new snapshot, whose method has bands."""
    execute(connection, "calibrations.add_band_radius", calibration_id=calibration_id, **asdict(radius))


def delete_old(connection: Connection, calibrator_id: int, keep: int) -> None:
    """Delete snapshots before the last `keep`, a thousand at most, and the rows that no other snapshot holds.

    Snapshots that decisions or jobs refer to are kept. The transaction must see what others have committed, statement
    by statement.
    """
    parameters = {"calibrator_id": calibrator_id, "keep": keep, "most": DELETED_AT_ONCE}
    old = execute(connection, "calibrations.lock_old_calibrations", **parameters)
    _delete(connection, calibrator_id, old.scalars())


def delete_withheld(connection: Connection, calibrator_id: int, before: int) -> None:
    """Delete the snapshots before a given one that were never put in use, under the same conditions."""
    parameters = {"calibrator_id": calibrator_id, "calibration_id": before}
    old = execute(connection, "calibrations.lock_withheld", **parameters)
    _delete(connection, calibrator_id, old.scalars())


def _delete(connection: Connection, calibrator_id: int, locked: Iterable[int]) -> None:
    old = list(locked)
    if old and execute(connection, "calibrations.delete_calibrations", calibration_ids=old).rowcount:
        delete_unheld(connection, calibrator_id)
        execute(connection, "steps.delete_unheld_steps", calibrator_id=calibrator_id)


def latest_id(connection: Connection, classifier: Classifier) -> int | None:
    """Return the snapshot that a classifier decides with; None before the first."""
    return execute(connection, "calibrations.latest_calibration", classifier_id=classifier.id).scalar_one_or_none()


def latest(connection: Connection, classifier: Classifier) -> Calibration:
    """Return the snapshot that a classifier decides with; NotReadyError before the first."""
    while True:
        in_use = latest_id(connection, classifier)
        if in_use is None:
            raise NotReadyError(
                f"classifier {classifier.name!r} has no calibration yet: calibrate it first",
                code=Code.NOT_CALIBRATED,
                classifier=classifier.name,
            )
        found = _read(connection, in_use)
        if found is not None:
            return found
        # It was retired and deleted in between, so there is a newer one.


class Latest(NamedTuple):
    """What one statement says of the snapshot that a classifier decides with.

    key: None without one, and then there is nothing else. described: those of some exemplars that there are, in the
    given order. valid_keys: those of some keys of the HTTP service that are valid.
    """

    key: LatestKey | None
    described: Sequence[DescribedExemplar] = ()
    valid_keys: Sequence[int] = ()


def latest_key(connection: Connection, name: str) -> LatestKey | None:
    """Return what the snapshot is known by that `latest` returns for the classifier of this name; None without one."""
    return _latest(name, [], [], partial(execute, connection)).key


def latest_with(engine: Engine, name: str, exemplar_ids: Sequence[int], key_ids: Sequence[int]) -> Latest:
    """Return the same, what some exemplars are, and which of some keys are valid, all as of one moment."""
    return _latest(name, exemplar_ids, key_ids, partial(ask, engine))


def _latest(
    name: str, exemplar_ids: Sequence[int], key_ids: Sequence[int], asked: Callable[..., Iterable[Sequence[Any]]]
) -> Latest:
    if not name.isprintable():  # as in `classifiers.by_name`
        return Latest(None)
    rows = list(asked("calibrations.latest_key", exemplar_ids=exemplar_ids, key_ids=key_ids, **addressed(name)))
    if not rows:
        return Latest(None)
    known = len(LatestKey._fields)
    described = (row[known + 1 :] for row in rows)
    return Latest(
        LatestKey(*rows[0][:known]),
        [DescribedExemplar(*one) for one in described if one[0] is not None],
        rows[0][known],
    )


def by_id(connection: Connection, classifier: Classifier, calibration_id: int) -> Calibration:
    """Return a snapshot of a classifier; NotFoundError if it has none with this id."""
    found = _read(connection, calibration_id)
    if found is None or found.classifier_id != classifier.id:
        raise _unknown(classifier, calibration_id)
    return found


def of_any_generation(connection: Connection, classifier: Classifier, calibration_id: int) -> Calibration:
    """Return a snapshot of a classifier or of another generation of it; NotFoundError if none has this id."""
    found = _read(connection, calibration_id)
    if found is None or (
        found.classifier_id != classifier.id and having(connection, classifier.address, found.classifier_id) is None
    ):
        raise _unknown(classifier, calibration_id)
    return found


def _unknown(classifier: Classifier, calibration_id: int) -> NotFoundError:
    return NotFoundError(
        f"classifier {classifier.name!r} has no calibration {calibration_id}",
        code=Code.UNKNOWN_CALIBRATION,
        classifier=classifier.name,
        calibration=calibration_id,
    )


def _read(connection: Connection, calibration_id: int) -> Calibration | None:
    row = execute(connection, "calibrations.calibration_by_id", calibration_id=calibration_id).mappings().one_or_none()
    if row is None:
        return None
    columns = dict(row)
    settings, s_hat, omega = (columns.pop(name) for name in ("settings", "s_hat", "omega"))
    radius = None if omega is None else BandRadius(s_hat=s_hat, omega=omega)
    return Calibration(**columns, method_settings=settings_of(settings), band_radius=radius)


def read_points(connection: Connection, calibration: Calibration, split: Split) -> SnapshotPoints:
    """Return one split of a snapshot as it was when it was made, ordered by band."""
    settings = calibration.method_settings
    undivided = settings.undivided
    logits = logits_column(len(settings.thresholds), undivided)
    columns = {"exemplar_id": INT8, **POINT, "is_singleton": BOOL, "logits": logits}
    parameters = {"calibrator_id": calibration.calibrator_id, "split": split, "number": calibration.number}
    rows = read_columns(connection, "calibrations.snapshot_points", columns, **parameters)
    return SnapshotPoints(
        rows["exemplar_id"], points_of(rows), rows["is_singleton"], rows["logits"] if undivided else None
    )


def vp_of(rows: CalibrationRows) -> SnapshotPoints:
    """Return the points of vp among the rows of a snapshot, in their order."""
    vp = rows.take(np.flatnonzero(rows.in_vp))
    return SnapshotPoints(vp.exemplar_ids, vp.points, vp.has_singleton, vp.logits)


def latest_or_by_id(connection: Connection, classifier: Classifier, calibration_id: int | None) -> Calibration:
    """Return the given snapshot, or the one in use if none is given."""
    return latest(connection, classifier) if calibration_id is None else by_id(connection, classifier, calibration_id)


def held(connection: Connection, classifier: Classifier, calibration_id: int | None) -> Calibration:
    """Return the given snapshot, or the one in use, and keep it from being deleted before the transaction ends.

    This is for transactions that store a reference to it. A transaction that only reads takes a consistent view of the
    database.
    """
    while True:
        found = latest_or_by_id(connection, classifier, calibration_id)
        kept = execute(connection, "calibrations.hold_calibration", calibration_id=found.id)
        if kept.one_or_none() is not None:
            return found
        # It was retired and deleted meanwhile, so there is a newer one, or the next attempt raises NotFoundError.


def require_whole(connection: Connection, classifier: Classifier, calibration: Calibration) -> None:
    """Raise OutdatedError if points of a snapshot were forgotten, so that what it decides would be something else."""
    lost = forgotten.lost_points(connection, calibration.id).total
    if lost:
        raise OutdatedError(
            f"{lost} of the {calibration.mc_count + calibration.vp_count:,} points of calibration {calibration.id} of "
            f"{classifier.name!r} {'has' if lost == 1 else 'have'} since been forgotten, so nothing is decided by it "
            "any more: recalibrate, or use a newer one",
            code=Code.POINTS_FORGOTTEN,
            classifier=classifier.name,
            calibration=calibration.id,
        )


def export_rows(connection: Connection, calibration: Calibration) -> Iterator[Sequence[Row[Any]]]:
    """Yield the points of a snapshot with their external ids, in order of ingestion, in blocks."""
    return stream(
        connection,
        "calibrations.export_calibration",
        {"calibrator_id": calibration.calibrator_id, "number": calibration.number},
    )
