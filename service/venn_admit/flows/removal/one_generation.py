"""Removing exemplars from one generation of a classifier, and repairing at once what can be repaired.

Kept answers to HTTP requests that name what was forgotten are removed, too. An answer that names an exemplar is stored
together with it, under the lock of ingestion, or after it was read. Once it is gone and has a tombstone, no new answer
names it, so that the answers that are there then are searched once, whatever number of exemplars went, and while
nothing is locked.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, Row

from venn_admit.core.types import IntArray
from venn_admit.errors import NotReadyError
from venn_admit.flows.calibration.calibrate import renewed_snapshot
from venn_admit.flows.jobs.submit import Submission
from venn_admit.flows.keys.keys import Asker
from venn_admit.store.access import idempotency
from venn_admit.store.access.idempotency import Attempt
from venn_admit.store.calibrations import calibrators
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import approximations, classifiers, forgotten, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import recalibrations
from venn_admit.store.work.new_jobs import NewJob

REASON = "forgotten exemplars"
BLOCK = 1000
"""How many answers are read, and those that name something deleted rewritten, in one transaction."""
# A string as JSON writes it. Answers are searched as bytes: one that is no JSON must not stay unread.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
# Which of some texts are ids that are forgotten.
_Gone = Callable[[Connection, Collection[str]], Collection[str]]


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


def remove_from(
    submission: Submission, generation: Classifier, hits: Sequence[Row[Any]], total: Total, by: Asker
) -> None:
    """Remove exemplars, within a transaction that holds the locks of ingestion, calibrators and classifier.

    Each snapshot that is kept current and loses points is followed by one without them, unless data are out of date or
    too few are left. Lists that name an exemplar are deleted, and a job is recorded that searches them again.
    """
    connection = submission.connection
    ids = np.array([hit.id for hit in hits], dtype=np.int64)
    forgotten.keep_evidence(connection, ids)
    training = forgotten.training_now(connection, ids)
    others = np.setdiff1d(ids, training)
    # Those that do not train go first: the lists of the other points are as they were, and allow a new snapshot.
    touched = forgotten.add_points(connection, others)
    disturbed = forgotten.lists_naming(connection, others)  # of exemplars that trained once
    forgotten.add_trainings(connection, others, 0)
    total.rows += forgotten.delete(connection, generation, others)
    unserved = _renew(submission, generation, touched, total, by)
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


def _renew(submission: Submission, generation: Classifier, touched: set[int], total: Total, by: Asker) -> bool:
    """Follow each kept snapshot that lost points by one that never had them; return whether any could not be."""
    connection, memory_budget = submission.connection, submission.workspace.memory_budget
    unserved = False
    for calibrator in calibrators.of_classifier(connection, generation):
        if calibrator.id not in touched or calibrator.retired_at is not None:
            continue
        savepoint = connection.begin_nested()
        try:
            renewed_snapshot(
                connection, generation, calibrator.settings, calibrator.id, REASON, by=by, memory_budget=memory_budget
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
    neighbour_count = generation.neighbour_count
    if support.size(connection, generation, at_most=neighbour_count) < neighbour_count:
        return  # there is nothing to find before more is ingested, and whatever needs the lists says so
    parameters = approximations.current_parameters(connection, generation)
    job = NewJob("approximate", points, None if parameters is None else parameters.id)
    submission.add_job(classifiers.by_id(connection, generation.id), job)


def forget_answers(engine: Engine, classifier: Classifier) -> int:
    """Delete kept answers that name what has a tombstone of a classifier, and return how many there were.

    What an answer is about is not kept with it, so that one about another classifier goes as well if it holds the same
    id. A request whose answer is gone is executed again if it is sent again.
    """

    def gone(connection: Connection, texts: Collection[str]) -> Collection[str]:
        marks = forgotten.tombstones_of(connection, classifiers.usable(connection, classifier))
        digests = {digest: one for one in texts for digest in (marks.of_exemplar(one), marks.of_document(one))}
        return {digests[digest] for digest in forgotten.forgotten_since(connection, digests)}

    return _search(engine, gone, idempotency.forget)


def count_answers(engine: Engine, ids: Collection[str]) -> int:
    """Return how many kept answers name one of some ids of exemplars or documents."""
    wanted = frozenset(ids)
    return _search(engine, lambda _, texts: wanted.intersection(texts), lambda *_: None)


def _search(engine: Engine, gone: _Gone, on_found: Callable[[Connection, Attempt], None]) -> int:
    """Read all answers once, in order of their keys, and return how many name what is gone."""
    count, last = 0, None
    while True:
        with transaction(engine) as connection:
            answers = idempotency.some_answers(connection, after=last, most=BLOCK)
            if not answers:
                return count
            strings = [set(_STRING.findall(body)) for _, body in answers]
            texts = {string: read for string in set().union(*strings) if (read := _read(string)) is not None}
            found = gone(connection, texts.values())
            for (attempt, _), held in zip(answers, strings, strict=True):
                if any(texts.get(string) in found for string in held):
                    on_found(connection, attempt)
                    count += 1
        last = answers[-1][0]


def _read(string: bytes) -> str | None:
    """A text from its JSON; None if it is none, or none that can be the id of anything."""
    try:
        read: str = json.loads(string)
        read.encode()
    except ValueError:
        return None
    return read
