"""Retiring a setting: its calibrations and decisions stay, and it is recalibrated no longer."""

from sqlalchemy import Engine

from venn_admit.service.errors import Code, ConflictError
from venn_admit.service.store.calibrations import calibrations, calibrators
from venn_admit.service.store.calibrations.calibrators import Calibrator
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers


def retire(engine: Engine, name: str, calibrator_id: int) -> Calibrator:
    """Keep a setting of a classifier current no longer; retiring it again changes nothing.

    `calibrate` with the same settings brings it back. Raises NotFoundError for a name or number that is not stored,
    ConflictError for the setting in use: what arrives would no longer reach the decisions made under it.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        setting = calibrators.by_id(connection, classifier, calibrator_id)
        # Whoever is calibrating under it finishes first, and may have put it in use by then.
        calibrations.lock_calibrator(connection, classifier, setting.settings)
        if calibrators.by_id(connection, classifier, calibrator_id).is_in_use:
            raise ConflictError(
                f"setting {calibrator_id} of {name!r} is in use, expected another one: put another in use by "
                "calibrating under it, then retire this one",
                code=Code.SETTING_IN_USE,
                classifier=name,
                setting=calibrator_id,
            )
        calibrators.retire(connection, calibrator_id)
        return calibrators.by_id(connection, classifier, calibrator_id)
