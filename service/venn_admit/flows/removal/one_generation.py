"""Removing exemplars from one generation of a classifier, and repairing at once what can be repaired."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from venn_admit.core.types import IntArray
from venn_admit.errors import NotReadyError
from venn_admit.flows.calibration.calibrate import renewed_snapshot
from venn_admit.flows.jobs.submit import Submission
from venn_admit.store.calibrations import calibrators
from venn_admit.store.exemplars import approximations, classifiers, forgotten, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.forgotten import AskedFor, TouchedSnapshot
from venn_admit.store.work import recalibrations

REASON = "forgotten exemplars"


@dataclass(slots=True)
class Total:
    """What was removed, in all generations and transactions together.

    rows: by table. renewed: calibrations that were followed by one without the exemplars. recalibrations: requested, by
    generation. transactions: those that are over, and removed: the exemplars that these removed.
    """

    exemplars: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    renewed: int = 0
    recalibrations: dict[int, int] = field(default_factory=dict)
    transactions: int = 0
    removed: int = 0

    def count(self) -> None:
        """Count a transaction that is over."""
        self.transactions, self.removed = self.transactions + 1, self.exemplars


def remove_from(submission: Submission, generation: Classifier, hits: Sequence[AskedFor], total: Total) -> None:
    """Remove exemplars, within a transaction that holds the locks of ingestion, calibrators and classifier.

    Each snapshot that is current and loses points is followed by one without them, unless data are out of date or too
    few are left. Lists that name an exemplar are deleted, and a job is recorded that searches them again.
    """
    connection = submission.connection
    ids = np.array([hit.id for hit in hits], dtype=np.int64)
    training = forgotten.training_now(connection, ids)
    others = np.setdiff1d(ids, training)
    # Those that do not train go first: the lists of the other points are as they were, and allow a new snapshot.
    touched = forgotten.add_points(connection, others)
    disturbed = forgotten.lists_naming(connection, others)  # of exemplars that trained once
    forgotten.add_trainings(connection, others, 0)
    total.rows += forgotten.delete(connection, generation, others)
    unserved = _renew(submission, generation, touched, total)
    if len(training):
        version = support.next_version(connection)
        disturbed = np.union1d(disturbed, forgotten.lists_naming(connection, training))
        forgotten.add_trainings(connection, training, version)
        forgotten.add_points(connection, training)  # of earlier snapshots: it does not calibrate now
        total.rows += forgotten.delete(connection, generation, training)
        support.renew(connection, generation, version)
    if len(disturbed):
        total.rows += forgotten.delete_lists(connection, disturbed)
        _search_again(submission, generation, disturbed)
    total.exemplars += len(ids)
    if len(training) or len(disturbed) or unserved:
        total.recalibrations[generation.id] = recalibrations.request(connection, generation, REASON)


def _renew(submission: Submission, generation: Classifier, touched: Sequence[TouchedSnapshot], total: Total) -> bool:
    """Follow each current snapshot that lost points by one that never had them; return whether any could not be."""
    connection, memory_budget = submission.connection, submission.workspace.memory_budget
    current = {one.calibrator_id for one in touched if one.is_current}
    unserved = False
    for calibrator in calibrators.of_classifier(connection, generation):
        if calibrator.id not in current or calibrator.retired_at is not None:
            continue
        savepoint = connection.begin_nested()
        try:
            renewed_snapshot(
                connection, generation, calibrator.settings, calibrator.id, REASON, memory_budget=memory_budget
            )
        except NotReadyError:
            # Data are out of date, or too few are left: until that changes, nothing is decided under this setting.
            savepoint.rollback()
            unserved = True
        else:
            savepoint.commit()
            total.renewed += 1
    return unserved


def _search_again(submission: Submission, generation: Classifier, points: IntArray) -> None:
    """Record the job that finds the next neighbours of points whose lists named what is gone."""
    connection = submission.connection
    if support.size(connection, generation) < generation.neighbour_count:
        return  # there is nothing to find before more is ingested, and whatever needs the lists says so
    parameters = approximations.current_parameters(connection, generation)
    submission.add_job(
        classifiers.by_id(connection, generation.id),
        kind="approximate",
        exemplar_ids=points,
        knn_parameters_id=None if parameters is None else parameters.id,
    )
