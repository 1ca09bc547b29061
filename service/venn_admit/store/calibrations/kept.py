"""The newest snapshots of a process, kept in memory for those that are computed from them.

A snapshot never changes under its revision, a UUID that forgetting one of its points renews. What is kept is therefore
right, or nobody asks for it: also if its transaction was rolled back, or the database was restored.
"""

from dataclasses import dataclass
from threading import Lock
from uuid import UUID

from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.comparison.strength import AdmittedPoints
from venn_admit.core.types import FloatArray

# That of a setting's current snapshot, and of the one that is about to replace it.
_KEPT = 2
# The part of a memory budget that they take.
BUDGET_PART = 16


@dataclass(slots=True, eq=False)
class KeptSnapshot:
    """The rows of a snapshot, in any order.

    vp_logits: (n_vp, C) float64, KNN(x) of the rows of vp, in their order; None if they were not at hand. admitted:
    which points it would admit; None until somebody asks.
    """

    rows: CalibrationRows
    vp_logits: FloatArray | None = None
    admitted: AdmittedPoints | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        logits = 0 if self.vp_logits is None else self.vp_logits.nbytes
        return self.rows.nbytes + logits + 9 * len(self.rows.exemplar_ids)


class KeptSnapshots:
    """The snapshots by their revisions: the newest of each setting, as long as all take no more than a limit."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[UUID, tuple[int, KeptSnapshot]] = {}
        self._lock = Lock()

    def get(self, revision: UUID | None) -> KeptSnapshot | None:
        """Return the snapshot of a revision, if it is kept."""
        found = None if revision is None else self._kept.get(revision)
        return None if found is None else found[1]

    def keep(self, calibrator_id: int, revision: UUID, snapshot: KeptSnapshot) -> None:
        """Keep a new snapshot of a setting, and let older ones go."""
        with self._lock:
            self._kept[revision] = (calibrator_id, snapshot)
            of_setting = [one for one, (setting, _) in self._kept.items() if setting == calibrator_id]
            for older in of_setting[:-_KEPT]:
                del self._kept[older]
            while sum(one.size for _, one in self._kept.values()) > self._most_bytes:
                del self._kept[next(iter(self._kept))]
