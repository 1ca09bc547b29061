"""Stored decisions: a page of them, and one with its evidence and the exemplars that it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, Row

from venn_admit.core.groups import group_values
from venn_admit.core.types import Float32Array
from venn_admit.errors import Code, NotFoundError
from venn_admit.flows.decisions.score_one import GivenPoint, Near
from venn_admit.methods.method import AppliedPolicy
from venn_admit.methods.venn_abers.snapshot import read_context
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import decisions
from venn_admit.store.decisions.decisions import DecisionFilter
from venn_admit.store.exemplars import classifiers, exemplars, generations, labels
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import nearest


@dataclass(frozen=True, slots=True, eq=False)
class ShownDecision:
    """A stored decision.

    row: as it is stored, with the evidence. attributes: of the exemplar. network_logits: (C,) float32, f of it. near:
    the K nearest training exemplars, nearest first; none with logits only; None if training data changed since, so that
    these may be others.
    """

    classifier: Classifier
    row: Row[Any]
    attributes: dict[str, Any]
    network_logits: Float32Array
    near: Sequence[Near] | None


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """What decides whether a prediction is admitted.

    least: the least lower probability or, by a policy that bounds it, the least score that admits; None if the class,
    or the group that the point is of, is never admitted. policy: None if the pointwise promise was asked for.
    """

    least: Decimal | None
    policy: AppliedPolicy | None


def list_decisions(
    engine: Engine, name: str, wanted: DecisionFilter, *, limit: int
) -> tuple[Classifier, Sequence[Row[Any]]]:
    """Return the newest decisions of a classifier that are wanted, newest first.

    Raises NotFoundError if there is no such classifier, or no such calibration of it.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if wanted.calibration_id is not None:
            calibrations.by_id(connection, classifier, wanted.calibration_id)
        return classifier, decisions.page(connection, classifier, wanted, limit=limit)


def show_decision(engine: Engine, name: str, decision_id: int) -> ShownDecision:
    """Return a decision of a classifier, by any of its generations. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier, row = _find(connection, name, decision_id)
        key = np.array([row.exemplar_id])
        (own,) = exemplars.described(connection, key)
        (logits,) = exemplars.network_logits(connection, classifier, key)
        near = _near(connection, classifier, row)
        return ShownDecision(classifier, row, own.attributes, logits, near)


def find_decision(engine: Engine, name: str, decision_id: int) -> Row[Any]:
    """Return the row of a decision of a classifier, by any of its generations. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return _find(connection, name, decision_id)[1]


def applied_rule(
    engine: Engine, name: str, calibration_id: int, predicted: int, attributes: Mapping[str, Any]
) -> AppliedRule:
    """Return what decides whether a snapshot admits a prediction of a class.

    Args:
        calibration_id: The snapshot, of any generation of the classifier.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        found = calibrations.of_any_generation(connection, classifier, calibration_id)
        if not found.has_policy:
            return AppliedRule(found.method_settings.thresholds[predicted], None)
        context = read_context(connection, classifier, found)
    groups = group_values(found.group_attributes, [attributes])
    (policy,) = context.applied(np.array([predicted]), groups)
    assert policy is not None
    return AppliedRule(None if policy.threshold is None else Decimal(repr(policy.threshold)), policy)


def _near(connection: Connection, classifier: Classifier, row: Row[Any]) -> list[Near] | None:
    if classifier.knn is None:
        return []
    if classifier.support_version != row.support_version:
        return None
    (vector,) = exemplars.vectors(connection, classifier, np.array([row.exemplar_id]))
    found = nearest.exact_nearest(connection, classifier, vector)
    described = exemplars.described(connection, found.ids)
    return list(zip(described, found.labels.tolist(), found.distances.tolist(), strict=True))


def _find(connection: Connection, name: str, decision_id: int) -> tuple[Classifier, Row[Any]]:
    classifiers.by_name(connection, name)  # which is named first if neither is there
    row = decisions.by_id(connection, decision_id)
    classifier = generations.having(connection, name, row.classifier_id)
    if classifier is None:
        raise NotFoundError(
            f"classifier {name!r} has made no decision {decision_id}", code=Code.UNKNOWN_DECISION, decision=decision_id
        )
    return classifier, row


def stored_point(engine: Engine, name: str, external_id: str) -> GivenPoint:
    """Return vector, logits and attributes of an exemplar. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        found = labels.by_external_id(connection, classifier, [external_id]).get(external_id)
        if found is None:
            raise labels.unknown_exemplar(classifier.name, external_id)
        ids = np.array([found.id])
        (logits,) = exemplars.network_logits(connection, classifier, ids)
        vector = None if classifier.knn is None else exemplars.vectors(connection, classifier, ids)[0]
        (own,) = exemplars.described(connection, ids)
    return GivenPoint(vector, logits, own.attributes, external_id)
