"""What is stored: every classifier at a glance, one in detail, and the calibrations of one."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.store.calibrations import calibrators, listing
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.decisions import catalogue
from venn_admit.store.decisions.catalogue import Counts, Holdings
from venn_admit.store.exemplars import classifiers, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import jobs

if TYPE_CHECKING:  # records take long to make, and `list` needs none
    from venn_admit_client.records.calibrations import CalibrationUse
    from venn_admit_client.records.certificates import CertificateLook

# How many jobs and decisions `show` shows, and how many rows its outcomes count.
_JOBS, _DECISIONS, _SUMMED_ROWS = 5, 5, 1000


@dataclass(frozen=True, slots=True)
class Listed:
    """A classifier at a glance; in_use: the setting that new decisions are made under, None before the first."""

    classifier: Classifier
    counts: Counts
    in_use: Calibrator | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A classifier in detail.

    waiting: training exemplars that wait for jobs that are running. parameters: None before the first fit. settings:
    retired ones too, the one in use first. jobs: the newest first. decisions: the last few of the newest score job,
    newest first. outcomes: how many of its last rows were admitted (None) or rejected, by reason.
    """

    classifier: Classifier
    holdings: Holdings
    waiting: int
    parameters: Row[Any] | None
    settings: list[Calibrator]
    jobs: Sequence[Row[Any]]
    decisions: Sequence[Row[Any]]
    outcomes: Counter[str | None]


@dataclass(frozen=True, slots=True)
class ListedCalibrations:
    """The settings of a classifier, the one in use first, and its snapshots, the newest first.

    uses: which snapshots were in use, the newest first, as many as snapshots were asked for. withheld: what was found
    of those that are stored and were never put in use. looks: every certificate that looked at the held-out labels, the
    newest first.
    """

    classifier: Classifier
    settings: list[Calibrator]
    calibrations: Sequence[Row[Any]]
    uses: "Sequence[CalibrationUse]"
    withheld: Sequence[Row[Any]]
    looks: "Sequence[CertificateLook]"


def list_classifiers(
    engine: Engine, *, shared_name: str | None = None, limit: int | None = None, after: str | None = None
) -> list[Listed]:
    """Return every classifier and every generation of it, by name.

    shared_name: only the generations of the classifier of this name. limit: the most of them; None for all. after: only
    those whose names come after this one.
    """
    with consistent_view(engine) as connection:
        found = classifiers.every(connection, shared_name=shared_name, limit=limit, after=after)
        return listed(connection, found)


def listed(connection: Connection, found: Sequence[Classifier]) -> list[Listed]:
    """Return some classifiers at a glance."""
    counts = catalogue.counts(connection, [classifier.id for classifier in found])
    return [
        Listed(classifier, counts[classifier.id], next(iter(calibrators.of_classifier(connection, classifier)), None))
        for classifier in found
    ]


def find(engine: Engine, name: str) -> Classifier:
    """Return the classifier of a name. Raises NotFoundError."""
    with connect(engine) as connection:
        return classifiers.by_name(connection, name)


def count_waiting(engine: Engine, name: str | None) -> int:
    """Return how many training exemplars wait, of one classifier or of all. Raises NotFoundError."""
    with connect(engine) as connection:
        return support.waiting(connection, None if name is None else classifiers.by_name(connection, name))


def show(engine: Engine, name: str) -> Shown:
    """Return one classifier with its data, parameters, settings, newest jobs and decisions. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        decisions = catalogue.last_decisions(connection, classifier, rows=_SUMMED_ROWS)
        return Shown(
            classifier=classifier,
            holdings=catalogue.holdings(connection, classifier),
            waiting=support.waiting(connection, classifier),
            parameters=catalogue.parameters(connection, classifier),
            settings=calibrators.of_classifier(connection, classifier),
            jobs=jobs.summaries(connection, limit=_JOBS, classifier=classifier.name),
            decisions=decisions[:_DECISIONS],
            outcomes=Counter(row.reason for row in decisions),
        )


def holdings_of(engine: Engine, name: str) -> tuple[Classifier, Holdings]:
    """Return one classifier and its data in numbers. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        return classifier, catalogue.holdings(connection, classifier)


def show_calibration(engine: Engine, name: str, calibration_id: int | None) -> tuple[Row[Any], Calibrator]:
    """Return a snapshot, of any generation of the classifier, or the one in use, and its setting.

    Raises NotFoundError, and NotReadyError if there is no snapshot yet.
    """
    from venn_admit.store.calibrations import calibrations  # which brings what computes certificates

    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if calibration_id is None:
            found = calibrations.latest(connection, classifier)
        else:
            found = calibrations.of_any_generation(connection, classifier, calibration_id)
            classifier = classifiers.by_id(connection, found.classifier_id)
        (row,) = listing.summaries(connection, classifier, limit=1, calibration_id=found.id)
        settings = {setting.id: setting for setting in calibrators.of_classifier(connection, classifier)}
        return row, settings[row.setting]


def settings_in_use(engine: Engine, names: Collection[str]) -> set[int]:
    """Return the settings by which some classifiers decide, by number. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        found = [calibrators.of_classifier(connection, classifiers.by_name(connection, name)) for name in names]
    return {setting.id for settings in found for setting in settings if setting.is_in_use}


def list_calibrations(engine: Engine, name: str, *, limit: int, before: int | None = None) -> ListedCalibrations:
    """Return the settings of a classifier and its newest snapshots; before: only those older than a snapshot.

    Raises NotFoundError.
    """
    from venn_admit_client.records.calibrations import CalibrationUse
    from venn_admit_client.records.certificates import CertificateLook

    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        return ListedCalibrations(
            classifier,
            calibrators.of_classifier(connection, classifier),
            listing.summaries(connection, classifier, limit=limit, before=before),
            [CalibrationUse(**row._mapping) for row in listing.uses(connection, classifier, limit=limit)],
            listing.withheld(connection, classifier),
            [CertificateLook(**row._mapping) for row in listing.looks(connection, classifier)],
        )


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
