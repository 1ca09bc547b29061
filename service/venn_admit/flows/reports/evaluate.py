"""Labelled, scored points put side by side: what each method admits, and how often it is right."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from venn_admit.core.calibrators.settings import CalibratorSettings, VennAbersSettings
from venn_admit.core.comparison.adaptive import AdaptiveRule, uniform_draws
from venn_admit.core.comparison.held_out import ViewedPoints
from venn_admit.core.comparison.methods import ComparisonParameters, ComparisonPoints, comparison_methods
from venn_admit.core.comparison.selective import Promise, selective_methods
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.points import EvaluationPoints
from venn_admit.core.types import Float32Array, IntArray, SelectiveMethod
from venn_admit.errors import InvalidInputError
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.calibration.approximate import require_support
from venn_admit.flows.data.ingest import store_scored
from venn_admit.flows.decisions.score import add_score_job
from venn_admit.flows.jobs.submit import Submission, submit_job
from venn_admit.flows.reports.held_out import comparison_calibration, predicted_calibration_data, read_held_out
from venn_admit.flows.shell import UNWATCHED, Display, OnRows, Shell
from venn_admit.methods.describing import PointsToJudge
from venn_admit.methods.registry import METHODS, load_snapshot, settled_weights
from venn_admit.report.evaluation.dataset import DatasetReport, build_dataset_report
from venn_admit.report.evaluation.evaluated import EvaluatedCalibration
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import connect
from venn_admit.store.decisions import decisions, evaluations, reports
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


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
    workspace: Workspace,
    name: str,
    source: ExemplarSource,
    *,
    calibration_id: int | None,
    on_rows: OnRows = lambda _: None,
) -> EvaluationRequest:
    """Store a source's exemplars and submit the job that scores its labelled rows, recorded in the same transaction.

    calibration_id: the snapshot to use; None: the one in use. Raises InvalidInputError if no row has a
    label, or if the snapshot was made with all that have; nothing is stored then.
    """
    with submit_job(workspace) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.held(connection, classifier, calibration_id)
        calibrations.require_whole(connection, classifier, calibration)
        exemplar_ids = store_scored(connection, classifier, source, on_rows)
        labelled = evaluations.labelled(connection, calibration, exemplar_ids)
        if not labelled.ids.size and not labelled.seen_count:
            raise InvalidInputError(f"{source}: expected labelled rows to evaluate on, got none; add the labels")
        # What a caller names is what the shares are of, however its labels were chosen.
        return _request(submission, classifier, calibration, replace(labelled, chosen_count=0), str(source))


def request_evaluation_of_decisions(
    workspace: Workspace, name: str, *, calibration_id: int | None
) -> EvaluationRequest:
    """Submit the job that completes a calibration's labelled decisions, which were made under whichever options.

    calibration_id: as above. Raises InvalidInputError where no labelled exemplar was scored with it, or the
    snapshot was made with all that were.
    """
    with submit_job(workspace) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.held(connection, classifier, calibration_id)
        calibrations.require_whole(connection, classifier, calibration)
        labelled = evaluations.labelled(connection, calibration, evaluations.decided(connection, calibration))
        if not labelled.ids.size and not labelled.seen_count:
            raise InvalidInputError(
                f"calibration {calibration.id} of {classifier.name!r} has decided on no labelled exemplar: score a "
                "file that has labels, or name one to evaluate"
            )
        return _request(submission, classifier, calibration, labelled, f"calibration {calibration.id}")


def evaluate(
    workspace: Workspace,
    name: str,
    source: ExemplarSource | None,
    *,
    title: str | None,
    calibration_id: int | None,
    shell: Shell,
) -> DatasetReport:
    """Decide on labelled exemplars, and compare what each method admits of them and how often it is right.

    Args:
        source: The exemplars; None: all labelled ones that the calibration has decided on.
        title: What the report calls them; None: the name of the source, or the calibration.

    Raises:
        InvalidInputError: There is nothing labelled, or the snapshot was made with all that is.
    """
    if source is None:
        request = request_evaluation_of_decisions(workspace, name, calibration_id=calibration_id)
    else:
        shell.show(f"Storing {source.name}", source.count_rows())
        request = request_evaluation_of_source(
            workspace, name, source, calibration_id=calibration_id, on_rows=shell.advance
        )
    shown = title or (f"calibration {request.calibration_id}" if source is None else source.name)
    if request.job_id is not None:
        shell.run_job(request.job_id, f"Scoring {shown}")
    return compare_methods(workspace, request, shown, display=shell)


def evaluate_sets(
    workspace: Workspace, name: str, sources: Mapping[str, ExemplarSource], *, calibration_id: int | None, shell: Shell
) -> tuple[DatasetReport, ...]:
    """Evaluate several sets by the same calibration, as `evaluate` does each.

    sources: the exemplars, by what the report calls them. calibration_id: None: the one in use when it begins.
    """
    if calibration_id is None:
        with connect(workspace.engine) as connection:
            calibration_id = calibrations.latest(connection, classifiers.by_name(connection, name)).id
    return tuple(
        evaluate(workspace, name, source, title=title, calibration_id=calibration_id, shell=shell)
        for title, source in sources.items()
    )


def compare_methods(
    workspace: Workspace, request: EvaluationRequest, title: str, *, display: Display = UNWATCHED
) -> DatasetReport:
    """Compare the methods on the points of a request whose job is done; title: what the report calls them.

    The comparison methods are calibrated on mc and vp as the snapshot has them, and on knn as it is now.
    """

    def on_method(name: str, points: int | None = None) -> None:
        display.show(f"Comparing {name}", points)

    display.show("Reading the decisions")
    classifier, exemplar_ids = request.classifier, request.labelled.ids
    knn = classifier.knn
    snapshot = load_snapshot(workspace, classifier, request.calibration_id)
    calibration = snapshot.calibration
    method, settings = METHODS[calibration.method], calibration.method_settings
    weighted = settled_weights(calibration, None)
    with connect(workspace.engine) as connection:
        rows = evaluations.evaluated_rows(
            connection, classifier, request.calibration_id, exemplar_ids, weighted=weighted
        )
        keys = exemplars.keys(connection, exemplar_ids)
        groups = exemplars.groups(connection, exemplar_ids, calibration.group_attributes)
        vectors = None if knn is None else workspace.cache.mapped_vectors(connection, classifier, exemplar_ids)
        held_out = read_held_out(workspace, connection, classifier, snapshot, besides=exemplar_ids)
        calibration_data, rows_of = comparison_calibration(workspace, connection, classifier, held_out)
        origin = reports.snapshot_origin(connection, calibration)

    def held_out_vectors(numbers: IntArray) -> Float32Array:
        assert calibration_data.vectors is not None, "a classifier with logits only has no vectors"
        return workspace.cache.mapped_rows(calibration_data.vectors, rows_of[numbers])

    def vp_vectors(order: IntArray) -> Float32Array:
        return held_out_vectors(held_out.vp[order])

    on_method(calibration.method)
    judged = method.judge(snapshot, PointsToJudge(classifier, rows, vectors, held_out.splits, vp_vectors))
    compared = comparison_methods(
        calibration_data,
        ComparisonPoints(
            network_logits=rows.network_logits,
            knn_logits=None if rows.approximation is None else rows.approximation.logits,
            vectors=vectors,
            draws=uniform_draws(keys.row_keys, seed=classifier.seed),
        ),
        alpha=settings.alpha,
        eta_loc=None if knn is None else snapshot.parameters.eta_loc,
        seed=classifier.seed,
        memory_budget=workspace.memory_budget,
        on_method=on_method,
        on_points=display.advance,
    )
    selective = selective_methods(
        held_out.splits,
        ViewedPoints(rows.network_logits, rows.approximation),
        Promise(alpha=settings.alpha, thresholds=settings.thresholds),
        temperature=compared.parameters.temperature,
        neighbour_count=classifier.neighbours,
        seed=classifier.seed,
        on_method=on_method,
    )
    display.show("Predicting the calibration data")
    has_localizer = knn is not None and judged.localizer_predicted is not None
    points = EvaluationPoints(
        label=rows.label,
        class_count=classifier.class_count,
        network_predicted=rows.network_predicted,
        view=rows.approximation,
        localizer_predicted=judged.localizer_predicted,
        admit=judged.admit,
        bands_part=isinstance(settings, CalibratorSettings) and settings.bands_part,
        comparisons=compared.sets,
        selective=_with_own(selective.methods, judged.selective),
        documents=documents_of(keys.document_keys),
        calibrated_by=judged.own,
        groups=groups,
        calibration_data=predicted_calibration_data(
            classifier,
            held_out,
            held_out_vectors,
            snapshot.parameters.eta_loc if has_localizer else None,
            memory_budget=workspace.memory_budget,
        ),
    )
    display.show("Counting shares and their intervals")
    return build_dataset_report(
        title,
        classifier.class_names,
        points,
        classifier.neighbours,
        settings.alpha,
        parameters=(*_described(compared.parameters), *judged.parameters, *selective.parameters),
        left_out=request.labelled.seen_count,
        chosen=request.labelled.chosen_count,
        calibration=EvaluatedCalibration(
            id=calibration.id,
            created_at=origin.created_at,
            method=calibration.method,
            settings=judged.settings,
            weighted=weighted,
            mc_count=calibration.mc_count,
            vp_count=calibration.vp_count,
        ),
        loss=None
        if not isinstance(settings, VennAbersSettings) or settings.loss is None
        else np.array(settings.loss, dtype=np.float64),
    )


def _with_own(rivals: tuple[SelectiveMethod, ...], own: tuple[SelectiveMethod, ...]) -> tuple[SelectiveMethod, ...]:
    """The rivals, of which one of the same name as the calibration's method gives it its place."""
    return tuple(({one.name: one for one in rivals} | {one.name: one for one in own}).values())


def _request(
    submission: Submission,
    classifier: Classifier,
    calibration: Calibration,
    labelled: evaluations.LabelledExemplars,
    where: str,
) -> EvaluationRequest:
    if not labelled.ids.size:
        raise InvalidInputError(
            f"{where}: all {labelled.seen_count:,} labelled rows are training or calibration data of calibration "
            f"{calibration.id}, and say nothing about it; evaluate on others"
        )
    if classifier.knn is not None:
        require_support(submission.connection, classifier)
    weighted = settled_weights(calibration, None)
    undecided = decisions.undecided(
        submission.connection, labelled.ids, calibration_id=calibration.id, weighted=weighted, require_full_match=False
    )
    if not undecided.size:
        return EvaluationRequest(classifier, calibration.id, labelled, None)
    job_id = add_score_job(submission, classifier, calibration, undecided, weighted=weighted, require_full_match=False)
    return EvaluationRequest(classifier, calibration.id, labelled, job_id)


def _described(parameters: ComparisonParameters) -> tuple[tuple[str, str], ...]:
    """What the comparison methods came to, in words."""

    def rule(rule: AdaptiveRule) -> str:
        return f"k_reg {rule.k_reg}, lambda {rule.penalty:g}, threshold {rule.threshold:.4g}"

    conf_threshold = parameters.conf_threshold
    return (
        *(() if conf_threshold is None else (("Conf_BASE", f"threshold {conf_threshold:.4g}"),)),
        ("temperature", f"{parameters.temperature:.4g}"),
        ("APS", f"threshold {parameters.aps.threshold:.4g}"),
        ("RAPS adaptiveness", rule(parameters.raps.adaptiveness)),
        ("RAPS size", rule(parameters.raps.size)),
    )
