"""Certifying a cascade on the labels that all of its classifiers hold out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.arguments import ALL_DECLARED
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.cascade import certify_cascade
from venn_admit.core.calibrators.certified.cascade_points import CascadePoints, serve, stage_policies
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.settings import DEFAULT_ALPHA
from venn_admit.core.documents import joined_codes
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray
from venn_admit.errors import ConflictError, NotReadyError
from venn_admit.flows.calibration.calibrate import require_approximations, usable_parameters
from venn_admit.flows.cascades.manage import OnReport, reported
from venn_admit.methods.venn_abers.held_out import RankedHeldOut, held_out_points
from venn_admit.store.calibrations import calibrations
from venn_admit.store.cascades import cascades
from venn_admit.store.cascades.cascades import Cascade, CertifiedStage, ScoreVersion
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace
from venn_admit_client.records import CascadeReport

SETTINGS = ("alpha", "certify", "confidence", "test")
"""What can be asked of a certificate, as settings of a calibration."""


@dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """What a stage has of its own: its points, the calibration in use, and the version of its score."""

    points: RankedHeldOut
    calibration_id: int
    version: ScoreVersion


def certify(
    workspace: Workspace,
    name: str,
    *,
    given: Mapping[str, Any],
    on_stored: OnReport = lambda *_: None,
) -> CascadeReport:
    """Certify a cascade by the scores of the calibrations in use, and have it serve by the certificate from now on.

    Args:
        name: Its name.
        given: Those of `SETTINGS`, as the settings of a calibration are given; None for the default.
        on_stored: Is called with the report in the transaction that stores the certificate.

    Raises:
        NotFoundError: There is no such cascade.
        InvalidInputError: An argument is out of range, or a calibration has no score that can be certified.
        NotReadyError: A classifier is not calibrated, or too few points are held out at all stages.
        OutdatedError: Data changed at a stage and its approximations did not follow yet.
        ConflictError: A point has different labels at two stages.
    """
    asked = {name: ALL_DECLARED[name].read(name, value) for name, value in given.items() if value is not None}
    with consistent_view(workspace.engine) as connection:
        cascade = cascades.by_name(connection, name)
        own = [_read(connection, of, workspace.memory_budget) for of in cascade.classifiers]
    points, proposing = _joined(cascade, [one.points for one in own])
    certificate = certify_cascade(
        points.take(proposing),
        points.take(~proposing),
        class_count=len(cascade.class_names),
        alpha=asked.get("alpha", DEFAULT_ALPHA),
        kinds=asked.get("certify", (ClassKind.PREDICTED,)),
        confidence=asked.get("confidence", DEFAULT_CONFIDENCE),
        test=asked.get("test", DocumentTest.FINITE_SAMPLE),
    )
    policy = certificate.policy or Policy((None,) * (len(own) * len(cascade.class_names)))
    policies = stage_policies(policy, len(cascade.class_names))
    served = serve(points.take(~proposing), policies)
    stages = [
        CertifiedStage(
            calibration_id=one.calibration_id,
            version=one.version,
            policy=of_stage,
            reached=counts.reached,
            served=tuple(counts.served.tolist()),
            right=tuple(counts.right.tolist()),
        )
        for one, of_stage, counts in zip(own, policies, served, strict=True)
    ]
    with transaction(workspace.engine) as connection:
        cascade = cascades.by_name(connection, name)
        cascades.add_calibration(connection, cascade, certificate, stages)
        report = reported(connection, name)
        on_stored(connection, report)
    return report


def _read(connection: Connection, classifier: Classifier, memory_budget: int) -> _Own:
    calibration = calibrations.latest(connection, classifier)
    calibrations.require_whole(connection, classifier, calibration)
    parameters = usable_parameters(connection, classifier)
    if parameters is not None:
        if parameters.id != calibration.knn_parameters_id:
            raise NotReadyError(
                f"{classifier.name!r} was fitted again after calibration {calibration.id}, which is in use: calibrate "
                "it again first"
            )
        require_approximations(connection, classifier, (Split.MC, Split.VP), parameters, leave_out=True)
    points = held_out_points(connection, classifier, calibration, parameters, memory_budget)
    return _Own(points, calibration.id, ScoreVersion(points.kind, calibration.knn_parameters_id))


def _joined(cascade: Cascade, own: Sequence[RankedHeldOut]) -> tuple[CascadePoints, BoolArray]:
    """The points that all stages hold out, by id, and which of them propose: all of a document if it does anywhere."""
    rows_of = [{external_id: row for row, external_id in enumerate(one.ids)} for one in own]
    shared = sorted(set(rows_of[0]).intersection(*rows_of[1:]))
    rows = [np.array([of[external_id] for external_id in shared], dtype=np.int64) for of in rows_of]
    if not shared:
        raise NotReadyError(
            f"the classifiers of the cascade {cascade.name!r} hold out no labelled exemplar of the same id: ingest the "
            "same held-out data under the same ids at every stage"
        )
    labels = [one.cells.label[taken] for one, taken in zip(own, rows, strict=True)]
    for classifier, of_stage in zip(cascade.classifiers, labels, strict=True):
        if (differing := np.flatnonzero(of_stage != labels[0])).size:
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
        labels[0],
        document,
    )
    return points, proposing
