"""Which lamps of monitors are lit, as they were left when these were last looked at."""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.errors import NotReadyError
from venn_admit.flows.reports.monitor import promised_kinds
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import alarms, monitors
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class LitLamps:
    """The lamps of a monitor that are lit.

    alarms: those that mean that admitted predictions may be wrong more often than they should be. notices: the others.
    is_behind: whether labels came, or label deadlines passed, since the monitor was last looked at.
    """

    alarms: int
    notices: int
    is_behind: bool


def lit_lamps(engine: Engine) -> dict[str, LitLamps | None]:
    """Return the lit lamps of each classifier by its name; None if nothing watches it."""
    with consistent_view(engine) as connection:
        return {one.name: _lit(connection, one) for one in classifiers.every(connection)}


def lit_lamps_of(engine: Engine, name: str) -> LitLamps | None:
    """Return the lit lamps of a classifier, None if nothing watches it. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return _lit(connection, classifiers.by_name(connection, name))


def _lit(connection: Connection, classifier: Classifier) -> LitLamps | None:
    try:
        calibration = calibrations.latest(connection, classifier)
    except NotReadyError:  # not calibrated yet
        return None
    monitor = monitors.newest(connection, calibration)
    if monitor is None:
        return None
    standing = alarms.standing_alarms(connection, monitor)
    kinds, _ = promised_kinds(connection, calibration)
    harmful = sum(alarm.about.lamp.is_harmful(kinds) for alarm in standing)
    return LitLamps(harmful, len(standing) - harmful, monitors.is_behind(connection, monitor))
