"""The rows that a snapshot keeps of its calibration points, and which of them differ from the snapshot before."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import BoolArray, CalibrationPoints, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationRows:
    """The n points of mc and vp, each exemplar once.

    Attributes:
        exemplar_ids: (n,) int64.
        in_vp: (n,) bool, false for points of mc.
        bins: (n,) int64, the bin of each q.
        packed_sets: (n, ceil(C / 8)) uint8, the ADMIT sets of vp as `np.packbits` packs them, 0 for points without one.
        logits: (n, C) float64, KNN(x), if the points are undivided; otherwise None.
    """

    class_count: int
    exemplar_ids: IntArray
    in_vp: BoolArray
    points: CalibrationPoints
    bins: IntArray
    packed_sets: npt.NDArray[np.uint8]
    logits: FloatArray | None = None

    @property
    def has_singleton(self) -> BoolArray:
        """Whether each ADMIT set holds a single class, (n,)."""
        single: BoolArray = np.bitwise_count(self.packed_sets).sum(axis=1) == 1
        return single

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return self.exemplar_ids.nbytes + sum(column.nbytes for column in _columns(self))

    def take(self, rows: IntArray) -> "CalibrationRows":
        """Return some of the points, in the order given."""
        return CalibrationRows(
            class_count=self.class_count,
            exemplar_ids=self.exemplar_ids[rows],
            in_vp=self.in_vp[rows],
            points=self.points.take(rows),
            bins=self.bins[rows],
            packed_sets=self.packed_sets[rows],
            logits=None if self.logits is None else self.logits[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """The changes that turn stored rows into new ones.

    Attributes:
        closed_ids: Exemplars whose stored row no longer holds.
        opened: Positions of the rows to add.
    """

    closed_ids: IntArray
    opened: IntArray


def rows_digest(rows: CalibrationRows) -> bytes:
    """Return a digest, 16 bytes, of the points, whatever their order: of their splits, labels, predictions and scores.

    Args:
        rows: The points.
    """
    order, digest = np.argsort(rows.exemplar_ids), blake2b(digest_size=16)
    points = rows.points
    for column in (rows.exemplar_ids, rows.in_vp, points.label, points.predicted, rows.bins, points.score):
        digest.update(np.ascontiguousarray(column[order]).tobytes())
    return digest.digest()


def rows_of_split(
    exemplar_ids: IntArray,
    points: CalibrationPoints,
    bins: IntArray,
    admit_sets: BoolArray | None,
    *,
    class_count: int,
    in_vp: bool | None = None,
    logits: FloatArray | None = None,
) -> CalibrationRows:
    """Return the rows of one split.

    Args:
        exemplar_ids: (n,) int64.
        points: The n points.
        bins: (n,) int64, the bin of each q.
        admit_sets: (n, C) bool, the ADMIT sets of vp; None for mc, which has none, and for methods without them.
        in_vp: Whether the split is vp; None: if there are ADMIT sets.
        logits: (n, C) float64, if the points are undivided.
    """
    n = len(exemplar_ids)
    empty = np.zeros((n, -(-class_count // 8)), dtype=np.uint8)
    return CalibrationRows(
        class_count=class_count,
        exemplar_ids=exemplar_ids,
        in_vp=np.full(n, admit_sets is not None if in_vp is None else in_vp),
        points=points,
        bins=bins,
        packed_sets=empty if admit_sets is None else np.packbits(admit_sets, axis=1),
        logits=logits,
    )


def join_rows(parts: Sequence[CalibrationRows]) -> CalibrationRows:
    """Return the rows of one or more parts, in their order."""
    return CalibrationRows(
        class_count=parts[0].class_count,
        exemplar_ids=np.concatenate([part.exemplar_ids for part in parts]),
        in_vp=np.concatenate([part.in_vp for part in parts]),
        points=join_points([part.points for part in parts]),
        bins=np.concatenate([part.bins for part in parts]),
        packed_sets=np.concatenate([part.packed_sets for part in parts]),
    )


def join_points(parts: Sequence[CalibrationPoints]) -> CalibrationPoints:
    """Return the points of one or more parts, in their order."""
    return CalibrationPoints(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in CalibrationPoints.__slots__)
    )


def changed_rows(stored: CalibrationRows, incoming: CalibrationRows, among: IntArray | None = None) -> RowChanges:
    """Return the changes that turn the stored rows into the incoming ones.

    Rows that are equal in every bit stay, in whatever order they come.

    Args:
        stored: The open rows.
        incoming: The rows of the next snapshot.
        among: The exemplars whose rows may differ, int64; None for all.
    """
    if among is not None:
        places = np.flatnonzero(np.isin(incoming.exemplar_ids, among))
        stored = stored.take(np.flatnonzero(np.isin(stored.exemplar_ids, among)))
        found = changed_rows(stored, incoming.take(places))
        return RowChanges(found.closed_ids, places[found.opened])
    _, of_stored, of_incoming = np.intersect1d(
        stored.exemplar_ids, incoming.exemplar_ids, assume_unique=True, return_indices=True
    )
    same = np.ones(len(of_stored), dtype=np.bool_)
    for before, after in zip(_columns(stored), _columns(incoming), strict=True):
        same &= (before[of_stored] == after[of_incoming]).all(axis=1)
    return RowChanges(
        closed_ids=np.delete(stored.exemplar_ids, of_stored[same]),
        opened=np.delete(np.arange(len(incoming.exemplar_ids)), of_incoming[same]),
    )


def _columns(rows: CalibrationRows) -> list[npt.NDArray[np.generic]]:
    """All columns except the ids, each (n, width) and of whole numbers, because floats are compared by their bits."""
    points = rows.points
    narrow = (
        rows.in_vp,
        points.label,
        points.predicted,
        points.match_count,
        rows.bins,
        points.distance.view(np.int64),
        points.score.view(np.int64),
    )
    wide = [rows.packed_sets] if rows.logits is None else [rows.packed_sets, rows.logits.view(np.int64)]
    return [*(column[:, None] for column in narrow), *wide]
