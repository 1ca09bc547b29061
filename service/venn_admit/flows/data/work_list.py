"""The points to label next: a random sample of recent traffic, which calibrates, or those of a place, which do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Engine

from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.traffic import RECENT
from venn_admit.core.types import IntArray
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import classifiers


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
    """A point to label. label: what is known of it already, though it does not calibrate; None if nothing is."""

    external_id: str
    document_id: str | None
    network_predicted: int
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
        limit: The most points to return.
        place: Where they lie; only points without a label are wanted then. None: anywhere.

    Raises:
        NotFoundError: There is no such classifier.
        NotReadyError: There is no calibration yet.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        decided = reports.recent_points(connection, classifier, calibrations.latest(connection, classifier))
        exemplar_ids = decided.exemplar_ids if place is None else place.holds(decided)
        rows = reports.work_rows(connection, exemplar_ids, with_labelled=place is None, limit=limit)
        points = [
            WorkPoint(row.external_id, row.document_id, row.network_predicted, row.label, row.attributes)
            for row in rows
        ]
        return WorkList(classifier.class_names, points, rows[0].waiting if rows else 0, RECENT)
