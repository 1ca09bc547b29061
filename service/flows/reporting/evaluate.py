"""Labelled, scored points put side by side: what each method admits, and how often it is right."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from venn_admit.service.core.approximation.localizer import localizer_logits
from venn_admit.service.core.calibrators.venn_admit.decide import decide
from venn_admit.service.core.comparison.adaptive import AdaptiveRule, uniform_draws
from venn_admit.service.core.comparison.held_out import ViewedPoints
from venn_admit.service.core.comparison.methods import (
    ComparisonParameters,
    ComparisonPoints,
    comparison_methods,
)
from venn_admit.service.core.comparison.selective import (
    Promise,
    selective_methods,
)
from venn_admit.service.core.documents import documents_of
from venn_admit.service.core.evaluation.points import EvaluationPoints
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.files.sources import ExemplarSource
from venn_admit.service.flows.calibration.approximate import require_support
from venn_admit.service.flows.decisions.score import load_snapshot
from venn_admit.service.flows.exemplars.ingest import store_scored
from venn_admit.service.flows.jobs.submit import Send, Submission, submit_job
from venn_admit.service.flows.methods.venn_admit.snapshot import require_own
from venn_admit.service.flows.reporting.held_out import comparison_calibration, read_held_out
from venn_admit.service.report.evaluation.dataset import DatasetReport, EvaluatedCalibration, build_dataset_report
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.database.engine import connect
from venn_admit.service.store.decisions import decisions, evaluations, reports
from venn_admit.service.store.exemplars import classifiers, exemplars
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationRequest:
    """What is to be evaluated, and the job that decides on what of it is not decided yet; None where all is.

    labelled: the points; those the calibration was made with are left out.
    """

    classifier: Classifier
    calibration_id: int
    labelled: evaluations.LabelledExemplars
    job_id: int | None


def request_evaluation_of_source(
    engine: Engine,
    name: str,
    source: ExemplarSource,
    *,
    calibration_id: int | None,
    chunk_rows: int,
    on_rows: Callable[[int], None] = lambda _: None,
    send: Send | None = None,
) -> EvaluationRequest:
    """Store a source's exemplars and submit the job that scores its labelled rows, recorded in the same transaction.

    calibration_id: the snapshot to use; None: the current one. send: as for `submit_job`. Raises InvalidInputError if
    no row has a label, or if the snapshot was made with all that have; nothing is stored then.
    """
    with submit_job(engine, send) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.held(connection, classifier, calibration_id)
        require_own(calibration)
        exemplar_ids = store_scored(connection, classifier, source, on_rows)
        labelled = evaluations.labelled(connection, calibration, exemplar_ids)
        if not labelled.ids.size and not labelled.seen_count:
            raise InvalidInputError(f"{source}: expected labelled rows to evaluate on, got none; add the labels")
        return _request(submission, classifier, calibration, labelled, str(source), chunk_rows)


def request_evaluation_of_decisions(
    engine: Engine, name: str, *, calibration_id: int | None, chunk_rows: int, send: Send | None = None
) -> EvaluationRequest:
    """Submit the job that completes a calibration's labelled decisions, which were made under whichever options.

    calibration_id, send: as above. Raises InvalidInputError where no labelled exemplar was scored with it, or the
    snapshot was made with all that were.
    """
    with submit_job(engine, send) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.held(connection, classifier, calibration_id)
        require_own(calibration)
        labelled = evaluations.labelled(connection, calibration, evaluations.decided(connection, calibration))
        if not labelled.ids.size and not labelled.seen_count:
            raise InvalidInputError(
                f"calibration {calibration.id} of {name!r} has decided on no labelled exemplar: score a file that has "
                "labels, or name one to evaluate"
            )
        return _request(submission, classifier, calibration, labelled, f"calibration {calibration.id}", chunk_rows)


def evaluate(
    engine: Engine,
    cache: ArrayCache,
    request: EvaluationRequest,
    title: str,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> DatasetReport:
    """Compare the methods on the points of a request whose job is done; title: what the report calls them.

    The comparison methods are calibrated on mc and vp as the snapshot has them, and on knn as it is now.
    memory_budget: bytes that temporary arrays may take.
    """
    classifier, exemplar_ids = request.classifier, request.labelled.ids
    snapshot = load_snapshot(engine, cache, classifier, request.calibration_id)
    settings, eta_loc = snapshot.calibration.settings, snapshot.parameters.eta_loc
    with connect(engine) as connection:
        rows = evaluations.evaluated_rows(connection, classifier, request.calibration_id, exemplar_ids)
        keys = exemplars.keys(connection, exemplar_ids)
        vectors = exemplars.vectors(connection, classifier, exemplar_ids)
        held_out = read_held_out(connection, classifier, snapshot, memory_budget)
        calibration_data = comparison_calibration(connection, classifier, held_out)
        origin = reports.snapshot_origin(connection, snapshot.calibration)

    approximation = rows.approximation
    plain = decide(
        snapshot.admit,
        snapshot.venn,
        approximation,
        settings,
        neighbour_count=classifier.neighbour_count,
        require_full_match=False,
        localizer=None,
        memory_budget=memory_budget,
    )
    compared = comparison_methods(
        calibration_data,
        ComparisonPoints(
            network_logits=rows.network_logits,
            knn_logits=approximation.logits,
            vectors=vectors,
            draws=uniform_draws(keys.row_keys, seed=classifier.seed),
        ),
        alpha=settings.alpha,
        eta_loc=eta_loc,
        seed=classifier.seed,
        memory_budget=memory_budget,
    )
    selective = selective_methods(
        held_out.splits,
        ViewedPoints(rows.network_logits, approximation),
        Promise(alpha=settings.alpha, thresholds=settings.thresholds),
        temperature=compared.parameters.temperature,
        neighbour_count=classifier.neighbour_count,
        seed=classifier.seed,
    )
    # The localizer's vectors are in the order of the Venn index.
    vp_logits = held_out.splits.vp.seen.view.logits[snapshot.venn.order]
    localized = localizer_logits(vectors, snapshot.localizer_vectors, vp_logits, eta_loc, memory_budget=memory_budget)
    points = EvaluationPoints(
        label=rows.label,
        network_predicted=rows.network_predicted,
        predicted=approximation.predicted,
        localizer_predicted=localized.argmax(axis=1),
        match_count=approximation.match_count,
        distance=approximation.distance,
        logits=approximation.logits,
        included=rows.included,
        lower_plain=plain.probabilities.lower,
        upper_plain=plain.probabilities.upper,
        lower_weighted=rows.lower,
        upper_weighted=rows.upper,
        admitted_plain=plain.selection.decision >= 0,
        admitted_weighted=rows.admitted,
        comparisons=compared.sets,
        selective=selective.methods,
        documents=documents_of(keys.document_keys),
    )
    return build_dataset_report(
        title,
        classifier.class_names,
        points,
        classifier.neighbour_count,
        settings.alpha,
        parameters=(*_described(compared.parameters), *selective.parameters),
        left_out=request.labelled.seen_count,
        calibration=EvaluatedCalibration(
            id=snapshot.calibration.id,
            created_at=origin.created_at,
            settings=settings,
            mc_count=snapshot.calibration.mc_count,
            vp_count=snapshot.calibration.vp_count,
        ),
    )


def _request(
    submission: Submission,
    classifier: Classifier,
    calibration: Calibration,
    labelled: evaluations.LabelledExemplars,
    where: str,
    chunk_rows: int,
) -> EvaluationRequest:
    if not labelled.ids.size:
        raise InvalidInputError(
            f"{where}: all {labelled.seen_count:,} labelled rows are training or calibration data of calibration "
            f"{calibration.id}, and say nothing about it; evaluate on others"
        )
    require_support(submission.connection, classifier)
    undecided = decisions.undecided(
        submission.connection, labelled.ids, calibration_id=calibration.id, weighted=True, require_full_match=False
    )
    if not undecided.size:
        return EvaluationRequest(classifier, calibration.id, labelled, None)
    job_id = submission.add_job(
        classifier,
        kind="score",
        exemplar_ids=undecided,
        chunk_rows=chunk_rows,
        knn_parameters_id=calibration.knn_parameters_id,
        calibration_id=calibration.id,
        weighted=True,
        require_full_match=False,
    )
    return EvaluationRequest(classifier, calibration.id, labelled, job_id)


def _described(parameters: ComparisonParameters) -> tuple[tuple[str, str], ...]:
    """What the comparison methods came to, in words."""

    def rule(rule: AdaptiveRule) -> str:
        return f"k_reg {rule.k_reg}, lambda {rule.penalty:g}, threshold {rule.threshold:.4g}"

    return (
        ("Conf_BASE", f"threshold {parameters.conf_threshold:.4g}"),
        ("temperature", f"{parameters.temperature:.4g}"),
        ("APS", f"threshold {parameters.aps.threshold:.4g}"),
        ("RAPS adaptiveness", rule(parameters.raps.adaptiveness)),
        ("RAPS size", rule(parameters.raps.size)),
    )
