"""Cascades and their stages, and the certificates of what they serve."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from venn_admit.core.calibrators.cascade_settings import CascadeCertification, make_cascade_settings
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.errors import Code, ConflictError, NotFoundError
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier

MOST_BESIDE = 1000
"""How many points of a stage, at most, say which part of what it decides on reaches the next."""


@dataclass(frozen=True, slots=True)
class ScoreVersion:
    """What the score of a classifier is computed by. knn_parameters_id: None if it has logits only."""

    score: ScoreKind
    knn_parameters_id: int | None


@dataclass(frozen=True, slots=True)
class CertifiedStage:
    """What a classifier serves of the evidence of a certificate.

    calibration_id: the one in use then. version: of the score that the policy bounds. served, right: by class.
    """

    calibration_id: int
    version: ScoreVersion
    policy: Policy
    reached: int
    served: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StoredStage:
    """A stage of a cascade.

    place: from 1. classifier: None for a person. cost: of a point that reaches it. certified: by the certificate that
    the cascade serves by; None for a person, and if there is none.
    """

    place: int
    classifier: Classifier | None
    cost: float
    certified: CertifiedStage | None


@dataclass(frozen=True, slots=True)
class Cascade:
    """Classifiers that are asked one after the other; a person may be the last stage.

    calibration_id: the certificate that it serves by; None if it has none.
    """

    id: int
    name: str
    created_at: datetime
    calibration_id: int | None
    stages: tuple[StoredStage, ...]

    @property
    def classifiers(self) -> tuple[Classifier, ...]:
        """Those of the stages, in order."""
        return tuple(stage.classifier for stage in self.stages if stage.classifier is not None)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, which all stages have."""
        return self.classifiers[0].class_names


@dataclass(frozen=True, slots=True)
class CascadeCalibration:
    """A certificate of a cascade in full.

    looks: how many certificates of the cascade looked at labels. joint_confidence: that all of them hold together.
    withheld: the newest that came later and is not in use.
    """

    id: int
    created_at: datetime
    certificate: Certificate
    looks: int
    joint_confidence: Decimal
    withheld: "WithheldCertificate | None"


@dataclass(frozen=True, slots=True)
class WithheldCertificate:
    """A certificate that a cascade does not serve by."""

    id: int
    created_at: datetime
    certificate: Certificate


def add(connection: Connection, name: str, stages: Sequence[tuple[Classifier | None, float]]) -> None:
    """Store a cascade, whose stages have been checked; ConflictError if the name is taken."""
    try:
        cascade_id: int = execute(connection, "cascades.add_cascade", name=name).scalar_one()
    except IntegrityError as error:
        raise ConflictError(
            f"name: {name!r} is the name of a cascade already; choose another", code=Code.CASCADE_TAKEN, cascade=name
        ) from error
    for place, (classifier, cost) in enumerate(stages, 1):
        execute(
            connection,
            "cascades.add_stage",
            cascade_id=cascade_id,
            place=place,
            classifier_id=None if classifier is None else classifier.id,
            cost=cost,
        )


def by_name(connection: Connection, name: str) -> Cascade:
    """Return a cascade; NotFoundError if there is none of this name."""
    found = _read(connection, name)
    if not found:
        raise NotFoundError(f"there is no cascade {name!r}", code=Code.UNKNOWN_CASCADE, cascade=name)
    return found[0]


def every(connection: Connection) -> list[Cascade]:
    """Return all cascades, in the order of their names."""
    return _read(connection, None)


def _read(connection: Connection, name: str | None) -> list[Cascade]:
    found = []
    for _, of_cascade in groupby(execute(connection, "cascades.stages", name=name), lambda row: row.cascade_id):
        rows = list(of_cascade)
        first = rows[0]
        stages = tuple(map(_stage, rows))
        found.append(
            Cascade(first.cascade_id, first.cascade, first.cascade_created_at, first.cascade_calibration_id, stages)
        )
    return found


def _stage(row: Row[Any]) -> StoredStage:
    certified = None
    if row.calibration_id is not None:
        certified = CertifiedStage(
            calibration_id=row.calibration_id,
            version=ScoreVersion(ScoreKind(row.score), row.knn_parameters_id),
            policy=Policy(tuple(row.thresholds)),
            reached=row.reached,
            served=tuple(row.served),
            right=tuple(row.served_right),
        )
    return StoredStage(row.place, None if row.id is None else classifiers.classifier_of(row), row.cost, certified)


def delete(connection: Connection, name: str) -> None:
    """Delete a cascade with its certificates."""
    execute(connection, "cascades.delete_cascade", name=name)


def reached(connection: Connection, classifier: Classifier, exemplar_ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Return how many of some points of a classifier reached each stage that follows it in cascades, and of others.

    These are the newest beside them, up to the last of them: later ones may not have reached a stage yet.
    """
    parameters = {"classifier_id": classifier.id, "exemplar_ids": list(exemplar_ids), "last_id": max(exemplar_ids)}
    return execute(connection, "cascades.reached", **parameters, most=MOST_BESIDE).all()


def passes_by(connection: Connection, first: Classifier, later: Classifier, *, last_id: int) -> bool:
    """Return whether the first stage scored a point, up to one of a key, that a later stage does not have."""
    parameters = {"classifier_id": first.id, "later_id": later.id, "last_id": last_id}
    return bool(execute(connection, "cascades.passes_by", **parameters).scalar_one())


def require_none_of(connection: Connection, generations: Sequence[Classifier]) -> None:
    """Raise ConflictError if one of these is a stage of a cascade."""
    row = execute(connection, "cascades.of_classifiers", classifier_ids=[one.id for one in generations]).one_or_none()
    if row is not None:
        (found,) = (one for one in generations if one.id == row.classifier_id)
        raise ConflictError(
            f"{found.name!r} is a stage of the cascade {row.name!r}, and cannot be deleted: delete the cascade first",
            code=Code.STAGE_OF_CASCADE,
            classifier=found.name,
            cascade=row.name,
        )


def add_calibration(
    connection: Connection,
    cascade: Cascade,
    certificate: Certificate,
    stages: Sequence[CertifiedStage],
    *,
    is_withheld: bool,
) -> None:
    """Store a certificate, by which the cascade serves from now on unless it is withheld."""
    calibration_id: int = execute(
        connection,
        "cascades.add_calibration",
        cascade_id=cascade.id,
        alpha=certificate.alpha,
        confidence=certificate.confidence,
        is_certified=certificate.policy is not None,
        points=certificate.points,
        is_withheld=is_withheld,
        document=json.dumps(to_document(certificate)),
    ).scalar_one()
    for place, stage in enumerate(stages, 1):
        execute(
            connection,
            "cascades.add_calibration_stage",
            cascade_calibration_id=calibration_id,
            place=place,
            calibration_id=stage.calibration_id,
            score=stage.version.score,
            knn_parameters_id=stage.version.knn_parameters_id,
            thresholds=list(stage.policy.thresholds),
            reached=stage.reached,
            served=list(stage.served),
            served_right=list(stage.right),
        )


def certificates(connection: Connection, of: Sequence[Cascade]) -> dict[int, CascadeCalibration]:
    """Return the certificates that cascades serve by, by the key of the cascade."""
    cascade_of = {cascade.calibration_id: cascade.id for cascade in of if cascade.calibration_id is not None}
    keys = {"calibration_ids": list(cascade_of), "cascade_ids": list(cascade_of.values())}
    rows = execute(connection, "cascades.certificates", **keys) if cascade_of else ()
    return {
        cascade_of[row.id]: CascadeCalibration(
            row.id,
            row.created_at,
            from_document(row.document),
            row.looks,
            row.joint_confidence,
            None
            if row.withheld_id is None
            else WithheldCertificate(row.withheld_id, row.withheld_at, from_document(row.withheld_document)),
        )
        for row in rows
    }


def history(connection: Connection, cascade: Cascade, *, limit: int) -> Sequence[Row[Any]]:
    """Return the newest certificates of a cascade, the newest first, and what each serves of its evidence."""
    return execute(connection, "cascades.history", cascade_id=cascade.id, row_limit=limit).all()


@dataclass(frozen=True, slots=True)
class CascadeRequest:
    """A certificate to make. is_scheduled: whether nobody asked for it, but data arrived at the stages."""

    cascade: str
    settings: CascadeCertification
    is_scheduled: bool


def add_request(
    connection: Connection, job_id: int, cascade: Cascade, settings: CascadeCertification, *, is_scheduled: bool
) -> None:
    """Record what a job is asked for that certifies a cascade."""
    execute(
        connection,
        "cascades.add_request",
        job_id=job_id,
        cascade_id=cascade.id,
        alpha=settings.alpha,
        certify=list(map(str, settings.asked.kinds)),
        confidence=settings.asked.confidence,
        test=settings.asked.test,
        is_scheduled=is_scheduled,
    )


def request_of(connection: Connection, job_id: int) -> CascadeRequest:
    """Return what a job is asked for that certifies; NotFoundError if its cascade was deleted."""
    row = execute(connection, "cascades.request", job_id=job_id).one_or_none()
    if row is None:
        raise NotFoundError(f"the cascade that job {job_id} certifies was deleted: create it again")
    return CascadeRequest(row.cascade, _settings(row), row.is_scheduled)


def due(connection: Connection) -> list[CascadeRequest]:
    """Return the certificates to make because a stage was recalibrated with other points."""
    return [CascadeRequest(row.cascade, _settings(row), True) for row in execute(connection, "cascades.due")]


def _settings(row: Row[Any]) -> CascadeCertification:
    return make_cascade_settings(row.alpha, row.certify, row.confidence, row.test)
