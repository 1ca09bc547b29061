"""The data stored of classifiers, in numbers: exact counts, none of which reads a vector."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.core.split_names import Split
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(slots=True)
class Counts:
    """The exemplars of a classifier per split, how many of them have a label, and how many of its jobs are running."""

    exemplars: dict[Split, int] = field(default_factory=lambda: dict.fromkeys(Split, 0))
    labelled: dict[Split, int] = field(default_factory=lambda: dict.fromkeys(Split, 0))
    running_jobs: int = 0


@dataclass(frozen=True, slots=True)
class HeldOutAccuracy:
    """How many labelled points of mc and vp are predicted right. Neither the network nor the KNN was fitted on them.

    knn_points: those that have an approximation under the parameters in use.
    """

    points: int
    network_right: int
    knn_points: int
    knn_right: int

    @property
    def network(self) -> float | None:
        """The share that the network predicts right; None without points."""
        return self.network_right / self.points if self.points else None

    @property
    def knn(self) -> float | None:
        """The share of `knn_points` that the KNN predicts right; None without any."""
        return self.knn_right / self.knn_points if self.knn_points else None


@dataclass(frozen=True, slots=True)
class Holdings:
    """The exemplars of one classifier, per split.

    labels: the number of exemplars with each label, C of them. unlabelled: the number without a label. documents: the
    number of documents that they come from, 0 if they name none. accuracy: of predictions for held-out data.
    """

    labels: dict[Split, list[int]]
    unlabelled: dict[Split, int]
    documents: dict[Split, int]
    accuracy: HeldOutAccuracy

    def shares(self, split: Split) -> list[float | None]:
        """Return the share of each class among the labels of a split, C of them; None without labels."""
        labelled = sum(self.labels[split])
        return [count / labelled if labelled else None for count in self.labels[split]]


def counts(connection: Connection, classifier_ids: Sequence[int]) -> dict[int, Counts]:
    """Return the counts of some classifiers, by their keys."""
    running = running_jobs(connection)
    found = {classifier_id: Counts(running_jobs=running.get(classifier_id, 0)) for classifier_id in classifier_ids}
    for row in execute(connection, "exemplars.split_counts", classifier_ids=list(classifier_ids)):
        found[row.classifier_id].exemplars[Split(row.split)] = row.exemplars
        found[row.classifier_id].labelled[Split(row.split)] = row.labelled
    return found


def running_jobs(connection: Connection) -> dict[int, int]:
    """Return the number of running jobs of each classifier that has any, by its key."""
    return {row.classifier_id: row.jobs for row in execute(connection, "catalogue.running_jobs")}


def newest_requests(connection: Connection) -> dict[int, Row[Any]]:
    """Return the newest score job of each classifier that has any, by its key."""
    return {row.classifier_id: row for row in execute(connection, "catalogue.newest_requests")}


def holdings(connection: Connection, classifier: Classifier) -> Holdings:
    of_classifier = {"classifier_id": classifier.id}
    found = Holdings(
        labels={split: [0] * classifier.class_count for split in Split},
        unlabelled=dict.fromkeys(Split, 0),
        documents=dict.fromkeys(Split, 0),
        accuracy=HeldOutAccuracy(**execute(connection, "catalogue.held_out_accuracy", **of_classifier).one()._mapping),
    )
    for row in execute(connection, "catalogue.label_counts", **of_classifier):
        if row.label is None:
            found.unlabelled[Split(row.split)] = row.exemplars
        else:
            found.labels[Split(row.split)][row.label] = row.exemplars
    for row in execute(connection, "catalogue.document_counts", **of_classifier):
        found.documents[Split(row.split)] = row.documents
    return found


def parameters(connection: Connection, classifier: Classifier) -> Row[Any] | None:
    """Return the parameters in use and how well they were fitted; None before the first."""
    return execute(connection, "catalogue.parameters", classifier_id=classifier.id).one_or_none()


def last_decisions(connection: Connection, classifier: Classifier, *, rows: int) -> Sequence[Row[Any]]:
    """Return decisions on the last rows of the newest score job, the last row first; none if there is no such job."""
    job_id = execute(connection, "catalogue.last_score_job", classifier_id=classifier.id).scalar_one_or_none()
    if job_id is None:
        return []
    return execute(connection, "catalogue.last_decisions", job_id=job_id, rows=rows).all()
