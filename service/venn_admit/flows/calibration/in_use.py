"""Which calibration of a classifier is in use: what a new one must admit to replace it, and putting another in use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine

from venn_admit.core.calibrators.certified.policies import Bounded, admit
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.comparison.strength import AdmittedPoints, Strength, measure_strength
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.monitoring.bands import admitted_of_vp
from venn_admit.core.split_names import Split
from venn_admit.flows.keys.keys import Asker, asked_by
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrations, calibrators, chains, venn_abers
from venn_admit.store.calibrations import in_use as store
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.calibrations.kept import KeptSnapshot, KeptSnapshots
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, forgotten
from venn_admit.store.exemplars.classifiers import Classifier

ASKED_REASON = "put in use by its number"
"""Why a calibration is in use if nobody gave a reason."""


@dataclass(frozen=True, slots=True)
class FarLess:
    """That a new calibration admits far less than the one that was in use before, or still is.

    is_withheld: whether it is stored and not put in use for that.
    """

    before: int
    strength: Strength
    is_withheld: bool


def put_in_use_unless_far_less(
    connection: Connection,
    guard: Connection,
    classifier: Classifier,
    new: Calibration,
    rows: CalibrationRows | None,
    rows_before: CalibrationRows | None,
    *,
    kept: KeptSnapshots,
    by_choice: bool,
    asked: Mapping[str, Any],
    reason: str,
) -> FarLess | None:
    """Make a new snapshot that of its setting, unless it admits far less than the one that it would replace.

    If another setting than the one in use was asked for, it must only admit something: a smaller alpha is asked for so
    that less is admitted. A chain that was advanced is followed whatever it admits: what it no longer certifies does
    not hold. Before it is first put in use, it must not admit far less than what is, and nothing else may have been
    chosen since it was begun. Returns how much less it admits, if it is far less.

    Args:
        connection: The transaction that made it, whose view of the data may be older than the one in use.
        guard: A transaction that holds the calibrator's lock, sees what is committed, and ends after the other one.
        rows, rows_before: Those of the new snapshot, and of the current one of its setting; None if not at hand.
        kept: What is known of snapshots, and here of what they admit.
        by_choice: Whether its setting was asked for, so that it would replace the one in use; otherwise it would
            replace the current one of its setting.
    """
    store.lock(guard, classifier)
    in_use = calibrations.latest_id(guard, classifier)
    current = store.current(guard, new.calibrator_id)
    is_asked = by_choice
    by_choice |= current is None and (in_use is None or chains.is_begun_since(guard, new.calibrator_id, in_use))
    replaced = in_use if by_choice else current
    is_of_setting_in_use = in_use is not None and current == in_use
    found = None
    may_be_advanced = new.method_settings.standing and not is_asked
    if may_be_advanced and current is not None and chains.are_same(connection, new.id, current):
        replaced = None
    if replaced is not None and not forgotten.lost_points(guard, replaced).total:
        before = calibrations.of_any_generation(guard, classifier, replaced)
        of_before = rows_before if replaced == current else None
        strength = measure_strength(
            judged(connection, classifier, new, rows, kept.get(new.revision)),
            judged(guard, classifier, before, of_before, kept.get(before.revision)),
        )
        if strength.is_far_less:
            is_meant = is_asked and not is_of_setting_in_use
            found = FarLess(replaced, strength, is_withheld=strength.is_nothing or not is_meant)
    if found is not None and found.is_withheld:
        _withhold(connection, guard, classifier, new, found)
        return found
    _put_in_use(connection, new, by_choice=by_choice)
    if by_choice or is_of_setting_in_use:
        store.add_use(connection, classifier, new, asked=asked, reason=reason)
    return found


def judged(
    connection: Connection,
    classifier: Classifier,
    calibration: Calibration,
    rows: CalibrationRows | None,
    kept: KeptSnapshot | None = None,
) -> AdmittedPoints:
    """Return which of its calibration points a snapshot would admit, as `judged_point_v1` says it.

    Bands are counted by arrays, which takes an eighth of the time of their counts in SQL, and thresholds of scores are
    compared with the rows. rows: of the snapshot, if they are at hand. kept: the snapshot, if it is; the result is kept
    with it.
    """
    if calibration.method != VENN_ADMIT:
        has_policy = rows is not None and calibration.abers_settings.has_policy
        policy = venn_abers.policy_of(connection, calibration.id) if has_policy else None
        if rows is None or policy is None or policy.bounded is not Bounded.SCORE or policy.groups:
            return store.judged(connection, calibration.id)
        return AdmittedPoints(rows.exemplar_ids, admit(rows.points.score, rows.points.predicted, policy))
    if kept is not None and kept.admitted is not None:
        return kept.admitted
    vp = calibrations.read_points(connection, calibration, Split.VP) if rows is None else calibrations.vp_of(rows)
    found = AdmittedPoints(
        vp.exemplar_ids,
        admitted_of_vp(
            vp.points,
            vp.singleton,
            class_count=classifier.class_count,
            settings=calibration.settings,
            omega=calibration.radius.omega,
        ),
    )
    if kept is not None:
        kept.admitted = found
    return found


def follow(connection: Connection, classifier: Classifier, new: Calibration, reason: str, by: Asker) -> None:
    """Make a new snapshot that of its setting, whatever it admits: nothing may be decided by the one before it."""
    store.lock(connection, classifier)
    is_in_use = store.current(connection, new.calibrator_id) == calibrations.latest_id(connection, classifier)
    _put_in_use(connection, new, by_choice=False)
    if is_in_use:
        store.add_use(connection, classifier, new, asked=asked_by(by), reason=reason)


def _put_in_use(connection: Connection, new: Calibration, *, by_choice: bool) -> None:
    calibrations.make_current(connection, new.calibrator_id, new.id)
    if by_choice:
        calibrators.choose(connection, new.calibrator_id)


def _withhold(
    connection: Connection, guard: Connection, classifier: Classifier, new: Calibration, found: FarLess
) -> None:
    store.add_withheld(connection, new.id, found.before, found.strength)
    current = store.current(guard, new.calibrator_id)
    if current is not None:
        calibrations.open_again(connection, calibrations.by_id(connection, classifier, current), classifier.class_count)


@dataclass(frozen=True, slots=True)
class Used:
    """The calibration that is in use now, and the one before; None if there was none. They are equal if it was.

    admits_nothing: whether it admits none of its calibration points.
    """

    classifier: Classifier
    calibration_id: int
    before: int | None
    admits_nothing: bool

    @property
    def is_changed(self) -> bool:
        """Whether another one was in use."""
        return self.calibration_id != self.before


def use(
    engine: Engine,
    name: str,
    calibration_id: int,
    *,
    reason: str | None = None,
    by: Asker = Origin.COMMAND_LINE,
    on_stored: Callable[[Connection, Used], object] = lambda *_: None,
) -> Used:
    """Put a stored calibration in use, whatever it admits; its setting is kept current from now on.

    It waits until a calibration under the same setting that is under way is over. Using the one in use changes nothing.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        asked = calibrations.by_id(connection, classifier, calibration_id)
        calibrators.lock(connection, classifier, asked.method_settings)
        asked = calibrations.held(connection, classifiers.by_id(connection, classifier.id), calibration_id)
        calibrations.require_whole(connection, classifier, asked)
        admitted = judged(connection, classifier, asked, None).admitted
        store.lock(connection, classifier)
        before, current = calibrations.latest_id(connection, classifier), store.current(connection, asked.calibrator_id)
        if before != asked.id:
            if current != asked.id:
                calibrations.open_again(connection, asked, classifier.class_count)
            _put_in_use(connection, asked, by_choice=True)
            store.add_use(connection, classifier, asked, asked=asked_by(by), reason=reason or ASKED_REASON)
        done = Used(classifier, asked.id, before, admits_nothing=bool(len(admitted)) and not admitted.any())
        on_stored(connection, done)
    return done
