"""The points to label next: recent traffic without a label, in random order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, Row

from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions import reports
from venn_admit.service.store.exemplars import classifiers, exemplars, labels
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.exemplars.exemplars import DescribedExemplar


@dataclass(frozen=True, slots=True)
class WorkList:
    """The first points to label. shown: with the network's prediction and attributes. waiting: how many there are."""

    class_names: tuple[str, ...]
    shown: Sequence[DescribedExemplar]
    waiting: int


def work_list(engine: Engine, name: str, *, limit: int) -> WorkList:
    """Return the points to label first. Raises NotFoundError, and NotReadyError before the first calibration."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        waiting = [row.external_id for row in _waiting(connection, classifier)]
        first = waiting[:limit]
        stored = labels.by_external_id(connection, classifier, first)
        ids = np.array([stored[external_id].id for external_id in first], dtype=np.int64)
        return WorkList(classifier.class_names, exemplars.described(connection, ids), len(waiting))


def unlabelled(engine: Engine, name: str, *, limit: int) -> list[Row[Any]]:
    """Return points to label, with their documents and the network's predictions; errors are those of `work_list`."""
    with consistent_view(engine) as connection:
        return list(islice(_waiting(connection, classifiers.by_name(connection, name)), limit))


def _waiting(connection: Connection, classifier: Classifier) -> Iterator[Row[Any]]:
    calibration = calibrations.latest(connection, classifier)
    return chain.from_iterable(reports.unlabelled_rows(connection, classifier, calibration))
