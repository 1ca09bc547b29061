"""Creating, listing, showing and deleting cascades."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.core.calibrators.certified.certificate import Certificate, ClassResult, needed_together
from venn_admit.core.evaluation.tallies import share_interval
from venn_admit.errors import ConflictError, InvalidInputError
from venn_admit.flows.data.create import check_part_of_paths
from venn_admit.store.cascades import cascades
from venn_admit.store.cascades.cascades import Cascade, CascadeCalibration, StoredStage, WithheldCertificate
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit_client.records.cascades import CascadeClass, CascadeReport, CascadeStage, WithheldCascade

MOST_STAGES = 20
SHOWN_CERTIFICATES = 10
PERSON = "person"
"""What stands for a person where a stage is named."""

OnReport = Callable[[Connection, CascadeReport], object]


def create(
    engine: Engine, name: str, stages: Sequence[tuple[str, float]], *, on_stored: OnReport = lambda *_: None
) -> CascadeReport:
    """Store a cascade.

    Args:
        stages: The name of each stage's classifier, or `person` for the last, and the cost of a point that reaches it.

    Raises:
        InvalidInputError: The name, the stages or a cost are invalid.
        ConflictError: The name is taken, or the stages have other classes.
    """
    check_part_of_paths(name)
    if not 1 <= len(stages) <= MOST_STAGES:
        raise InvalidInputError(f"stages: expected 1 to {MOST_STAGES}, got {len(stages)}")
    for stage, cost in stages:
        if not 0 <= cost < math.inf:
            raise InvalidInputError(f"cost of {stage!r}: expected a finite number of at least 0, got {cost}")
    with transaction(engine) as connection:
        found = [
            (
                None
                if stage == PERSON and place == len(stages) and place > 1
                else classifiers.by_name(connection, stage),
                float(cost),
            )
            for place, (stage, cost) in enumerate(stages, 1)
        ]
        _check([one for one, _ in found if one is not None])
        cascades.add(connection, name, found)
        report = reported(connection, name)
        on_stored(connection, report)
    return report


def _check(found: Sequence[classifiers.Classifier]) -> None:
    first = found[0]
    for place, one in enumerate(found):
        if one.id in {earlier.id for earlier in found[:place]}:
            raise InvalidInputError(f"stages: expected each classifier once, got {one.name!r} twice")
        if one.class_names != first.class_names:
            raise ConflictError(
                f"expected the classes {', '.join(map(repr, first.class_names[:5]))} of {first.name!r} in this order "
                f"at every stage, got {', '.join(map(repr, one.class_names[:5]))} of {one.name!r}; make a classifier "
                "with the classes of the first"
            )


def show(engine: Engine, name: str) -> CascadeReport:
    """Return how a cascade stands. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return reported(connection, name)


def every(engine: Engine) -> list[CascadeReport]:
    """Return how all cascades stand, by name."""
    with consistent_view(engine) as connection:
        found = cascades.every(connection)
        certificates = cascades.certificates(connection, found)
        return [_report(one, certificates.get(one.id)) for one in found]


def reported(connection: Connection, name: str) -> CascadeReport:
    """Return how a cascade stands; it waits for nobody. Raises NotFoundError."""
    found = cascades.by_name(connection, name)
    return _report(found, cascades.certificates(connection, [found]).get(found.id))


def history(engine: Engine, name: str) -> Sequence[Row[Any]]:
    """Return the newest certificates of a cascade, the newest first, and what each serves of its evidence.

    Raises NotFoundError.
    """
    with consistent_view(engine) as connection:
        return cascades.history(connection, cascades.by_name(connection, name), limit=SHOWN_CERTIFICATES)


def delete(engine: Engine, name: str, *, on_stored: OnReport = lambda *_: None) -> CascadeReport:
    """Delete a cascade with its certificates, and return what it was; its classifiers stay. Raises NotFoundError."""
    with transaction(engine) as connection:
        report = reported(connection, name)
        cascades.delete(connection, name)
        on_stored(connection, report)
    return report


def _report(cascade: Cascade, calibration: CascadeCalibration | None) -> CascadeReport:
    """How a cascade stands by the certificate that it serves by."""
    if calibration is None:
        return CascadeReport(
            cascade=cascade.name,
            classes=cascade.class_names,
            stages=tuple(_stage(stage, None, single_points=True) for stage in cascade.stages),
            number=None,
            certified_at=None,
            alpha=None,
            confidence=None,
            kinds=(),
            is_certified=False,
            points=None,
            documents=None,
            served=None,
            promised=(),
            labels_needed=None,
            looks=0,
            joint_confidence=None,
            cost=None,
            cost_of_last=cascade.stages[-1].cost,
            withheld=None,
        )
    certificate, single_points = calibration.certificate, calibration.certificate.single_points
    served = sum(sum(stage.certified.served) for stage in cascade.stages if stage.certified is not None)
    left = certificate.points - served
    stages = tuple(_stage(stage, left, single_points=single_points) for stage in cascade.stages)
    total = math.fsum(stage.cost * (stage.reached or 0) for stage in stages)
    return CascadeReport(
        cascade=cascade.name,
        classes=cascade.class_names,
        stages=stages,
        number=calibration.id,
        certified_at=calibration.created_at,
        alpha=certificate.alpha,
        confidence=certificate.confidence,
        kinds=tuple(map(str, certificate.kinds)),
        is_certified=certificate.policy is not None,
        points=certificate.points,
        documents=certificate.documents,
        served=served,
        promised=_results(certificate, cascade.class_names),
        labels_needed=_labels_needed(certificate),
        looks=calibration.looks,
        joint_confidence=calibration.joint_confidence,
        cost=total / certificate.points,
        cost_of_last=cascade.stages[-1].cost,
        withheld=None if calibration.withheld is None else _withheld(calibration.withheld, cascade.class_names),
    )


def _withheld(found: WithheldCertificate, class_names: Sequence[str]) -> WithheldCascade:
    certificate = found.certificate
    return WithheldCascade(
        number=found.id,
        certified_at=found.created_at,
        is_certified=certificate.policy is not None,
        points=certificate.points,
        served=certificate.admitted,
        promised=_results(certificate, class_names),
        labels_needed=_labels_needed(certificate),
    )


def _results(certificate: Certificate, class_names: Sequence[str]) -> tuple[CascadeClass, ...]:
    results = certificate.classes if certificate.policy is not None else certificate.lacking
    return tuple(_promised(one, class_names, certificate) for one in results)


def _labels_needed(certificate: Certificate) -> int | None:
    # All classes are tested together.
    needed = None if certificate.policy is not None else needed_together(certificate.lacking)
    return None if needed is None else certificate.points_in(needed)


def _stage(stage: StoredStage, left: int | None, *, single_points: bool) -> CascadeStage:
    of = stage.certified
    if stage.classifier is None:
        return CascadeStage(stage.place, None, stage.cost, None, left, left, ())
    if of is None:
        return CascadeStage(stage.place, stage.classifier.name, stage.cost, None, None, None, ())
    classes = tuple(
        _class("predicted", name, served, right, single_points=single_points, threshold=threshold)
        for name, served, right, threshold in zip(
            stage.classifier.class_names, of.served, of.right, of.policy.thresholds, strict=True
        )
    )
    return CascadeStage(
        stage.place, stage.classifier.name, stage.cost, of.calibration_id, of.reached, sum(of.served), classes
    )


def _promised(result: ClassResult, class_names: Sequence[str], certificate: Certificate) -> CascadeClass:
    assert result.number is not None, "a cascade promises nothing of groups"
    needed = result.documents_needed
    return replace(
        _class(
            str(result.kind),
            class_names[result.number],
            result.admitted,
            result.right,
            single_points=certificate.single_points,
        ),
        labels_needed=None if needed is None else certificate.points_in(needed),
    )


def _class(
    kind: str, name: str, served: int, right: int, *, single_points: bool, threshold: float | None = None
) -> CascadeClass:
    low = high = None
    if single_points:
        low, high = share_interval(right, served)
    return CascadeClass(kind, name, served, right, low, high, threshold, labels_needed=None)
