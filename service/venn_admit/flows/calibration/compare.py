"""What settings of each method would admit of mc, to choose one before vp is looked at; no label of vp is read.

The strongest promise and certificates are tested on mc too, so they are foretold from the points that propose.
"""

from decimal import Decimal

from sqlalchemy import Connection

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.settings import CalibratorSettings, check_alpha
from venn_admit.core.calibrators.venn_admit.crossfit import PointsLocalizer
from venn_admit.core.comparison.candidates import CrossFitting, cross_fitted_candidates
from venn_admit.core.comparison.divisions import division_shares
from venn_admit.core.comparison.foretold import foretold_candidates
from venn_admit.core.comparison.held_out import HeldOutPoints, ScoredSplits, document_sample
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.measures import measure_admission
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.flows.calibration.approximate import held_classifier, points_to_approximate, take_in_waiting
from venn_admit.flows.calibration.calibrate import (
    LackingPoints,
    add_approximation_job,
    require_approximations,
    require_classes,
    usable_parameters,
)
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.jobs.submit import submit_job
from venn_admit.flows.shell import Shell
from venn_admit.methods.registry import METHODS
from venn_admit.methods.venn_abers.split_points import read_knn, read_split
from venn_admit.report.what_if.compared import ComparedSetting, ComparedSettings, ForetoldSetting
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.approximations import StoredParameters, require_parameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

MOST_JUDGED = 10_000
"""About how many points are decided on if there are more: weights take the distance of each to all others."""


def request_mc(workspace: Workspace, name: str, alpha: Decimal) -> int | None:
    """Submit the job that brings knn and mc up to date under the current parameters, and return its key, if one is due.

    Raises InvalidInputError for alpha, and NotReadyError before the first fit or if data are missing.
    """
    check_alpha(alpha)
    take_in_waiting(workspace.engine, name)
    with submit_job(workspace) as submission:
        connection = submission.connection
        classifier = held_classifier(connection, classifiers.by_name(connection, name))
        parameters = usable_parameters(connection, classifier)
        require_classes(connection, classifier, [Split.MC])
        if parameters is None:
            return None
        lacking = points_to_approximate(connection, classifier, [Split.KNN, Split.MC], parameters)
        if not len(lacking):
            return None
        points = LackingPoints(lacking, parameters)
        return add_approximation_job(submission, classifier, points)


def compare(workspace: Workspace, name: str, alpha: Decimal, *, shell: Shell) -> ComparedSettings:
    """Bring the approximations of knn and mc up to date, and show what settings of each method admit."""
    name = find(workspace.engine, name).address
    job_id = request_mc(workspace, name, alpha)
    try:
        if job_id is not None:
            shell.run_job(job_id, "Approximating")
        shell.show("Comparing settings")
        return compare_on_stored(workspace, name, alpha)
    finally:
        take_in_waiting(workspace.engine, name, ended=job_id)


def compare_on_stored(workspace: Workspace, name: str, alpha: Decimal) -> ComparedSettings:
    """Cross-fit settings of each method on whole documents of mc, with the weights that are its default.

    Certificates are foretold. Nothing is stored. The approximations must be, as the job of `request_mc` does.
    Raises as `request_mc`, and OutdatedError if data arrived since.
    """
    check_alpha(alpha)
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        parameters = parameters_of_mc(connection, classifier)
        require_classes(connection, classifier, [Split.MC])
        mc, localizer = read_mc(workspace, connection, classifier, parameters)
        if parameters is not None:
            require_approximations(connection, classifier, [Split.KNN], parameters)
        knn = read_knn(connection, classifier, parameters, memory_budget=workspace.memory_budget)
        of_knn = None if knn is None else knn.held_out(connection)
    given = cross_fitting(workspace, classifier, mc, parameters, localizer)
    judged, found = given.judged, cross_fitted_candidates(given, alpha)
    documents = documents_of([mc.keys[row] for row in judged])
    shares = iter(
        division_shares(
            mc,
            [one.settings for one in found.found if isinstance(one.settings, CalibratorSettings)],
            class_count=classifier.class_count,
            seed=classifier.seed,
            growth=classifier.growth,
            memory_budget=workspace.memory_budget,
        )
    )
    splits = ScoredSplits(
        of_knn,
        [mc],
        None if parameters is None else parameters.reliability,
        neighbour_count=classifier.neighbours,
        seed=classifier.seed,
    )
    proposing = [key for key, proposes in zip(splits.keys, splits.proposing, strict=True) if proposes]
    return ComparedSettings(
        classifier=classifier.name,
        class_names=classifier.class_names,
        neighbour_count=classifier.neighbours,
        alpha=alpha,
        point_count=len(mc.keys),
        judged_count=len(judged),
        document_count=len(judged) if documents is None else documents.count,
        compared=tuple(
            ComparedSetting(
                one.settings,
                measure_admission(mc.label[judged], one.predicted, one.admitted, classifier.class_count, documents),
                next(shares) if isinstance(one.settings, CalibratorSettings) else (),
            )
            for one in found.found
        ),
        left_out=found.left_out,
        foretold=_foretold(classifier, splits, alpha, parameters),
        proposing_count=len(proposing),
        proposing_documents=len(set(proposing)),
    )


def _foretold(
    classifier: Classifier, splits: ScoredSplits, alpha: Decimal, parameters: StoredParameters | None
) -> tuple[ForetoldSetting, ...]:
    """The evidence will be mc and vp, of which vp is not looked at: it is as much as the shares of splits say."""
    label, predicted = (of[splits.proposing] for of in (splits.label, network_prediction(splits.logits)))
    documents = documents_of([key for key, proposes in zip(splits.keys, splits.proposing, strict=True) if proposes])
    return tuple(
        ForetoldSetting(
            one.settings,
            measure_admission(label, predicted, one.admitted, classifier.class_count, documents),
            one.certified,
        )
        for one in foretold_candidates(
            splits,
            class_count=classifier.class_count,
            neighbour_count=classifier.neighbours,
            alpha=alpha,
            with_reliability=parameters is not None and parameters.reliability is not None,
            grows=classifier.growth,
        )
    )


def parameters_of_mc(connection: Connection, classifier: Classifier) -> StoredParameters | None:
    """Return the parameters in use, under which all of mc must have approximations; None if there are logits only."""
    if classifier.knn is None:
        return None
    parameters = require_parameters(connection, classifier)
    require_approximations(connection, classifier, [Split.MC], parameters)
    return parameters


def cross_fitting(
    workspace: Workspace,
    classifier: Classifier,
    mc: HeldOutPoints,
    parameters: StoredParameters | None,
    localizer: PointsLocalizer | None,
    *,
    most_judged: int = MOST_JUDGED,
) -> CrossFitting:
    """Return what settings are cross-fitted on: `mc`, of which points of some whole documents are judged.

    parameters: None if the classifier has logits only.
    """
    return CrossFitting(
        mc,
        class_count=classifier.class_count,
        neighbour_count=classifier.neighbours,
        seed=classifier.seed,
        reliability=None if parameters is None else parameters.reliability,
        localizer=localizer,
        judged=document_sample(mc.keys, seed=classifier.seed, most=most_judged),
        growth=classifier.growth,
        memory_budget=workspace.memory_budget,
    )


def read_mc(
    workspace: Workspace, connection: Connection, classifier: Classifier, parameters: StoredParameters | None
) -> tuple[HeldOutPoints, PointsLocalizer | None]:
    """Return the points of mc, and the localizer over them if decisions are weighted by default.

    parameters: those of `parameters_of_mc`.
    """
    mc = read_split(connection, classifier, parameters, Split.MC, memory_budget=workspace.memory_budget)
    points = mc.held_out(connection)
    if parameters is None or not METHODS[VENN_ADMIT].weighted_by_default:
        return points, None
    vectors = workspace.cache.mapped_vectors(connection, classifier, mc.exemplar_ids)

    def vectors_of(rows: IntArray) -> Float32Array:
        return workspace.cache.mapped_rows(vectors, rows)

    return points, PointsLocalizer(vectors_of, parameters.eta_loc)
