"""The settings of a classifier by name; renaming classifiers and settings, and retiring settings.

The calibrations and decisions of a retired setting stay, but it is no longer recalibrated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.errors import Code, ConflictError, InvalidInputError
from venn_admit.flows.data.create import check_name
from venn_admit.store.calibrations import calibrators
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars import classifiers, exemplars, generations
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class ClassifierSettings:
    """A classifier and its settings, retired ones too, the one in use first."""

    classifier: Classifier
    settings: Sequence[Calibrator]

    def setting(self, calibrator_id: int) -> Calibrator:
        """Return one of the settings, by its number."""
        (found,) = (one for one in self.settings if one.id == calibrator_id)
        return found


Check = Callable[[ClassifierSettings], None]

"""Raises an error of its own if a change is not to be made, because the settings are not those that it is about."""

OnChanged = Callable[[Connection, ClassifierSettings], object]

"""Is called with the settings as they are after a change, in the transaction that changes them."""


def show_settings(engine: Engine, name: str) -> ClassifierSettings:
    """Return what of a classifier can be changed. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return _settings(connection, name)


def locked_settings(connection: Connection, name: str) -> ClassifierSettings:
    """Return the same, which nobody else changes until the transaction ends. Raises NotFoundError."""
    classifiers.lock(connection, classifiers.by_name(connection, name))
    return _settings(connection, name)  # by its name again: it may have been renamed while we waited


def _settings(connection: Connection, name: str) -> ClassifierSettings:
    classifier = classifiers.by_name(connection, name)
    return ClassifierSettings(classifier, calibrators.of_classifier(connection, classifier))


def rename(
    engine: Engine, name: str, new: str, *, check: Check = lambda _: None, on_stored: OnChanged = lambda *_: None
) -> ClassifierSettings:
    """Give a classifier the name `new`; jobs, caches and decisions refer to it by its key and are not affected.

    Its generations are called by the new name too. Returns its settings as they are then.

    Raises:
        InvalidInputError: `new` is not a valid name, or `name` is that of a generation that is not current.
        ConflictError: Another classifier is called `new`.
    """
    check_name(new)
    with transaction(engine) as connection:
        exemplars.lock_ingestion_of_all(connection, classifiers.by_name(connection, name))
        found = locked_settings(connection, name)
        check(found)
        if not found.classifier.is_current:
            raise InvalidInputError(
                f"expected the name of a classifier, got that of a generation, {name!r}; rename "
                f"{found.classifier.shared_name!r}, and its generations are called by the new name too"
            )
        generations.rename(connection, found.classifier, new)
        renamed = locked_settings(connection, new)
        on_stored(connection, renamed)
    return renamed


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

    Raises:
        ConflictError: The setting is in use; decisions under it would no longer follow the data.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        setting = calibrators.by_id(connection, classifier, calibrator_id)
        # A process that calibrates under it finishes first, and may have put it in use by then.
        calibrators.lock(connection, classifier, setting.settings)
        check(locked_settings(connection, classifier.address))
        if calibrators.by_id(connection, classifier, calibrator_id).is_in_use:
            raise ConflictError(
                f"setting {calibrator_id} of {classifier.name!r} is in use, expected another one: put a calibration of "
                "another setting in use, then retire this one",
                code=Code.SETTING_IN_USE,
                classifier=classifier.name,
                setting=calibrator_id,
            )
        calibrators.retire(connection, calibrator_id)
        retired = locked_settings(connection, classifier.address)
        on_stored(connection, retired)
    return retired
