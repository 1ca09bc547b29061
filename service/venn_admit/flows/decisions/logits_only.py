"""Decisions of a classifier with logits only: no vector is read, no neighbour searched, and no torch imported."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import Code, InvalidInputError
from venn_admit.methods.method import PointsToDecide
from venn_admit.store.calibrations import calibrations
from venn_admit.store.decisions import audits, decisions
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars import support
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors
from venn_admit.store.work.jobs import Job


@dataclass(frozen=True, slots=True, eq=False)
class ScoredLogits:
    """Decisions on n exemplars, (n,) int64."""

    job: Job
    classifier: Classifier
    exemplar_ids: IntArray
    decided: Decided

    def apply(self, connection: Connection) -> None:
        """Store the decisions, or raise as `store` does."""
        support.lock_for_results(connection, self.classifier)
        store(connection, self.job, self.classifier, self.exemplar_ids, self.decided)


def store(connection: Connection, job: Job, classifier: Classifier, exemplar_ids: IntArray, decided: Decided) -> None:
    """Store decisions; OutdatedError if points of the snapshot were forgotten since the job was recorded."""
    assert job.calibration_id is not None, "a job that scores names a calibration"
    calibrations.require_whole(connection, classifier, calibrations.by_id(connection, classifier, job.calibration_id))
    decisions.write(connection, job, exemplar_ids, classifier.support_version, decided)
    audits.draw(connection, classifier.id, exemplar_ids, decided)


def point_of_logits(classifier: Classifier, vector: Float32Array | None, logits: Float32Array | None) -> PointsToDecide:
    """Return one point to decide on; InvalidInputError unless it is given by finite logits (C,) alone."""
    if vector is not None:
        raise InvalidInputError(
            f"expected logits alone, as classifier {classifier.name!r} has no vectors, got a vector; leave it out",
            code=Code.VECTORS_UNWANTED,
        )
    if logits is None:
        raise InvalidInputError(f"expected the network's logits, which classifier {classifier.name!r} decides on")
    if logits.shape != (classifier.class_count,) or not np.isfinite(logits).all():
        raise InvalidInputError(
            f"logits: expected {classifier.class_count} finite numbers that float32 can hold, one for each class of "
            f"{classifier.name!r}, got {logits.tolist()}"
        )
    return PointsToDecide(None, None, logits[np.newaxis])


def require_decidable(classifier: Classifier, *, weighted: bool, require_full_match: bool) -> None:
    """Raise InvalidInputError if decisions are asked for that need vectors, of a classifier with logits only."""
    if weighted:
        require_vectors(classifier, "a weighted decision")
    if require_full_match:
        require_vectors(classifier, "a full match")
