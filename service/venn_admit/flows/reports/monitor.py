"""Monitors: bringing one up to date with the labels, what it says, and which lamps are lit."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import compress

from sqlalchemy import Connection, Engine

from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind, PromisedClass
from venn_admit.core.calibrators.certified.policies import admitted_groups
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import VennAbersSettings
from venn_admit.core.monitoring.anytime.plan import LEVEL
from venn_admit.core.monitoring.anytime.readings import StandingAlarm, readings
from venn_admit.core.monitoring.anytime.state import MonitorState, advance, initial_state
from venn_admit.errors import InvalidInputError
from venn_admit.report.calibration.cells.certified import labels_needed
from venn_admit.report.calibration.common.watch import Watch
from venn_admit.report.monitoring.report import Deadline, GroupsBeside, MonitorReport, deadline_text
from venn_admit.store.calibrations import calibrations, calibrators, chains, listing, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.decisions import alarms, counted, deadlines, monitors
from venn_admit.store.decisions.alarms import Refuted
from venn_admit.store.decisions.counted import CountedLabels
from venn_admit.store.decisions.monitors import Seen, StoredMonitor, StoredState
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import recalibrations
from venn_admit_client.records.calibrations import Withheld

STATE_DOCUMENTS = 1000
"""After how many documents a state is kept: what follows it is read again, and so is a correction."""


def update_monitor(
    engine: Engine, name: str, *, restart: bool = False, label_deadline: timedelta | None = None
) -> MonitorReport:
    """Bring the monitor of a classifier's calibrator in use up to date, in one transaction, and return what it says.

    It is started if there is none, or if the KNN parameters in use are others than it was started with.

    Args:
        restart: Whether to end its alarms and to start again, with what is decided on from now on.
        label_deadline: How long after the decision labels count, for a monitor that is started; 0 if documents count by
            their labels; None for that of the classifier's monitor before.

    Raises:
        InvalidInputError: Its calibration promises a mean loss, or a monitor that is running has another deadline.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if restart:
            _restart_chains(connection, classifier)
        calibration = calibrations.held(connection, classifier, None)
        _require_share(calibration)
        monitors.lock(connection, calibration.calibrator_id)
        monitor = None if restart else monitors.newest(connection, calibration)
        if monitor is None:
            if label_deadline is None:
                label_deadline = deadlines.of_classifier(connection, classifier.id)
            monitor = monitors.start(
                connection, classifier, calibration, afresh=restart, label_deadline=label_deadline or None
            )
        elif label_deadline is not None:
            _require_deadline(monitor, label_deadline or None)
        monitor = monitors.with_groups(connection, classifier, calibration, monitor)
        settled, seen = _settled(connection, monitor)
        stored = monitors.states(connection, monitor)
        # In one view, because a label that comes between the statements would count twice or not at all.
        with consistent_view(engine) as view:
            if monitor.deadline is not None:
                passed = deadlines.now_passed(view, monitor.deadline, monitor.of_calibrator)
                monitor = replace(monitor, deadline=passed)
            base = _base(stored, counted.first_change(view, classifier, monitor), monitor)
            labels = counted.counted_labels(view, classifier, monitor, from_place=base.place)
        path = _path(labels, base, stored)
        state = _follow(connection, monitor, labels, path)
        found = tuple(readings(monitor.plan, state))
        if path.ends or path.outdated:
            monitors.replace_readings(connection, monitor, found)
        refuted = _refuted(connection, calibration)
        standing = alarms.update_alarms(
            connection, monitor, found, labels.events, after=base.documents, refuted=refuted
        )
        _withdraw(connection, classifier, calibration)
        monitors.settle(connection, monitor, settled, seen, chain_event=refuted.event)
        return _report(connection, classifier, calibration, monitor, state, standing, state.documents - path.start)


def _require_share(calibration: Calibration) -> None:
    """Raise InvalidInputError if a mean loss is promised, of which the bets on right and wrong would tell nothing."""
    if calibration.method_settings.loss is not None:
        raise InvalidInputError(
            f"calibration {calibration.id} promises a mean loss, and monitors bet on the share right alone; "
            "evaluate it on labelled traffic, which shows the mean loss, or put a calibration without a loss in use"
        )


def _require_deadline(monitor: StoredMonitor, label_deadline: timedelta | None) -> None:
    """Raise InvalidInputError if a monitor that is running has another label deadline."""
    running = None if monitor.deadline is None else monitor.deadline.time
    if running != label_deadline:
        raise InvalidInputError(
            f"expected the label deadline that monitor {monitor.id} was started with, {deadline_text(running)}, got "
            f"{deadline_text(label_deadline)}; it is fixed before the first label, so restart the monitor with it"
        )


def _restart_chains(connection: Connection, classifier: Classifier) -> None:
    """Start the games against what is certified again, between two advances."""
    calibration = calibrations.latest(connection, classifier)
    if calibration.method_settings.standing:
        calibrators.lock(connection, classifier, calibration.method_settings)
        chains.restart(connection, calibration.calibrator_id)


def _refuted(connection: Connection, calibration: Calibration) -> Refuted:
    """What the labels of the chain in use refute, which count there whether or not their points were decided on."""
    if not calibration.method_settings.standing:
        return Refuted()
    chain = chains.of_calibration(connection, calibration)
    return Refuted(chains.refuted_classes(connection, chain), chains.position(connection, chain).event)


def _withdraw(connection: Connection, classifier: Classifier, calibration: Calibration) -> None:
    """Request that a standing certificate be advanced if other alarms of the promise stand than it was withdrawn by."""
    if calibration.method_settings.standing:
        found = venn_abers.certificate_of(connection, calibration.id)
        assert found is not None, "a snapshot of a chain has a certificate"
        assert found.standing is not None, "it stands"
        tested = {of.about for of in found.standing.classes}
        if found.withdrawn != tested & chains.alarmed(connection, calibration.calibrator_id):
            recalibrations.request(connection, classifier, "alarm", calibrator_id=calibration.calibrator_id)


def _settled(connection: Connection, monitor: StoredMonitor) -> tuple[int, Seen]:
    """The last label event that this update settles, and what is settled next."""
    newest = monitors.newest_event(connection)
    if not newest.awaited:
        return newest.event, newest
    if not newest.awaited & monitor.seen.awaited:
        return monitor.seen.event, newest
    return monitor.settled_event, monitor.seen


def _base(stored: list[StoredState], changed: int | None, monitor: StoredMonitor) -> StoredState:
    """The last state, of those after every thousand documents, whose documents are as they were."""
    as_before = [
        state
        for state in stored
        if state.documents % STATE_DOCUMENTS == 0 and (changed is None or state.place < changed)
    ]
    return as_before[-1] if as_before else StoredState(0, monitor.before_first, b"")


@dataclass(frozen=True, slots=True)
class _Path:
    """From which state an update goes on, and which states it makes.

    base: documents before those that were read. start: documents of the state to go on from, 0 for the initial one.
    ends: the states to make, ascending. outdated: documents of the states to delete.
    """

    base: int
    start: int
    ends: list[StoredState]
    outdated: list[int]


def _path(labels: CountedLabels, base: StoredState, stored: list[StoredState]) -> _Path:
    total = base.documents + labels.points.document_count
    wanted = {*range(STATE_DOCUMENTS, total, STATE_DOCUMENTS), *([total] if total else [])}
    after_base = [state.documents for state in stored if base.documents < state.documents <= total]
    known = _seen(labels, base, sorted({*after_base, *(end for end in wanted if end > base.documents)}))
    holding = {state.documents for state in stored if state.documents <= base.documents or state in known}
    start = max(holding, default=0)
    return _Path(
        base=base.documents,
        start=start,
        ends=[state for state in known if state.documents in wanted and state.documents > start],
        outdated=[state.documents for state in stored if state.documents not in holding & wanted],
    )


def _seen(labels: CountedLabels, base: StoredState, ends: list[int]) -> list[StoredState]:
    """What states after these numbers of documents have seen: each digest goes on from the last thousand before it."""
    found, last = [], base
    for end in ends:
        points = labels.points.take(last.documents - base.documents, end - base.documents)
        place = int(labels.places[end - base.documents - 1])
        found.append(StoredState(end, place, points.digest(last.digest)))
        if end % STATE_DOCUMENTS == 0:
            last = found[-1]
    return found


def _follow(connection: Connection, monitor: StoredMonitor, labels: CountedLabels, path: _Path) -> MonitorState:
    state = monitors.read_state(connection, monitor, path.start) if path.start else initial_state(monitor.plan)
    monitors.delete_states(connection, monitor, path.outdated)
    for end in path.ends:
        further = labels.points.take(state.documents - path.base, end.documents - path.base)
        advance(monitor.plan, state, further, LEVEL)
        monitors.add_state(connection, monitor, state, end)
    return state


def read_monitor(connection: Connection, classifier: Classifier, calibration: Calibration) -> Watch:
    """Return what the monitor of a calibration's setting says."""
    if calibrations.latest(connection, classifier).calibrator_id != calibration.calibrator_id:
        return Watch(is_in_use=False, said=None, is_behind=False)
    monitor = monitors.newest(connection, calibration)
    if monitor is None:
        is_by_loss = calibration.method_settings.loss is not None
        return Watch(is_in_use=True, said=None, is_behind=False, is_by_loss=is_by_loss)
    newest = max((state.documents for state in monitors.states(connection, monitor)), default=0)
    state = monitors.read_state(connection, monitor, newest) if newest else initial_state(monitor.plan)
    standing = alarms.standing_alarms(connection, monitor)
    said = _report(connection, classifier, calibration, monitor, state, standing, 0)
    return Watch(is_in_use=True, said=said, is_behind=monitors.is_behind(connection, monitor))


def _report(
    connection: Connection,
    classifier: Classifier,
    calibration: Calibration,
    monitor: StoredMonitor,
    state: MonitorState,
    alarms: list[StandingAlarm],
    computed: int,
) -> MonitorReport:
    """What a state of a monitor says; computed: documents that were new, or counted again."""
    kinds, on_average = promised_kinds(connection, calibration)
    standing = calibration.method_settings.standing
    chain = chains.of_calibration(connection, calibration) if standing else None
    return MonitorReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        neighbour_count=classifier.neighbours,
        method=calibration.method,
        alpha=monitor.plan.alpha,
        setting=calibration.calibrator_id,
        calibration=calibration.id,
        monitor=monitor.id,
        started_at=monitor.created_at,
        documents=state.documents,
        points=state.points,
        computed=computed,
        readings=tuple(readings(monitor.plan, state)),
        alarms=tuple(alarms),
        promised=kinds,
        on_average=on_average,
        withheld={
            row.calibration: Withheld(row.in_use, row.points, row.share, row.share_in_use)
            for row in listing.withheld(connection, classifier)
            if row.calibration > calibration.id
        },
        from_starts=monitor.plan.from_starts,
        standing=venn_abers.certificate_of(connection, calibration.id) if standing else None,
        chain_has_ended=chain is not None and chains.has_ended(connection, classifier, chain),
        later=None if chain is None else chains.later(connection, classifier, chain),
        deadline=None if monitor.deadline is None else Deadline(monitor.deadline.time, monitor.deadline.decided),
        groups=_groups(connection, calibration, monitor, state),
    )


def _groups(
    connection: Connection, calibration: Calibration, monitor: StoredMonitor, state: MonitorState
) -> GroupsBeside:
    """What the lamps do not show of the groups that the certificate was asked for."""
    if not calibration.group_attributes:
        return GroupsBeside()
    certificate, plan = venn_abers.certificate_of(connection, calibration.id), monitor.plan.groups
    if certificate is None or certificate.policy is None:
        return GroupsBeside()
    tested = set[PromisedClass]() if plan is None else set(compress(plan.classes, plan.tested))
    return GroupsBeside(
        not_tested=tuple(of for of in admitted_groups(certificate.policy, certificate.kinds) if of not in tested),
        not_promised={
            PromisedClass(of.kind, of.number, of.value): labels_needed(certificate, of)
            for of in certificate.lacking
            if isinstance(of.kind, GroupKind)
        },
        unknown={} if plan is None else dict(zip(plan.values, state.unknown.tolist(), strict=True)),
    )


def promised_kinds(connection: Connection, calibration: Calibration) -> tuple[tuple[Kind, ...], bool]:
    """Return the kinds of classes that a snapshot promises something about, and whether that is on average.

    They are predicted ones, unless a certificate says it.
    """
    settings = calibration.method_settings
    if not isinstance(settings, VennAbersSettings) or settings.promise is AskedPromise.POINTWISE:
        return calibration.promised_kinds, False
    certified = venn_abers.certified_kinds(connection, calibration.id)
    return certified or (ClassKind.PREDICTED,), certified is None
