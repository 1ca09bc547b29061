"""Every classifier at first sight, and the settings of one, without counting what is stored of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.store.calibrations import calibrators
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.decisions import catalogue
from venn_admit.store.exemplars import classifiers, support
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class Glance:
    """A classifier at first sight.

    in_use: the setting that new decisions are made under, None before the first. running_jobs: how many of its jobs
    run. newest_request: the newest job that scores, with its number of rows and its time; None before the first.
    """

    classifier: Classifier
    in_use: Calibrator | None
    running_jobs: int
    newest_request: Row[Any] | None


def glance_at_classifiers(engine: Engine) -> list[Glance]:
    """Return every classifier, by name."""
    with consistent_view(engine) as connection:
        running, newest = catalogue.running_jobs(connection), catalogue.newest_requests(connection)
        return [
            Glance(
                one,
                next(iter(calibrators.of_classifier(connection, one)), None),
                running.get(one.id, 0),
                newest.get(one.id),
            )
            for one in classifiers.every(connection)
        ]


def every_classifier(engine: Engine) -> Sequence[Classifier]:
    """Return every classifier, by name, and nothing else of it."""
    with connect(engine) as connection:
        return classifiers.every(connection)


@dataclass(frozen=True, slots=True)
class ShownClassifier:
    """A classifier with its settings, retired ones too, the one in use first.

    waiting: training exemplars that wait for jobs that are running.
    """

    classifier: Classifier
    settings: list[Calibrator]
    waiting: int


def glance_at(engine: Engine, name: str) -> ShownClassifier:
    """Return one classifier. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        settings = calibrators.of_classifier(connection, classifier)
        return ShownClassifier(classifier, settings, support.waiting(connection, classifier))
