"""Advancing a certificate that stands while labels arrive: a snapshot with what its chain certifies by now."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.settings import AUTO, VennAbersSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.errors import Code, NotReadyError
from venn_admit.methods.venn_abers.standing import advance_chain
from venn_admit.store.calibrations import calibrations, chains, in_use, venn_abers
from venn_admit.store.calibrations.calibration_points import rows_of
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.calibrations.chains import StoredChain
from venn_admit.store.exemplars import forgotten
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class Advanced:
    """How far the newest chain of a setting came.

    calibration_id: the snapshot with it, which is an earlier one if nothing is new. left_out: new points that wait.
    """

    calibration_id: int
    certificate: Certificate
    mc_count: int
    vp_count: int
    left_out: int
    is_new: bool


def advance_standing(
    connection: Connection,
    classifier: Classifier,
    settings: VennAbersSettings,
    calibrator_id: int,
    reason: str,
    *,
    of_current: bool,
) -> Advanced:
    """Let the labels since the last advance count, within a transaction that holds the lock of the calibrator.

    The snapshot has the points of the one before, less those that were forgotten. If nothing is new, nothing is stored.

    Args:
        of_current: Whether the chain of the current snapshot is advanced, and not the newest.

    Raises:
        NotReadyError: Nothing is new, and nothing can be, because the score of the newest chain is that of earlier
            parameters or training exemplars.
    """
    chain, before = _chain(connection, classifier, calibrator_id, of_current=of_current)
    has_ended = chains.has_ended(connection, classifier, chain)
    certificate, left_out = advance_chain(connection, classifier, chain, settings, has_ended=has_ended)
    is_whole = not forgotten.lost_points(connection, before.id).total
    counts = (before.mc_count, before.vp_count)
    if is_whole and certificate == venn_abers.certificate_of(connection, before.id):
        if has_ended and not of_current:
            raise NotReadyError(
                f"chain {chain.number} of {classifier.name!r} has ended: its thresholds are on the reliability score "
                "of an earlier fit or of other training exemplars, so labels that come since cannot count; begin the "
                "next one, or ask for the network's score, which stays as it is",
                code=Code.CHAIN_ENDED,
                classifier=classifier.name,
                alpha=str(settings.alpha),
                confidence=str(settings.confidence),
                score=settings.score or AUTO,
            )
        return Advanced(before.id, certificate, *counts, left_out, is_new=False)
    if in_use.current(connection, calibrator_id) != before.id:
        calibrations.open_again(connection, before, classifier.class_count)
    left = None if is_whole else rows_of(connection, calibrator_id, classifier.class_count)
    if left is not None:
        counts = (int(np.count_nonzero(~left.in_vp)), int(np.count_nonzero(left.in_vp)))
    calibration_id = calibrations.store_again(connection, before, counts, reason=reason)
    if left is not None:
        venn_abers.add_steps(connection, calibration_id, _steps(left, classifier, before))
    venn_abers.add_certificate(connection, calibration_id, certificate, None, chain_id=chain.id)
    return Advanced(calibration_id, certificate, *counts, left_out, is_new=True)


def _chain(
    connection: Connection, classifier: Classifier, calibrator_id: int, *, of_current: bool
) -> tuple[StoredChain, Calibration]:
    """The chain to advance, and the newest snapshot that it certified."""
    current = in_use.current(connection, calibrator_id) if of_current else None
    if current is not None:
        before = calibrations.by_id(connection, classifier, current)
        return chains.of_calibration(connection, before), before
    chain = chains.newest(connection, calibrator_id)
    return chain, calibrations.by_id(connection, classifier, chains.newest_calibration(connection, chain))


def _steps(rows: CalibrationRows, classifier: Classifier, calibration: Calibration) -> Steps:
    """The steps of the points of mc among some rows."""
    mc, points = ~rows.in_vp, rows.points
    return VennAbersIndex(
        CellPoints(points.predicted[mc], points.match_count[mc], points.score[mc]),
        points.predicted[mc] == points.label[mc],
        class_count=classifier.class_count,
        q_bins=calibration.abers_settings.q_bins,
    ).steps
