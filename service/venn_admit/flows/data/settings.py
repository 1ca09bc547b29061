"""What of a classifier can be changed: its name, and which of its settings are kept current."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.store.calibrations import calibrators
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
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
