"""A new snapshot of a calibrator from the current labels and approximations, by the method of its settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.advice import Render, Step, Verb
from venn_admit.core.calibrators.arguments import ALL_DECLARED, read_settings
from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings, ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.usable_bands import UsableShares, usable_shares
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.core.types import IntArray
from venn_admit.errors import Code, NotReadyError, OutdatedError
from venn_admit.flows.calibration.approximate import (
    held_classifier,
    points_to_approximate,
    require_support,
    take_in_waiting,
)
from venn_admit.flows.calibration.in_use import FarLess, follow, put_in_use_unless_far_less
from venn_admit.flows.calibration.standing import Advanced, advance_standing
from venn_admit.flows.jobs.submit import Submission, submit_job
from venn_admit.flows.keys.keys import Asker, asked_by
from venn_admit.flows.shell import Shell
from venn_admit.methods.method import Made
from venn_admit.methods.registry import METHODS
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.methods.venn_admit.make import MadeByAdmit, can_be_made_again, make_again, read_points, require_radius
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrations, calibrators, chains, point_changes
from venn_admit.store.calibrations.calibration_points import ChangedRows, Vacuum, rows_of, vacuum_points
from venn_admit.store.calibrations.kept import KeptSnapshot, KeptSnapshots
from venn_admit.store.calibrations.point_changes import View
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import approximations, classifiers, exemplars, neighbours
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import recalibrations
from venn_admit.store.work.new_jobs import NewJob
from venn_admit.store.workspace import Workspace

ANALYSED_SHARE = 0.05
"""The share of a snapshot's points that must have changed for new statistics of all: no plan depends on fewer."""
FEW_SHARE = 0.001
"""The share of a snapshot's points of which so few changed that dead rows may wait for later snapshots."""
FEW_SNAPSHOTS = 16
"""They wait for the next snapshot whose id is a multiple of this, or for the server's own vacuum."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A new snapshot.

    made: by its method, or how far a chain was advanced, which may be the snapshot before if nothing was new. left_out:
    points of mc and vp that wait for the next snapshot, because they arrived while approximations were computed.
    far_less: that it admits far less than the one in use before. is_stored: False in a dry run. of_current: that of the
    chain in use, advanced before the newer one that this is of, which waits.
    """

    classifier: Classifier
    calibrator_id: int
    calibration_id: int
    method_settings: MethodSettings
    made: Made | Advanced
    mc_count: int
    vp_count: int
    changed: ChangedRows
    left_out: int
    far_less: FarLess | None = None
    is_stored: bool = True
    of_current: "Calibrated | None" = None

    @property
    def withheld(self) -> FarLess | None:
        """Why it is stored and not put in use; None if it is in use."""
        return self.far_less if self.far_less is not None and self.far_less.is_withheld else None

    @property
    def settings(self) -> CalibratorSettings:
        """Those of Venn-ADMIT, if that is the method."""
        assert isinstance(self.method_settings, CalibratorSettings), f"{self.calibration_id} is by another method"
        return self.method_settings

    @property
    def is_certified(self) -> bool | None:
        """Whether a policy passed; None if no certificate was asked for."""
        certificate = self.made.certificate if isinstance(self.made, MadeByAbers | Advanced) else None
        return None if certificate is None else certificate.policy is not None

    @property
    def by_admit(self) -> MadeByAdmit:
        """What Venn-ADMIT made, if that is the method."""
        assert isinstance(self.made, MadeByAdmit), f"calibration {self.calibration_id} was made by another method"
        return self.made


def settings_for(classifier: Classifier, method: str, given: Mapping[str, Any]) -> MethodSettings:
    """Return the settings that a user asks for, checked.

    Args:
        given: Values by the names of settings, as text or as Python or JSON have them; None for the default.

    Raises:
        InvalidInputError: There is no such method, it has no such setting, a value is invalid, or it needs vectors.
    """
    if classifier.knn is None:
        if method == VENN_ADMIT:
            classifiers.require_vectors(classifier, "the method venn-admit")
        given = {name: ALL_DECLARED[name].read(name, value) for name, value in given.items() if value is not None}
        if given.get("score") == ScoreKind.RELIABILITY:
            classifiers.require_vectors(classifier, "the reliability score")
        if len(given.get("q_bins", ())) > 1:
            classifiers.require_vectors(classifier, "more than one bin of q")
    return read_settings(method, given, class_count=classifier.class_count, neighbour_count=classifier.neighbours)


OnStored = Callable[[Connection, Calibrated], object]


def request_approximations(workspace: Workspace, name: str) -> int:
    """Submit the job that brings mc and vp up to date under the current parameters, and return its key.

    Raises NotReadyError before the first fit, and InvalidInputError if the classifier has logits only, of which there
    is nothing to bring up to date.
    """
    take_in_waiting(workspace.engine, name)
    with submit_job(workspace) as submission:
        connection = submission.connection
        classifier = held_classifier(connection, classifiers.by_name(connection, name))
        classifiers.require_vectors(classifier, "an approximation")
        lacking = lacking_points(connection, classifier)
        assert lacking is not None, "a classifier with vectors has a KNN"
        return add_approximation_job(submission, classifier, lacking)


@dataclass(frozen=True, slots=True, eq=False)
class LackingPoints:
    """Held-out points without an up-to-date approximation, (n,) int64, and the parameters to approximate them with."""

    exemplar_ids: IntArray
    parameters: StoredParameters


def lacking_points(
    connection: Connection, classifier: Classifier, calibrator_id: int | None = None, *, has_chain: bool = False
) -> LackingPoints | None:
    """Return what has to be approximated before a snapshot; None if the classifier has logits only.

    calibrator_id: of the setting that is recalibrated, so that what did not change since is not looked at; None to look
    at all points. has_chain: whether it is standing. Raises NotReadyError before the first fit, and if mc or vp hold
    too little to calibrate with.
    """
    parameters = usable_parameters(connection, classifier)
    require_classes(connection, classifier, (Split.MC, Split.VP))
    if parameters is None:
        return None
    changed = None
    if calibrator_id is not None:
        changed = point_changes.changed_points(connection, classifier, calibrator_id, parameters.id).exemplar_ids
    ids = points_to_approximate(connection, classifier, list(HELD_OUT_SPLITS), parameters, changed)
    if calibrator_id is not None and has_chain:
        ids = np.union1d(ids, chains.waiting_points(connection, classifier, calibrator_id, parameters.id))
    return LackingPoints(ids, parameters)


def add_approximation_job(submission: Submission, classifier: Classifier, lacking: LackingPoints) -> int:
    """Record the job that approximates these points, and return its key."""
    ids, parameters_id = lacking.exemplar_ids, lacking.parameters.id
    return submission.add_job(classifier, NewJob("approximate", ids, parameters_id, completes_neighbours=True))


@dataclass(frozen=True, slots=True, eq=False)
class NearlyNothingUsable:
    """A calibration that was not made, because nearly every point would be rejected, with what others would leave."""

    classifier: Classifier
    shares: UsableShares

    @property
    def step(self) -> Step:
        """The step that calibrates under the settings that are proposed instead."""
        proposed, _ = self.shares.proposal()
        name, neighbour_count = self.classifier.name, self.classifier.neighbour_count
        return Step(Verb.CALIBRATE, classifier=name, settings=proposed, neighbour_count=neighbour_count)

    def refusal(self, render: Render) -> str:
        """Say why no calibration was stored, which class is the cause, and which settings leave more."""
        shares, (proposed, share) = self.shares, self.shares.proposal()
        without_q = (
            ", though one bin ignores q, so that inputs unlike the calibration data are less likely to be rejected"
            if len(proposed.q_bins) == 1
            else ""
        )
        return (
            f"no calibration was stored: with kappa {shares.asked.kappa:,} only {shares.asked_share:.1%} of the points "
            "would lie in usable bands, and all others would be rejected. A band is usable if it holds at least kappa "
            "points of every class in split mc, so one rare class starves the bands of all classes. The class that is "
            f"scarcest most often, in {shares.scarcest_share:.0%} of the bands below kappa, is "
            f"{self.classifier.class_names[shares.scarcest_class]!r}, which has "
            f"{int(shares.class_count[shares.scarcest_class]):,} of {int(shares.class_count.sum()):,} points. "
            f"`{render(self.step)}` leaves {share:.1%} usable{without_q}; more held-out data would leave more; "
            f"`{render(Step(Verb.ADD_ARGUMENT, kappa=shares.asked.kappa))}` stores this one anyway"
        )


def calibrate(
    workspace: Workspace,
    classifier: Classifier,
    settings: MethodSettings,
    *,
    shell: Shell,
    reason: str,
    even_if_nearly_nothing_is_usable: bool,
    by: Asker = Origin.COMMAND_LINE,
    dry_run: bool = False,
    on_stored: OnStored = lambda *_: None,
) -> Calibrated | NearlyNothingUsable:
    """Bring the approximations of mc and vp up to date, take a snapshot of them, and make it current.

    If it admits far less than the one in use, it may be stored and not put in use.

    Args:
        settings: They fit the classifier, as those of `settings_for` do.
        even_if_nearly_nothing_is_usable: Whether a setting that leaves nearly nothing to admit is stored all the same.
    """
    job_id = None if classifier.knn is None else request_approximations(workspace, classifier.address)
    try:
        if job_id is not None:
            shell.run_job(job_id, "Approximating")
        if isinstance(settings, CalibratorSettings) and not even_if_nearly_nothing_is_usable:
            shell.show("Counting usable bands")
            shares = _usable_shares(workspace, classifier, settings)
            if shares.nearly_nothing:
                return NearlyNothingUsable(classifier, shares)
        shell.show("Calibrating")
        return calibrate_on_stored(
            workspace, classifier, settings, reason=reason, by=by, dry_run=dry_run, on_stored=on_stored
        )
    finally:
        take_in_waiting(workspace.engine, classifier.address, ended=job_id)


def _usable_shares(workspace: Workspace, classifier: Classifier, settings: CalibratorSettings) -> UsableShares:
    """Shares of usable points of mc under the settings asked for and under others; nothing is written.

    The approximations of mc must be stored, as the job of `request_approximations` does. Raises as `calibrate` does
    for missing data.
    """
    with connect(workspace.engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            classifier = classifiers.by_id(connection, classifier.id)
            parameters = approximations.require_parameters(connection, classifier)
            _, mc = read_points(connection, classifier, Split.MC, parameters, memory_budget=workspace.memory_budget)
    return usable_shares(
        mc,
        settings,
        class_count=classifier.class_count,
        neighbour_count=classifier.neighbour_count,
        omega=require_radius(mc, settings).omega,
        growth=classifier.growth if settings.undivided else Fraction(1),
    )


def calibrate_on_stored(
    workspace: Workspace,
    classifier: Classifier,
    settings: MethodSettings,
    *,
    reason: str,
    by: Asker = Origin.COMMAND_LINE,
    dry_run: bool = False,
    on_stored: OnStored = lambda *_: None,
) -> Calibrated:
    """Compute a snapshot from one view of the data, make it current, and put its setting in use.

    Readers use the previous snapshot until then. Training exemplars that waited for it join afterwards. If it admits
    far less than the one in use, it may be stored and not put in use.

    Args:
        on_stored: Is called with the snapshot in the transaction that stores it, which is REPEATABLE READ.
    """
    with transaction(workspace.engine) as guard:
        classifier = classifiers.by_id(guard, classifier.id)
        calibrators.lock(guard, classifier, settings)
        calibrated = take_snapshot(
            workspace,
            guard,
            classifier,
            settings,
            reason=reason,
            asked=asked_by(by),
            dry_run=dry_run,
            on_stored=on_stored,
        )
    vacuum_changed(workspace.engine, calibrated)
    take_in_waiting(workspace.engine, classifier.address)
    return calibrated


def take_snapshot(
    workspace: Workspace,
    guard: Connection,
    classifier: Classifier,
    settings: MethodSettings,
    *,
    reason: str,
    asked: Mapping[str, Any],
    calibrator_id: int | None = None,
    requested_at: datetime | None = None,
    leave_out: bool = False,
    of_current: bool = False,
    dry_run: bool = False,
    on_stored: OnStored = lambda *_: None,
) -> Calibrated:
    """Make a snapshot, mark the request that it serves as served, and delete older ones that need not be kept.

    guard: a transaction that holds the calibrator's lock. asked: the columns that say who asked for it.
    calibrator_id: None to put the setting in use, and to add it if it is new. requested_at: of the request, as
    `guard` read it under the lock; None to read it. leave_out: whether points without an approximation wait for the
    next snapshot; otherwise they raise OutdatedError, as changed training data always do. of_current: as in
    `advance_standing`; otherwise the chain in use is advanced first, if a newer one waits. dry_run, on_stored: as
    in `calibrate`. Raises NotReadyError if data are missing.
    """
    advanced = None
    if calibrator_id is not None and not of_current and settings.standing and chains.waits(guard, calibrator_id):
        advanced = take_snapshot(
            workspace,
            guard,
            classifier,
            settings,
            reason=reason,
            asked=asked,
            calibrator_id=calibrator_id,
            leave_out=leave_out,
            of_current=True,
        )
    # Read before the data, so that a request that arrives in between does not count as served.
    requested_at = requested_at or recalibrations.requested_at(guard, classifier, settings)
    point_changes.keep(guard, classifier)
    if settings.family or (settings.standing and calibrator_id is None):
        chains.lock(guard, classifier)
    # A second transaction, because its view of the data must not be older than the lock.
    with connect(guard.engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin() as making:
            classifier = classifiers.by_id(connection, classifier.id)
            calibrated = _calibrate(
                connection,
                classifier,
                settings,
                calibrator_id,
                reason,
                leave_out=leave_out,
                memory_budget=workspace.memory_budget,
                of_current=of_current,
                view=point_changes.current_view(connection, classifier),
                kept=workspace.kept,
            )
            if not isinstance(calibrated.made, Advanced) or calibrated.made.is_new:
                new = calibrations.by_id(connection, classifier, calibrated.calibration_id)
                if isinstance(calibrated.made, MadeByAdmit) and can_be_made_again(settings):
                    snapshot = KeptSnapshot(calibrated.made.rows, calibrated.made.vp_logits)
                    workspace.kept.keep(new.calibrator_id, new.revision, snapshot)
                far_less = put_in_use_unless_far_less(
                    connection,
                    guard,
                    classifier,
                    new,
                    None if isinstance(calibrated.made, Advanced) else calibrated.made.rows,
                    calibrated.changed.before,
                    kept=workspace.kept,
                    by_choice=calibrator_id is None,
                    asked=asked,
                    reason=reason,
                )
                calibrated = replace(calibrated, far_less=far_less)
            calibrated = replace(calibrated, is_stored=not dry_run)
            if dry_run:
                making.rollback()
                return calibrated
            on_stored(connection, calibrated)
    # Each statement of the first transaction sees all that is committed, later requests and decisions included.
    if requested_at is not None and not of_current:
        recalibrations.serve(guard, calibrated.calibrator_id, requested_at, whole=not calibrated.left_out)
    if advanced is not None and chains.waits(guard, calibrated.calibrator_id):
        calibrated = replace(calibrated, of_current=advanced)
    if calibrated.withheld is not None:
        calibrations.delete_withheld(guard, calibrated.calibrator_id, before=calibrated.calibration_id)
    point_changes.forget_seen(guard, classifier)
    if workspace.keep_calibrations is not None:
        calibrations.delete_old(guard, calibrated.calibrator_id, workspace.keep_calibrations)
    return calibrated


def renewed_snapshot(
    connection: Connection,
    classifier: Classifier,
    settings: MethodSettings,
    calibrator_id: int,
    reason: str,
    *,
    by: Asker,
    memory_budget: int,
) -> Calibrated:
    """Make a snapshot within a transaction that keeps everybody else from changing what it is made of.

    The transaction holds the locks of ingestion, of the calibrator, of chains and of the classifier. Raises as
    `calibrate` does, and OutdatedError if approximations are missing or out of date.
    """
    calibrated = _calibrate(
        connection,
        classifier,
        settings,
        calibrator_id,
        reason,
        leave_out=False,
        memory_budget=memory_budget,
        of_current=True,
    )
    follow(connection, classifier, calibrations.by_id(connection, classifier, calibrated.calibration_id), reason, by)
    return calibrated


def vacuum_changed(engine: Engine, calibrated: Calibrated) -> None:
    """Make the rows of a snapshot quick to read, once the transactions that wrote it and guarded it are over.

    While one of them is open, the new rows cannot be marked as visible to all.
    """
    changed, points = calibrated.changed.opened + calibrated.changed.closed, calibrated.mc_count + calibrated.vp_count
    if changed > ANALYSED_SHARE * points:
        vacuum_points(engine, Vacuum.STATISTICS)
    elif changed > FEW_SHARE * points or (changed and calibrated.calibration_id % FEW_SNAPSHOTS == 0):
        vacuum_points(engine, Vacuum.ROWS)
    elif changed:
        vacuum_points(engine, Vacuum.PAGES)


def _calibrate(
    connection: Connection,
    classifier: Classifier,
    settings: MethodSettings,
    calibrator_id: int | None,
    reason: str,
    *,
    leave_out: bool,
    memory_budget: int,
    of_current: bool = False,
    view: View | None = None,
    kept: KeptSnapshots | None = None,
) -> Calibrated:
    """view: what the transaction sees, taken before it read anything else; None to compute all from scratch."""
    if calibrator_id is not None and isinstance(settings, VennAbersSettings) and settings.standing:
        current, changed_ids = approximations.current_parameters(connection, classifier), None
        if view is not None and current is not None:
            changed_ids = point_changes.changed_points(connection, classifier, calibrator_id, current.id).exemplar_ids
        advanced = advance_standing(connection, classifier, settings, calibrator_id, reason, of_current=of_current)
        if view is not None and current is not None:
            held_out = list(HELD_OUT_SPLITS)
            lacking = approximations.without_approximation(connection, classifier, held_out, current.id, changed_ids)
            point_changes.add_view(connection, classifier, calibrator_id, current.id, view, lacking)
        return Calibrated(
            classifier,
            calibrator_id,
            advanced.calibration_id,
            settings,
            advanced,
            mc_count=advanced.mc_count,
            vp_count=advanced.vp_count,
            changed=ChangedRows(closed=0, opened=0),
            left_out=advanced.left_out,
        )
    parameters, splits = usable_parameters(connection, classifier), (Split.MC, Split.VP)
    left_out, changed_ids, before, differing = np.empty(0, dtype=np.int64), None, None, None
    if parameters is not None:
        if view is not None and calibrator_id is not None:
            changed_ids, revision = point_changes.changed_points(connection, classifier, calibrator_id, parameters.id)
            before = None if kept is None else kept.get(revision)
        left_out = require_approximations(
            connection, classifier, splits, parameters, leave_out=leave_out, among=changed_ids
        )
    require_classes(connection, classifier, splits)
    if calibrator_id is not None and parameters is not None and changed_ids is not None and can_be_made_again(settings):
        before = before or KeptSnapshot(rows_of(connection, calibrator_id, classifier.class_count))
        again = make_again(
            connection, classifier, parameters, settings, before, changed_ids, memory_budget=memory_budget
        )
        made: Made = again
        differing = again.differing
    else:
        made = METHODS[settings.method].make(connection, classifier, parameters, settings, memory_budget=memory_budget)
    if calibrator_id is None:
        calibrator_id = calibrators.add(connection, classifier, settings)
    calibration_id, changed = calibrations.store(
        connection,
        calibrator_id,
        made.rows,
        knn_parameters_id=None if parameters is None else parameters.id,
        reason=reason,
        stored=None if before is None else before.rows,
        among=differing,
    )
    made.store(connection, calibration_id)
    if view is not None and parameters is not None:
        of_knn = approximations.without_approximation(connection, classifier, [Split.KNN], parameters.id, changed_ids)
        point_changes.add_view(connection, classifier, calibrator_id, parameters.id, view, np.union1d(left_out, of_knn))
    vp_count = int(made.rows.in_vp.sum())
    return Calibrated(
        classifier,
        calibrator_id,
        calibration_id,
        settings,
        made,
        mc_count=len(made.rows.in_vp) - vp_count,
        vp_count=vp_count,
        changed=changed,
        left_out=len(left_out),
    )


def usable_parameters(connection: Connection, classifier: Classifier) -> StoredParameters | None:
    """Return the parameters to calibrate under, with enough training exemplars; None if there are logits only."""
    if classifier.knn is None:
        return None
    parameters = approximations.require_parameters(connection, classifier)
    require_support(connection, classifier)
    return parameters


def require_approximations(
    connection: Connection,
    classifier: Classifier,
    splits: Sequence[Split],
    parameters: StoredParameters,
    *,
    leave_out: bool = False,
    among: IntArray | None = None,
) -> IntArray:
    """Return the points of these splits that have no approximation under the parameters; without leave_out, none may.

    among: the points to look at; None for all. Raises OutdatedError if there are any, and if training data changed.
    """
    lacking = approximations.without_approximation(connection, classifier, list(splits), parameters.id, among)
    outdated = neighbours.outdated_neighbours(connection, classifier)
    if len(outdated) or (len(lacking) and not leave_out):
        raise OutdatedError(
            f"{len(lacking) + len(outdated)} points of {classifier.name!r} arrived or changed during the calibration "
            "and have no approximation yet: run it again",
            code=Code.CHANGED_DURING_CALIBRATION,
            classifier=classifier.name,
        )
    return lacking


def require_classes(connection: Connection, classifier: Classifier, splits: Sequence[Split]) -> None:
    """Raise NotReadyError unless each of these splits holds points of at least two classes."""
    for split in splits:
        classes = exemplars.split_classes(connection, classifier, split)
        if len(classes) < 2:
            held = f"only class {classes[0]}" if classes else "no labelled exemplar"
            raise NotReadyError(
                f"split {split} of {classifier.name!r} holds {held}: expected at least two classes; "
                "ingest more held-out data",
                code=Code.TOO_FEW_CLASSES,
                classifier=classifier.name,
            )
