"""Labelled, scored points put side by side: what each method admits, and how often it is right."""

from pathlib import Path

import numpy as np
from sqlalchemy import Engine

from service.core.evaluation import EvaluationPoints
from service.core.localizer import localizer_logits
from service.core.types import Float32Array, FloatArray, Split
from service.errors import InvalidInputError
from service.files import read_exemplars
from service.report.dataset import DatasetReport, build_dataset_report
from service.store import approximations, calibrations, classifiers, decisions, exemplars, jobs
from service.store.classifiers import Classifier
from service.store.engine import connect

_BLOCK_ROWS = 16_384


def require_labels(engine: Engine, name: str, path: Path) -> None:
    """Raise InvalidInputError unless the file can be read and some row has a label: before anything is stored."""
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
    batches = read_exemplars(path, dimension=classifier.dimension, class_count=classifier.class_count)
    if not sum(int((batch.labels >= 0).sum()) for batch in batches):
        raise InvalidInputError(f"{path}: expected labelled rows to evaluate on, got none; add the labels")


def evaluate(engine: Engine, title: str, *, weighted_job: int, plain_job: int) -> DatasetReport:
    """Compare the methods on the labelled rows of one file, scored with and without weights.

    title: what the report calls the data. The jobs score the same rows, of which some have a label, with
    the same snapshot, and reject nothing for its q.
    """
    with connect(engine) as connection:
        job = jobs.by_id(connection, weighted_job)
        assert job.calibration_id is not None
        classifier = classifiers.by_id(connection, job.classifier_id)
        calibration = calibrations.by_id(connection, classifier, job.calibration_id)
        parameters = approximations.parameters_by_id(connection, calibration.knn_parameters_id)
        weighted = decisions.evaluated_rows(connection, classifier, weighted_job)
        plain = decisions.evaluated_rows(connection, classifier, plain_job)
        queries = exemplars.vectors(connection, classifier, weighted.exemplar_ids)
        vp_vectors, vp_logits = _localizer_data(engine, classifier, parameters.id)

    localizer = localizer_logits(queries, vp_vectors, vp_logits, parameters.eta_loc)
    points = EvaluationPoints(
        label=weighted.label,
        network_predicted=weighted.network_predicted,
        predicted=weighted.approximation.predicted,
        localizer_predicted=localizer.argmax(axis=1),
        match_count=weighted.approximation.match_count,
        distance=weighted.approximation.distance,
        logits=weighted.approximation.logits,
        included=weighted.included,
        lower_plain=plain.lower,
        lower_weighted=weighted.lower,
        decision_plain=plain.decision,
        decision_weighted=weighted.decision,
    )
    return build_dataset_report(
        title, classifier.class_names, points, classifier.neighbour_count, calibration.settings.alpha
    )


def _localizer_data(engine: Engine, classifier: Classifier, knn_parameters_id: int) -> tuple[Float32Array, FloatArray]:
    """Vectors and KNN logits of vp."""
    vectors, logits = [], []
    with connect(engine) as connection, connect(engine) as other:
        for block in approximations.split_blocks(connection, classifier, Split.VP, knn_parameters_id, _BLOCK_ROWS):
            vectors.append(exemplars.vectors(other, classifier, block.exemplar_ids))
            logits.append(block.approximation.logits)
    return np.concatenate(vectors), np.concatenate(logits)
