"""Calibrators as their users know them: numbered settings, each kept current until it is retired."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection

from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.errors import Code, NotFoundError
from venn_admit.store.calibrations.setting_forms import settings_of
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A setting with its current snapshot.

    is_in_use: whether new decisions are made under it. retired_at: None as long as it is kept current. due_for: what
    changed since the snapshot, such as labels; None if nothing did. due_error: why it could not be recalibrated.
    is_certified: whether a policy passed; None if no certificate was asked for. policy: the thresholds of that policy,
    None for never; None if there is none.
    """

    id: int
    settings: MethodSettings
    is_in_use: bool
    retired_at: datetime | None
    calibration_id: int
    calibrated_at: datetime
    mc_count: int
    vp_count: int
    due_for: str | None
    due_error: str | None
    is_certified: bool | None = None
    policy: tuple[float | None, ...] | None = None

    @property
    def thresholds(self) -> tuple[Decimal | None, ...]:
        """(C,) the least lower probability at which each predicted class is admitted now; None for never."""
        if self.is_certified is None:
            return self.settings.thresholds
        policy = (None,) * len(self.settings.thresholds) if self.policy is None else self.policy
        return tuple(None if one is None else Decimal(repr(one)) for one in policy)


def of_classifier(connection: Connection, classifier: Classifier) -> list[Calibrator]:
    """Return all settings of a classifier, the one in use first, then the most recently chosen."""
    rows = connection.execute(statement("calibrators.calibrators"), {"classifier_id": classifier.id})
    return [
        Calibrator(
            id=row.id,
            settings=settings_of(row.settings),
            is_in_use=row.is_in_use,
            retired_at=row.retired_at,
            calibration_id=row.calibration_id,
            calibrated_at=row.calibrated_at,
            mc_count=row.mc_count,
            vp_count=row.vp_count,
            due_for=row.due_for,
            due_error=row.due_error,
            is_certified=row.is_certified,
            policy=None if row.policy is None else tuple(row.policy),
        )
        for row in rows
    ]


def by_id(connection: Connection, classifier: Classifier, calibrator_id: int) -> Calibrator:
    """Return a setting of a classifier; NotFoundError, which names the known ones, if it does not exist."""
    found = of_classifier(connection, classifier)
    for calibrator in found:
        if calibrator.id == calibrator_id:
            return calibrator
    known = ", ".join(str(calibrator.id) for calibrator in found) or "none yet; calibrate it first"
    raise NotFoundError(
        f"classifier {classifier.name!r} has no setting {calibrator_id}; known: {known}",
        code=Code.UNKNOWN_SETTING if found else Code.NO_SETTING,
        classifier=classifier.name,
        setting=calibrator_id,
    )


def retire(connection: Connection, calibrator_id: int) -> None:
    """Stop keeping a setting current, and drop its request for recalibration."""
    parameters = {"calibrator_id": calibrator_id}
    connection.execute(statement("calibrators.retire_calibrator"), parameters)
    connection.execute(statement("calibrators.drop_request"), parameters)
