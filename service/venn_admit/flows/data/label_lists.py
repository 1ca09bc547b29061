"""Lists of exemplars for people who label: those to label next, and those whose label is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Engine, Row

from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.traffic import RECENT
from venn_admit.core.split_names import Split
from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.layer.contributions import without_prediction
from venn_admit.store.calibrations import calibrations, calibrators
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import classifiers, labels
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class KnownLabel:
    """A label that is stored, and what becomes of it if it is taken back.

    split: where the exemplar is now. selection, source, created_at: of the event that gave it. settings: the settings
    that would be calibrated again.
    """

    classifier: Classifier
    external_id: str
    label: int
    split: Split
    selection: str
    source: str
    created_at: datetime
    settings: tuple[int, ...]


def newest_labels(engine: Engine, name: str, *, limit: int) -> Sequence[Row[Any]]:
    """Return the newest labels that still hold, the last first. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return labels.newest(connection, classifiers.by_name(connection, name), limit=limit)


def known_label(engine: Engine, name: str, external_id: str) -> KnownLabel:
    """Return the label of an exemplar, and what taking it back would change.

    Raises:
        InvalidInputError: The exemplar has no label.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        stored = labels.by_external_id(connection, classifier, [external_id]).get(external_id)
        if stored is None:
            raise labels.unknown_exemplar(name, external_id)
        if stored.label is None:
            raise InvalidInputError(f"external_id: expected an exemplar with a label, got {external_id!r}, without one")
        event = labels.newest_event(connection, stored)
        calibrates = stored.split in (Split.MC, Split.VP)
        kept_current = [
            one.id
            for one in calibrators.of_classifier(connection, classifier)
            if one.has_current and one.retired_at is None
        ]
        return KnownLabel(
            classifier=classifier,
            external_id=external_id,
            label=stored.label,
            split=stored.split,
            selection=event.selection,
            source=event.source,
            created_at=event.created_at,
            settings=tuple(kept_current) if calibrates else (),
        )


@dataclass(frozen=True, slots=True)
class ChosenPlace:
    """A place of which points are wanted. match_counts: values of q; predicted: a class; None for any."""

    match_counts: range | None
    predicted: int | None

    def holds(self, decided: DecidedPoints) -> IntArray:
        """Return the exemplars that lie there, (m,) int64."""
        held = np.ones(len(decided.exemplar_ids), dtype=np.bool_)
        if self.match_counts is not None:
            matching = decided.approximation.match_count
            held &= (matching >= self.match_counts[0]) & (matching <= self.match_counts[-1])
        if self.predicted is not None:
            held &= decided.predicted == self.predicted
        return decided.exemplar_ids[held]


@dataclass(frozen=True, slots=True)
class WorkPoint:
    """A point to label, without what was predicted, which people who see it confirm.

    label: what is known of it already, though it does not calibrate; None if nothing is.
    """

    external_id: str
    document_id: str | None
    label: int | None
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkList:
    """The first points to label. waiting: how many there are. recent: of how many points at most traffic is recent."""

    class_names: tuple[str, ...]
    shown: Sequence[WorkPoint]
    waiting: int
    recent: int


def work_list(engine: Engine, name: str, *, limit: int, place: ChosenPlace | None = None) -> WorkList:
    """Return the points to label first, in an order that depends on neither their content nor their arrival.

    Without a place, the first of them are a random sample of recent traffic that does not calibrate yet. Those that
    somebody chose to label are among them, with their label, because without them the sample would not be random.

    Args:
        place: Where they lie; only points without a label are wanted then. None: anywhere.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.latest(connection, classifier)
        decided = reports.recent_points(connection, classifier, calibration.knn_parameters_id, calibration)
        if place is None:
            exemplar_ids = reports.without_gaps(connection, classifier, decided.exemplar_ids)
        else:
            exemplar_ids = place.holds(decided)
        rows = reports.work_rows(connection, exemplar_ids, with_labelled=place is None, limit=limit)
        points = [
            WorkPoint(row.external_id, row.document_id, row.label, without_prediction(row.attributes)) for row in rows
        ]
        return WorkList(classifier.class_names, points, rows[0].waiting if rows else 0, RECENT)
