"""How the training exemplars changed, except by ingestion."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import support
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class SupportChange:
    """A training exemplar that was added, removed or relabelled; label_before is None if it was added."""

    exemplar_id: int
    kind: str
    label_before: int | None


@dataclass(frozen=True, slots=True, eq=False)
class SupportChanges:
    """m changes, except ingestion, newest first: versions, exemplar_ids, labels_before (m,) int64, -1 for None.

    kinds: (m,) str.
    """

    versions: IntArray
    exemplar_ids: IntArray
    kinds: npt.NDArray[np.str_]
    labels_before: IntArray

    def ids(self, kind: str, *, after: int) -> IntArray:
        """Return the exemplars with a change of some kind after a version, (any,) int64."""
        ids: IntArray = self.exemplar_ids[(self.kinds == kind) & (self.versions > after)]
        return ids


def record(connection: Connection, classifier: Classifier, changes: Sequence[SupportChange]) -> None:
    """Record changes of training exemplars, each of a different one, as a new version, and move their vectors.

    The caller holds the ingestion lock, and changes splits and labels.
    """
    version = support.next_version(connection)
    ids = {kind: [one.exemplar_id for one in changes if one.kind == kind] for kind in ("added", "removed")}
    execute(
        connection,
        "support.record_changes",
        classifier_id=classifier.id,
        version=version,
        exemplar_ids=[one.exemplar_id for one in changes],
        kinds=[one.kind for one in changes],
        labels_before=[one.label_before for one in changes],
    )
    for kind, exemplar_ids in ids.items():
        execute(
            connection,
            "support.move_vectors",
            classifier_id=classifier.id,
            support=kind == "added",
            exemplar_ids=exemplar_ids,
        )
    support.renew(connection, classifier, version)


def after(connection: Connection, classifier: Classifier, version: int) -> SupportChanges:
    """Return the changes after a version, except ingestion."""
    rows = execute(connection, "support.changes", classifier_id=classifier.id, version=version).all()
    return SupportChanges(
        versions=np.array([row.version for row in rows], dtype=np.int64),
        exemplar_ids=np.array([row.exemplar_id for row in rows], dtype=np.int64),
        kinds=np.array([row.kind for row in rows], dtype=np.str_),
        labels_before=np.array([-1 if row.label_before is None else row.label_before for row in rows], dtype=np.int64),
    )
