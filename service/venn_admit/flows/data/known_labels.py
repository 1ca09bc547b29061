"""The newest labels, and what taking one of them back would change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.core.types import Split
from venn_admit.errors import Code, InvalidInputError, NotFoundError
from venn_admit.store.calibrations import calibrators
from venn_admit.store.database.engine import consistent_view
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
        NotFoundError: There is no such classifier, or no such exemplar of it.
        InvalidInputError: The exemplar has no label.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        stored = labels.by_external_id(connection, classifier, [external_id]).get(external_id)
        if stored is None:
            raise NotFoundError(
                f"classifier {name!r} has no exemplar {external_id!r}",
                code=Code.UNKNOWN_EXEMPLAR,
                classifier=name,
                exemplar=external_id,
            )
        if stored.label is None:
            raise InvalidInputError(f"external_id: expected an exemplar with a label, got {external_id!r}, without one")
        event = labels.newest_event(connection, stored)
        calibrates = stored.split in (Split.MC, Split.VP)
        kept_current = [one.id for one in calibrators.of_classifier(connection, classifier) if one.retired_at is None]
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
