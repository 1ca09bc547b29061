"""Retiring a setting: its calibrations and decisions stay, but it is no longer recalibrated."""

from sqlalchemy import Engine

from venn_admit.errors import Code, ConflictError
from venn_admit.flows.data.settings import Check, ClassifierSettings, OnChanged, locked_settings
from venn_admit.store.calibrations import calibrations, calibrators
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers


def retire(
    engine: Engine,
    name: str,
    calibrator_id: int,
    *,
    check: Check = lambda _: None,
    on_stored: OnChanged = lambda *_: None,
) -> ClassifierSettings:
    """Stop recalibrating a setting; retiring it again changes nothing, and calibrating under it brings it back.

    Returns the settings of the classifier as they are then.

    Args:
        name: The name of the classifier.
        calibrator_id: The setting.
        check: Is given the settings as they are when nobody else can change them.
        on_stored: Is called with the settings in the transaction that retires this one.

    Raises:
        NotFoundError: The name or number is not stored.
        ConflictError: The setting is in use; decisions under it would no longer follow the data.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        setting = calibrators.by_id(connection, classifier, calibrator_id)
        # A process that calibrates under it finishes first, and may have put it in use by then.
        calibrations.lock_calibrator(connection, classifier, setting.settings)
        check(locked_settings(connection, classifier.address))
        if calibrators.by_id(connection, classifier, calibrator_id).is_in_use:
            raise ConflictError(
                f"setting {calibrator_id} of {classifier.name!r} is in use, expected another one: put another in use "
                "by calibrating under it, then retire this one",
                code=Code.SETTING_IN_USE,
                classifier=classifier.name,
                setting=calibrator_id,
            )
        calibrators.retire(connection, calibrator_id)
        retired = locked_settings(connection, classifier.address)
        on_stored(connection, retired)
    return retired
