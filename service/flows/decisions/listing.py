"""Stored decisions: a page of them, and one with its evidence and the exemplars that it rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, Row

from venn_admit.service.errors import Code, NotFoundError
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions import decisions
from venn_admit.service.store.decisions.decisions import Wanted
from venn_admit.service.store.exemplars import classifiers, exemplars
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.exemplars.exemplars import DescribedExemplar
from venn_admit.service.store.search import nearest


@dataclass(frozen=True, slots=True, eq=False)
class ShownDecision:
    """A stored decision.

    stored: as its row has it, with the evidence. near: the K nearest training exemplars, each with its label and its
    distance, nearest first; none with logits only; None if training data changed since, so that these may be others.
    """

    classifier: Classifier
    stored: Row[Any]
    near: list[tuple[DescribedExemplar, int, float]] | None


def list_decisions(engine: Engine, name: str, wanted: Wanted, *, limit: int) -> tuple[Classifier, Sequence[Row[Any]]]:
    """Return the newest decisions of a classifier that are wanted, newest first.

    Raises NotFoundError if there is no such classifier, or no such calibration of it.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if wanted.calibration_id is not None:
            calibrations.by_id(connection, classifier, wanted.calibration_id)
        return classifier, decisions.page(connection, classifier, wanted, limit=limit)


def show_decision(engine: Engine, name: str, decision_id: int) -> ShownDecision:
    """Return a decision of a classifier. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier, row = _find(connection, name, decision_id)
        if classifier.knn is None:
            return ShownDecision(classifier, row, [])
        if classifier.support_version != row.support_version:
            return ShownDecision(classifier, row, None)
        (vector,) = exemplars.vectors(connection, classifier, np.array([row.exemplar_id]))
        found = nearest.exact_nearest(connection, classifier, vector)
        described = exemplars.described(connection, found.ids)
        return ShownDecision(
            classifier, row, list(zip(described, found.labels.tolist(), found.distances.tolist(), strict=True))
        )


def find_decision(engine: Engine, name: str, decision_id: int) -> Row[Any]:
    """Return the row of a decision of a classifier. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return _find(connection, name, decision_id)[1]


def _find(connection: Connection, name: str, decision_id: int) -> tuple[Classifier, Row[Any]]:
    classifier = classifiers.by_name(connection, name)
    row = decisions.by_id(connection, decision_id)
    if row.classifier_id != classifier.id:
        raise NotFoundError(
            f"classifier {name!r} has made no decision {decision_id}",
            code=Code.UNKNOWN_DECISION,
            decision=decision_id,
        )
    return classifier, row
