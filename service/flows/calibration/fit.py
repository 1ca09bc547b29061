"""Fitting the KNN approximation, the localizer and the reliability score, or adopting what was fitted elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Engine

from venn_admit.service.core.approximation.knn import approximate
from venn_admit.service.core.approximation.localizer import pairwise_distances
from venn_admit.service.core.calibrators.venn_abers.reliability import ReliabilityModel, fit_reliability
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.core.types import HELD_OUT_SPLITS, KnnParameters, Neighbours, Split, TrainingEpoch
from venn_admit.service.errors import Code, InvalidInputError, NotReadyError
from venn_admit.service.flows.calibration.approximate import neighbours_in_order, points_to_approximate, require_support
from venn_admit.service.flows.jobs.submit import Send, submit_job
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.exemplars import approximations, classifiers, exemplars
from venn_admit.service.store.exemplars.approximations import FitRecord, StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache, CachedSupport

OnEpoch = Callable[[str, TrainingEpoch], None]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The new current parameters, and the record of their fit."""

    parameters: StoredParameters
    record: FitRecord


def request_neighbours(engine: Engine, name: str, *, chunk_rows: int, send: Send | None = None) -> int:
    """Submit the job that finds the neighbours a fit needs, and return its key.

    send: as for `submit_job`. Raises NotReadyError if data are missing, InvalidInputError if there are no vectors.
    """
    with submit_job(engine, send) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        classifiers.require_vectors(classifier, "a fit")
        require_support(connection, classifier)
        _require_data(exemplars.split_counts(connection, classifier), classifier)
        classes = exemplars.split_classes(connection, classifier, Split.TRAIN)
        if len(classes) < 2:
            raise NotReadyError(
                f"all training exemplars of {classifier.name!r} have label {classes[0]}, expected two classes or more; "
                "ingest training exemplars of the others",
                code=Code.TOO_FEW_CLASSES,
                classifier=classifier.name,
            )
        return submission.add_job(
            classifier,
            kind="approximate",
            exemplar_ids=points_to_approximate(connection, classifier, [Split.KNN, Split.VP], None),
            chunk_rows=chunk_rows,
            knn_parameters_id=None,
            completes_neighbours=True,
        )


def fit(
    engine: Engine,
    cache: ArrayCache,
    name: str,
    *,
    on_epoch: OnEpoch,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Fitted:
    """Fit parameters on the stored neighbours and make them current.

    on_epoch is given the model (`knn`, `localizer`) and each line of its training log. memory_budget: bytes that
    temporary arrays may take, besides what `venn_admit.service.core.memory` says of fits.
    """
    from venn_admit.service.core.approximation.knn_fit import fit_knn
    from venn_admit.service.core.approximation.localizer_fit import fit_localizer, localizer_rows

    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        support = cache.support(engine, classifier)
        knn, knn_neighbours = _split_neighbours(engine, classifier, support, Split.KNN)
        vp, vp_neighbours = _split_neighbours(engine, classifier, support, Split.VP)
        logits = exemplars.network_logits(connection, classifier, knn.ids)
        labels = exemplars.labels(connection, knn.ids)
        chosen = localizer_rows(knn.row_keys, len(vp.ids), seed=classifier.seed)
        chosen_vectors = exemplars.vectors(connection, classifier, knn.ids[chosen])
        vp_vectors = exemplars.vectors(connection, classifier, vp.ids)

    knn_fit = fit_knn(
        knn_neighbours,
        logits,
        support.support,
        document_keys=knn.document_keys,
        row_keys=knn.row_keys,
        seed=classifier.seed,
        on_epoch=lambda line: on_epoch("knn", line),
    )
    knn_view = approximate(knn_neighbours, support.support, knn_fit.parameters)
    localizer = fit_localizer(
        pairwise_distances(chosen_vectors, vp_vectors, memory_budget=memory_budget),
        approximate(vp_neighbours, support.support, knn_fit.parameters).logits,
        knn_view.logits[chosen],
        document_keys=[knn.document_keys[row] for row in chosen.tolist()],
        row_keys=[knn.row_keys[row] for row in chosen.tolist()],
        seed=classifier.seed,
        neighbour_count=classifier.neighbour_count,
        on_epoch=lambda line: on_epoch("localizer", line),
    )

    reliability = fit_reliability(logits, knn_view, labels, neighbour_count=classifier.neighbour_count)

    record = FitRecord(knn_fit.fit_count, knn_fit.dev_count, knn_fit.dev_discrepancies, knn_fit.log, localizer.log)
    with transaction(engine) as connection:
        stored = approximations.add_parameters(
            connection, classifier, knn_fit.parameters, localizer.eta_loc, record, reliability
        )
    return Fitted(stored, record)


def adopt_parameters(
    engine: Engine, name: str, knn: KnnParameters, eta_loc: float, reliability: ReliabilityModel | None = None
) -> StoredParameters:
    """Make given parameters current, such as those that another database exported; reliability: with their score."""
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        classifiers.require_vectors(classifier, "a KNN")
        _check_given(classifier, knn, eta_loc)
        return approximations.add_parameters(connection, classifier, knn, eta_loc, None, reliability)


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


def _require_data(counts: dict[Split, int], classifier: Classifier) -> None:
    for split in HELD_OUT_SPLITS:
        if not counts[split]:
            raise NotReadyError(
                f"no exemplars of {classifier.name!r} are in split {split}: ingest held-out data, a few hundred "
                "documents at least",
                code=Code.NO_HELD_OUT_DATA,
                classifier=classifier.name,
            )


def _split_neighbours(
    engine: Engine, classifier: Classifier, support: CachedSupport, split: Split
) -> tuple[exemplars.ExemplarKeys, Neighbours]:
    with connect(engine) as connection:
        keys = exemplars.split_keys(connection, classifier, split)
        stored = approximations.read_neighbours(connection, classifier, keys.ids)
    if len(stored.exemplar_ids) != len(keys.ids) or (stored.support_version != classifier.support_version).any():
        raise NotReadyError(
            f"exemplars of {classifier.name!r} arrived or changed during the fit, so neighbours in split {split} are "
            "out of date: run the fit again",
            code=Code.CHANGED_DURING_FIT,
            classifier=classifier.name,
        )
    return keys, neighbours_in_order(stored, keys.ids, support)
