"""Fitting the KNN approximation, the localizer and the reliability score, or adopting what was fitted elsewhere.

A caller that waits for a fit has workers search the neighbours and fits by itself; otherwise it is a job, whose last
chunk fits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.approximation.distance_tiles import pairwise_distances
from venn_admit.core.approximation.knn import approximate
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel, fit_reliability
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.core.types import IntArray, KnnParameters, Neighbours, TrainingEpoch
from venn_admit.errors import Code, InvalidInputError, NotReadyError
from venn_admit.flows.calibration.approximate import (
    Approximated,
    approximate_points,
    held_classifier,
    neighbours_in_order,
    points_to_approximate,
    require_support,
    take_in_waiting,
)
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.jobs.chunks import ChunkWork
from venn_admit.flows.jobs.submit import Requester, Submission, submit_job
from venn_admit.flows.shell import Shell
from venn_admit.store.database.engine import connect, consistent_view, transaction
from venn_admit.store.exemplars import approximations, classifiers, exemplars, forgotten, neighbours, support
from venn_admit.store.exemplars.approximations import FitRecord, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.support_files import CachedSupport
from venn_admit.store.work import jobs, recalibrations
from venn_admit.store.work.new_jobs import NewJob
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.calibrations import Fit

OnEpoch = Callable[[str, TrainingEpoch], None]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The new current parameters, the record of their fit, and how many recalibrations under them are due."""

    parameters: StoredParameters
    record: FitRecord
    recalibrations: int

    @property
    def figures(self) -> Fit:
        """The parameters that were made, and how well the KNN agrees with the network."""
        record, parameters = self.record, self.parameters
        return Fit(
            knn_parameters=parameters.id,
            fit_points=record.fit_count,
            discrepancies=record.dev_discrepancies,
            points=record.dev_count,
            temperature=parameters.knn.eta,
            localizer_temperature=parameters.eta_loc,
            full_matches=record.full_matches,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ComputedFit:
    """What a fit found, before it is stored.

    classifier: as it was when its training exemplars were read. point_ids: the points that were read besides, (n,)
    int64. job_id: the job that it was computed for; None: the caller waited.
    """

    classifier: Classifier
    point_ids: IntArray
    knn: KnnParameters
    eta_loc: float
    reliability: ReliabilityModel
    record: FitRecord
    job_id: int | None

    def store(self, connection: Connection) -> Fitted:
        """Store the parameters, make them current, and request recalibrations under them.

        Raises NotReadyError if exemplars that they were computed from were forgotten meanwhile, ConflictError or
        NotFoundError if the classifier is being or was deleted.
        """
        support.lock(connection, self.classifier)
        classifiers.usable(connection, self.classifier)
        if self._lost_any(connection):
            raise _changed(self.classifier, "were forgotten", "it may not use them")
        stored = approximations.add_parameters(
            connection, self.classifier, self.knn, self.eta_loc, self.record, self.reliability
        )
        return Fitted(
            stored, self.record, recalibrations.request(connection, self.classifier, recalibrations.NEW_PARAMETERS)
        )

    def apply(self, connection: Connection) -> None:
        """Do what `store` does, and record with the job which parameters it made."""
        stored = self.store(connection)
        assert self.job_id is not None, "computed as a chunk"
        jobs.name_parameters(connection, self.job_id, stored.parameters.id)

    def _lost_any(self, connection: Connection) -> bool:
        trained = forgotten.trained_then(connection, self.classifier, self.classifier.support_version)
        return bool(trained) or exemplars.count_stored(connection, self.point_ids) < len(self.point_ids)


def request_neighbours(workspace: Workspace, name: str) -> int:
    """Submit the job that finds the neighbours a fit needs, and return its key.

    Raises NotReadyError if data are missing, InvalidInputError if there are no vectors.
    """
    take_in_waiting(workspace.engine, name)
    with submit_job(workspace) as submission:
        classifier = _fittable(submission, name)
        lacking = _lacking(submission, classifier)
        return submission.add_job(classifier, NewJob("approximate", lacking, None, completes_neighbours=True))


@dataclass(frozen=True, slots=True)
class FitRequest:
    """A job that was recorded: its key and its rows."""

    job_id: int
    rows: int


def request_fit(
    workspace: Workspace,
    name: str,
    *,
    requester: Requester | None = None,
    on_stored: Callable[[Connection, FitRequest], object] = lambda *_: None,
) -> FitRequest:
    """Record a job that fits: chunks that find neighbours, and a last one that fits on them.

    requester: as in `submit_job`. on_stored: is called with the job in the transaction that records it. Raises
    NotReadyError if data are missing, InvalidInputError if there are no vectors, TooManyJobsError if the requester has
    as many unfinished jobs as it may have.
    """
    take_in_waiting(workspace.engine, name)
    with submit_job(workspace, None, requester=requester) as submission:
        classifier = _fittable(submission, name)
        lacking = _lacking(submission, classifier)
        of_knn = exemplars.split_keys(submission.connection, classifier, Split.KNN).ids
        job_id = submission.add_job(
            classifier, NewJob("fit", lacking, None, completes_neighbours=True, last_ids=of_knn)
        )
        request = FitRequest(job_id, len(lacking) + len(of_knn))
        on_stored(submission.connection, request)
    return request


def _fittable(submission: Submission, name: str) -> Classifier:
    connection = submission.connection
    classifier = held_classifier(connection, classifiers.by_name(connection, name))
    classifiers.require_vectors(classifier, "a fit")
    require_support(connection, classifier)
    require_data(exemplars.split_counts(connection, classifier), classifier)
    classes = exemplars.split_classes(connection, classifier, Split.TRAIN)
    if len(classes) < 2:
        raise NotReadyError(
            f"all training exemplars of {classifier.name!r} have label {classes[0]}, expected two classes or more; "
            "ingest training exemplars of the others",
            code=Code.TOO_FEW_CLASSES,
            classifier=classifier.name,
        )
    return classifier


def _lacking(submission: Submission, classifier: Classifier) -> IntArray:
    return points_to_approximate(submission.connection, classifier, [Split.KNN, Split.VP], None)


def fit(workspace: Workspace, name: str, *, shell: Shell, on_epoch: OnEpoch) -> Fitted:
    """Find the neighbours that a fit needs, fit the KNN and the localizer on them, and make the result current.

    Args:
        on_epoch: Is given the model (`knn`, `localizer`) and each line of its training log.
    """
    name = find(workspace.engine, name).address
    job_id = request_neighbours(workspace, name)
    try:
        shell.run_job(job_id, "Searching neighbours")
        shell.show("Fitting")
        return fit_on_stored(workspace, name, on_epoch=on_epoch)
    finally:
        take_in_waiting(workspace.engine, name, ended=job_id)


def fit_on_stored(workspace: Workspace, name: str, *, on_epoch: OnEpoch) -> Fitted:
    """Fit parameters on the stored neighbours and make them current; training exemplars that waited join afterwards.

    on_epoch is given the model (`knn`, `localizer`) and each line of its training log. What it takes besides the
    memory budget is said in `venn_admit.core.budget`.
    """
    with connect(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
    computed = _compute(workspace, classifier, None, on_epoch=on_epoch)
    with transaction(workspace.engine) as connection:
        stored = computed.store(connection)
    take_in_waiting(workspace.engine, classifier.address)
    return stored


@dataclass(frozen=True, slots=True, eq=False)
class FitChunks:
    """Computes the chunks of jobs that fit: neighbours, and at last the fit itself."""

    workspace: Workspace

    def __call__(self, work: ChunkWork) -> Approximated | ComputedFit:
        """Return the neighbours of a chunk's exemplars, or of the last chunk, the fit."""
        if not work.is_last:
            return approximate_points(self.workspace, work.classifier, work.exemplar_ids, None)
        return _compute(self.workspace, work.classifier, work.job.id, on_epoch=lambda _model, _line: None)


def _compute(workspace: Workspace, classifier: Classifier, job_id: int | None, *, on_epoch: OnEpoch) -> ComputedFit:
    from venn_admit.core.approximation.fit import fit_knn, fit_localizer, localizer_rows

    with consistent_view(workspace.engine) as connection:
        training = workspace.cache.support(workspace.engine, classifier)
        knn, knn_neighbours = _split_neighbours(connection, classifier, training, Split.KNN)
        vp, vp_neighbours = _split_neighbours(connection, classifier, training, Split.VP)
        logits = exemplars.network_logits(connection, classifier, knn.ids)
        labels = exemplars.labels(connection, knn.ids)
        chosen = localizer_rows(knn.row_keys, len(vp.ids), seed=classifier.seed)
        chosen_vectors = workspace.cache.mapped_vectors(connection, classifier, knn.ids[chosen])
        vp_vectors = workspace.cache.mapped_vectors(connection, classifier, vp.ids)

    knn_fit = fit_knn(
        knn_neighbours,
        logits,
        training.support,
        document_keys=knn.document_keys,
        row_keys=knn.row_keys,
        seed=classifier.seed,
        on_epoch=lambda line: on_epoch("knn", line),
    )
    knn_view = approximate(knn_neighbours, training.support, knn_fit.parameters)
    localizer = fit_localizer(
        pairwise_distances(chosen_vectors, vp_vectors, memory_budget=workspace.memory_budget),
        approximate(vp_neighbours, training.support, knn_fit.parameters).logits,
        knn_view.logits[chosen],
        document_keys=[knn.document_keys[row] for row in chosen.tolist()],
        row_keys=[knn.row_keys[row] for row in chosen.tolist()],
        seed=classifier.seed,
        neighbour_count=classifier.neighbour_count,
        on_epoch=lambda line: on_epoch("localizer", line),
    )

    reliability = fit_reliability(logits, knn_view, labels, neighbour_count=classifier.neighbour_count)

    record = FitRecord(
        knn_fit.fit_count,
        knn_fit.dev_count,
        knn_fit.dev_discrepancies,
        float((knn_view.match_count == classifier.neighbour_count).mean()),
        knn_fit.log,
        localizer.log,
    )
    read = np.concatenate([knn.ids, vp.ids])
    return ComputedFit(classifier, read, knn_fit.parameters, localizer.eta_loc, reliability, record, job_id)


def show_fit(engine: Engine, job_id: int) -> Fit:
    """Return what a job has fitted. Raises InvalidInputError if it is no fit, NotReadyError if it is not done."""
    with connect(engine) as connection:
        job = jobs.by_id(connection, job_id)
        if job.kind != "fit":
            raise InvalidInputError(f"job {job_id} is of kind {job.kind}, expected one of kind fit: name another")
        found = approximations.fit_of_job(connection, job_id)
    if found is None:
        raise NotReadyError(f"job {job_id} is {job.state}, expected one that is done: wait for it, or ask for another")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Adopted:
    """The new current parameters, which were given, and how many recalibrations under them are due."""

    parameters: StoredParameters
    recalibrations: int


def adopt_parameters(
    engine: Engine,
    name: str,
    knn: KnnParameters,
    eta_loc: float,
    reliability: ReliabilityModel | None = None,
    *,
    on_stored: Callable[[Connection, Adopted], object] = lambda *_: None,
) -> Adopted:
    """Make given parameters current, such as those that another database exported, and request recalibrations.

    reliability: with their score. on_stored: is called with the parameters in the transaction that stores them.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        classifiers.require_vectors(classifier, "a KNN")
        _check_given(classifier, knn, eta_loc)
        stored = approximations.add_parameters(connection, classifier, knn, eta_loc, None, reliability)
        adopted = Adopted(stored, recalibrations.request(connection, classifier, recalibrations.NEW_PARAMETERS))
        on_stored(connection, adopted)
    return adopted


def _check_given(classifier: Classifier, knn: KnnParameters, eta_loc: float) -> None:
    for symbol, values in (("beta", knn.beta), ("gamma", knn.gamma)):
        if values.shape != (classifier.class_count,) or not np.isfinite(values).all():
            raise InvalidInputError(
                f"{symbol}: expected {classifier.class_count} finite numbers, one per class of {classifier.name!r}, "
                f"got {values.tolist()}"
            )
    for symbol, value in (("eta", knn.eta), ("eta_loc", eta_loc)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidInputError(f"{symbol}: expected a finite number above 0, got {value}")


def require_data(counts: dict[Split, int], classifier: Classifier) -> None:
    """Raise NotReadyError unless each split of held-out data has exemplars."""
    for split in HELD_OUT_SPLITS:
        if not counts[split]:
            raise NotReadyError(
                f"no exemplars of {classifier.name!r} are in split {split}: ingest held-out data, a few hundred "
                "points at least",
                code=Code.NO_HELD_OUT_DATA,
                classifier=classifier.name,
            )


def _changed(classifier: Classifier, what: str, so: str) -> NotReadyError:
    return NotReadyError(
        f"exemplars of {classifier.name!r} {what} during the fit, so {so}: run the fit again",
        code=Code.CHANGED_DURING_FIT,
        classifier=classifier.name,
    )


def _split_neighbours(
    connection: Connection, classifier: Classifier, training: CachedSupport, split: Split
) -> tuple[exemplars.ExemplarKeys, Neighbours]:
    keys = exemplars.split_keys(connection, classifier, split)
    stored = neighbours.read(connection, classifier, keys.ids)
    if len(stored.exemplar_ids) != len(keys.ids) or (stored.support_version != classifier.support_version).any():
        raise _changed(classifier, "arrived or changed", f"neighbours in split {split} are out of date")
    return keys, neighbours_in_order(stored, keys.ids, training)
