"""Certifying a cascade on the labels that all of its classifiers hold out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.arguments import ALL_DECLARED
from venn_admit.core.calibrators.cascade_settings import CascadeCertification, make_cascade_settings
from venn_admit.core.calibrators.certified.cascade import certify_cascade
from venn_admit.core.calibrators.certified.cascade_points import CascadePoints, serve, stage_policies
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.comparison.strength import Strength
from venn_admit.core.documents import joined_codes
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.core.types import BoolArray
from venn_admit.errors import (
    ConflictError,
    DatabaseError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    OutdatedError,
)
from venn_admit.flows.calibration.calibrate import require_approximations, usable_parameters
from venn_admit.flows.cascades.manage import show
from venn_admit.flows.jobs.chunks import ChunkWork
from venn_admit.flows.jobs.submit import Requester, Send, Submission, submit_job
from venn_admit.flows.shell import Shell
from venn_admit.logger import log
from venn_admit.methods.venn_abers.held_out import RankedHeldOut, held_out_points, require_fixed_score
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.cascades import cascades
from venn_admit.store.cascades.cascades import Cascade, CascadeRequest, CertifiedStage, ScoreVersion
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.exemplars import exemplars, labels
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work.new_jobs import NewJob
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.cascades import CascadeReport


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """A job that was recorded, of a classifier, and its rows."""

    job_id: int
    classifier: str
    rows: int


def cascade_settings_for(given: Mapping[str, Any]) -> CascadeCertification:
    """Return what a user asks for, checked.

    Args:
        given: Those of `make_cascade_settings`, as the settings of a calibration are given; None for the default.

    Raises:
        InvalidInputError: A value is invalid, or a promise is asked for groups.
    """
    asked = {name: ALL_DECLARED[name].read(name, value) for name, value in given.items() if value is not None}
    return make_cascade_settings(**asked)


def request_certificate(
    workspace: Workspace,
    name: str,
    settings: CascadeCertification,
    *,
    requester: Requester | None = None,
    on_stored: Callable[[Connection, CertificateRequest], object] = lambda *_: None,
) -> CertificateRequest:
    """Record a job that certifies a cascade by the scores of the calibrations in use, and serves by that from then on.

    The job is one of the first stage's classifier, and its rows are what that one holds out.

    Raises:
        InvalidInputError: A calibration has no score that can be certified.
        OutdatedError: Data changed at a stage and its approximations did not follow yet.
        TooManyJobsError: The requester has as many unfinished jobs as it may have.
    """
    request = CascadeRequest(name, settings, is_scheduled=False)
    with submit_job(workspace, None, requester=requester) as submission:
        submitted = _submit(submission, request)
        on_stored(submission.connection, submitted)
    return submitted


def _submit(submission: Submission, request: CascadeRequest) -> CertificateRequest:
    connection = submission.connection
    cascade = cascades.by_name(connection, request.cascade)
    for classifier in cascade.classifiers:
        _require_certifiable(connection, classifier)
    first = cascade.classifiers[0]
    rows = np.concatenate([exemplars.split_keys(connection, first, split).ids for split in (Split.MC, Split.VP)])
    job_id = submission.add_job(first, NewJob("certify", rows[:0], None, last_ids=rows))
    cascades.add_request(connection, job_id, cascade, request.settings, is_scheduled=request.is_scheduled)
    return CertificateRequest(job_id, first.name, len(rows))


def certify(workspace: Workspace, name: str, settings: CascadeCertification, *, shell: Shell) -> CascadeReport:
    """Certify a cascade as `request_certificate` does, and return how it stands then.

    Raises:
        JobError: The job failed: too few points are held out at all stages, or one has different labels at two.
    """
    shell.run_job(request_certificate(workspace, name, settings).job_id, f"Certifying {name}")
    return show(workspace.engine, name)


def certify_due(workspace: Workspace, send: Send) -> list[CertificateRequest]:
    """Record jobs that certify cascades again whose stages were recalibrated with other data, and return them.

    What cannot be certified as it stands is logged, and looked at again. send: as in `submit_job`.
    """
    with connect(workspace.engine) as connection:
        due = cascades.due(connection)
    submitted = []
    for request in due:
        try:
            with submit_job(workspace, send) as submission:
                submitted.append(_submit(submission, request))
        except (DatabaseError, InvalidInputError, NotFoundError, NotReadyError, OutdatedError) as error:
            log.warning("a cascade cannot be certified again", cascade=request.cascade, error=str(error))
    return submitted


@dataclass(frozen=True, slots=True, eq=False)
class ComputedCertificate:
    """A certificate that was computed, and what each stage serves by it."""

    request: CascadeRequest
    certificate: Certificate
    stages: Sequence[CertifiedStage]

    def apply(self, connection: Connection) -> None:
        """Store it; it is withheld if it serves nothing where the one before does, or far less and nobody asked."""
        cascade = cascades.by_name(connection, self.request.cascade)
        before = cascades.certificates(connection, [cascade]).get(cascade.id)
        in_use = None if before is None else before.certificate.share
        strength = Strength(0, self.certificate.share or 0.0, in_use or 0.0)
        is_withheld = strength.is_far_less if self.request.is_scheduled else strength.is_nothing
        cascades.add_calibration(connection, cascade, self.certificate, self.stages, is_withheld=is_withheld)


@dataclass(frozen=True, slots=True, eq=False)
class CertifyChunks:
    """Computes the chunk of a job that certifies a cascade, on one view of the data of all stages."""

    workspace: Workspace

    def __call__(self, work: ChunkWork) -> ComputedCertificate:
        """Return the certificate.

        Raises:
            NotFoundError: The cascade was deleted meanwhile.
            NotReadyError: A classifier is not calibrated, or too few points are held out at all stages.
            ConflictError: A point has different labels at two stages.
        """
        with consistent_view(self.workspace.engine) as connection:
            request = cascades.request_of(connection, work.job.id)
            cascade = cascades.by_name(connection, request.cascade)
            own = [_read(connection, of, self.workspace.memory_budget) for of in cascade.classifiers]
            points, proposing = _joined(cascade, own, _is_whole(connection, cascade, own))
        asked, class_count = request.settings.asked, len(cascade.class_names)
        certificate = certify_cascade(
            points.take(proposing),
            points.take(~proposing),
            class_count=class_count,
            alpha=request.settings.alpha,
            kinds=asked.kinds,
            confidence=asked.confidence,
            test=asked.test,
        )
        policies = stage_policies(certificate.policy or Policy((None,) * (len(own) * class_count)), class_count)
        stages = [
            CertifiedStage(
                calibration_id=one.calibration_id,
                version=one.version,
                policy=of_stage,
                reached=counts.reached,
                served=tuple(counts.served.tolist()),
                right=tuple(counts.right.tolist()),
            )
            for one, of_stage, counts in zip(own, policies, serve(points.take(~proposing), policies), strict=True)
        ]
        return ComputedCertificate(request, certificate, stages)


@dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """What a stage has of its own: its points, the calibration in use, and the version of its score.

    later: those points that came without a label, such as those that were scored: their keys by their ids.
    """

    points: RankedHeldOut
    later: dict[str, int]
    calibration_id: int
    version: ScoreVersion


def _require_certifiable(connection: Connection, classifier: Classifier) -> tuple[Calibration, StoredParameters | None]:
    """The calibration of a stage and its parameters, if the score is one that can be certified on current data."""
    calibration = calibrations.latest(connection, classifier)
    calibrations.require_whole(connection, classifier, calibration)
    require_fixed_score(connection, classifier, calibration)
    parameters = usable_parameters(connection, classifier)
    if parameters is not None:
        if parameters.id != calibration.knn_parameters_id:
            raise NotReadyError(
                f"{classifier.name!r} was fitted again after calibration {calibration.id}, which is in use: calibrate "
                "it again first"
            )
        require_approximations(connection, classifier, (Split.MC, Split.VP), parameters, leave_out=True)
    return calibration, parameters


def _read(connection: Connection, classifier: Classifier, memory_budget: int) -> _Own:
    calibration, parameters = _require_certifiable(connection, classifier)
    points = held_out_points(connection, classifier, calibration, parameters, memory_budget)
    later = {row.external_id: row.id for row in labels.labelled_later(connection, classifier, HELD_OUT_SPLITS)}
    return _Own(points, later, calibration.id, ScoreVersion(points.kind, calibration.knn_parameters_id))


def _is_whole(connection: Connection, cascade: Cascade, stages: Sequence[_Own]) -> bool:
    """Whether all stages have what the first one scored, with or without a label, up to the newest with a label.

    Stages after the first are mostly asked for points that it does not serve, so labels of the traffic are a random
    sample only then.
    """
    first, last_id = stages[0], max(stages[0].later.values(), default=0)
    labelled = first.later.keys() & set(first.points.ids)
    return all(
        labelled <= set(one.points.ids)
        and not cascades.passes_by(connection, cascade.classifiers[0], of, last_id=last_id)
        for of, one in zip(cascade.classifiers[1:], stages[1:], strict=True)
    )


def _joined(cascade: Cascade, stages: Sequence[_Own], is_whole: bool) -> tuple[CascadePoints, BoolArray]:
    """The points that all stages hold out, by id, and which of them propose: all of a document if it does anywhere.

    is_whole: whether those of the traffic are a random sample.
    """
    own = [one.points for one in stages]
    rows_of = [{external_id: row for row, external_id in enumerate(one.ids)} for one in own]
    found = set(rows_of[0]).intersection(*rows_of[1:])
    if not is_whole:
        found = found.difference(*(one.later for one in stages))
    shared = sorted(found)
    rows = [np.array([of[external_id] for external_id in shared], dtype=np.int64) for of in rows_of]
    if not shared:
        raise NotReadyError(
            f"the classifiers of the cascade {cascade.name!r} hold out no labelled exemplar of the same id: ingest the "
            "same held-out data under the same ids at every stage"
        )
    given = [one.cells.label[taken] for one, taken in zip(own, rows, strict=True)]
    for classifier, of_stage in zip(cascade.classifiers, given, strict=True):
        if (differing := np.flatnonzero(of_stage != given[0])).size:
            raise ConflictError(
                f"exemplar {shared[differing[0]]!r} has another label at {classifier.name!r} than at "
                f"{cascade.classifiers[0].name!r}, as {differing.size - 1:,} others do: correct one of the two"
            )
    document = joined_codes(
        [[one.cells.keys[row] for row in taken.tolist()] for one, taken in zip(own, rows, strict=True)]
    )
    proposes = np.any([one.proposing[taken] for one, taken in zip(own, rows, strict=True)], axis=0)
    proposing: BoolArray = np.isin(document, document[proposes])
    for part, what in ((proposing, "propose policies"), (~proposing, "are evidence")):
        if len(np.unique(document[part])) < 2:
            raise NotReadyError(
                f"of the {len(shared):,} labelled exemplars that all stages of {cascade.name!r} hold out, fewer than "
                f"two documents {what}: ingest more held-out data, under the same ids at every stage"
            )
    points = CascadePoints(
        np.stack([one.cells.points.score[taken] for one, taken in zip(own, rows, strict=True)]),
        np.stack([one.cells.points.predicted[taken] for one, taken in zip(own, rows, strict=True)]),
        given[0],
        document,
    )
    return points, proposing
