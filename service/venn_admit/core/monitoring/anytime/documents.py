"""Labelled documents in the order in which they count, and what each contributes.

A document contributes once, because how its points depend on each other is unknown. For shares of points it counts
with at most as many points as a document of the calibration data has; for ranks among documents, which need one value
each, with one of its points. Both are drawn by a hash of the point's key, which depends on nothing that is observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from venn_admit.core.calibrators.certified.points import PointGroups
from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

MATCH_GROUPS = 3
"""The groups of q: none of the nearest neighbours matches, some do, all K do. Without vectors there is one."""

_TWO_TO_53 = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPoints:
    """The n labelled points of some documents, those of one document together and in the order of their draws.

    Attributes:
        document: (n,) int64, ascending from 0 in the order in which documents count.
        draw: (n,) uint64, the hash by which points of a document are ordered.
        uniform: (n,) float64 in [0, 1), a hash by which ties of the point are smoothed.
        partition: (n,) int64 in [0, P), the group of q times C, plus the predicted class. P is 3C; without vectors, C.
        groups: The groups of each attribute that is asked for, by the values that the calibration data have.
    """

    document: IntArray
    draw: npt.NDArray[np.uint64]
    uniform: FloatArray
    predicted: IntArray
    label: IntArray
    partition: IntArray
    admitted: BoolArray
    groups: tuple[PointGroups, ...] = ()

    @property
    def document_count(self) -> int:
        """The number of documents."""
        return int(self.document[-1]) + 1 if len(self.document) else 0

    @property
    def wrong(self) -> BoolArray:
        """(n,) bool, whether the prediction is not the label."""
        differs: BoolArray = self.predicted != self.label
        return differs

    def take(self, first: int, end: int) -> "LabelledPoints":
        """Return the documents from number `first` to before `end`, numbered from 0."""
        rows = slice(*np.searchsorted(self.document, [first, end]).tolist())
        columns = {name: getattr(self, name)[rows] for name in self.__slots__ if name != "groups"}
        groups = tuple(replace(of, codes=of.codes[rows]) for of in self.groups)
        return LabelledPoints(**{**columns, "document": columns["document"] - first}, groups=groups)

    def digest(self, before: bytes = b"") -> bytes:
        """Return BLAKE2b-128 of everything that the state of a monitor depends on.

        Args:
            before: The digest of the documents before these.
        """
        columns = (self.document, self.draw.view(np.int64), self.predicted, self.label, self.partition, self.admitted)
        codes = (of.codes for of in self.groups)
        rows = np.stack([column.astype("<i8") for column in (*columns, *codes)], axis=1)  # (n, 6 + A)
        return blake2b(before + rows.tobytes(), digest_size=16).digest()


def labelled_points(
    keys: Sequence[str],
    document: IntArray,
    *,
    predicted: IntArray,
    label: IntArray,
    match_count: IntArray | None,
    admitted: BoolArray,
    class_count: int,
    neighbour_count: int | None,
    seed: int,
    groups: Sequence[PointGroups] = (),
) -> LabelledPoints:
    """Return n points as monitors see them.

    Args:
        keys: The external id of each point, all different.
        document: (n,) int64, the number of its document, from 0 in the order in which documents count.
        match_count: (n,) int64, q in [0, K]; None if the classifier has logits only.
        groups: The groups of the points by each attribute that is asked for.
    """
    check_lengths(document=document, predicted=predicted, label=label, admitted=admitted)
    check_classes(class_count, {"predicted": predicted, "label": label})
    group = _match_group(match_count, neighbour_count, len(predicted))
    draw = hash_keys(keys, seed=seed, purpose="monitor draw")
    order = np.lexsort((draw, document))
    uniform = (hash_keys(keys, seed=seed, purpose="monitor tie") >> np.uint64(11)) / _TWO_TO_53
    return LabelledPoints(
        document=document[order],
        draw=draw[order],
        uniform=uniform[order],
        predicted=predicted[order],
        label=label[order],
        partition=(group * class_count + predicted)[order],
        admitted=admitted[order],
        groups=tuple(replace(of, codes=of.codes[order]) for of in groups),
    )


def _match_group(match_count: IntArray | None, neighbour_count: int | None, count: int) -> IntArray:
    if match_count is None or neighbour_count is None:
        if (match_count is None) != (neighbour_count is None):
            raise InvalidInputError("expected match counts and K, or neither of them, got one; pass both or neither")
        return np.zeros(count, dtype=np.int64)
    if len(match_count) != count:
        raise InvalidInputError(f"expected {count} match counts, one for each point, got {len(match_count)}")
    if np.any((match_count < 0) | (match_count > neighbour_count)):
        raise InvalidInputError(f"match counts must lie in [0, {neighbour_count}]; pass those of the same classifier")
    group: IntArray = (match_count > 0).astype(np.int64) + (match_count == neighbour_count)
    return group


def tally(points: LabelledPoints, group: IntArray, largest: IntArray) -> tuple[IntArray, IntArray]:
    """Count the admitted points of each document and group, at most M of them, the first by their draws.

    Returns all of them and the wrong ones among them, (documents, g) int64 each.
    """
    groups = len(largest)
    rows = np.flatnonzero(points.admitted & (group >= 0))
    cell = points.document[rows] * groups + group[rows]
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    rank = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    kept = rank < largest[ordered % groups]
    cell, wrong = ordered[kept], points.wrong[rows[order[kept]]]
    shape = (points.document_count, groups)
    return (
        np.bincount(cell, minlength=shape[0] * groups).reshape(shape),
        np.bincount(cell[wrong], minlength=shape[0] * groups).reshape(shape),
    )


def drawn(points: LabelledPoints) -> IntArray:
    """Return the row of the point that was drawn of each document, (documents,) int64."""
    rows: IntArray = np.searchsorted(points.document, np.arange(points.document_count))
    return rows


def counts_of_documents(document: IntArray, group: IntArray, groups: int) -> tuple[IntArray, IntArray]:
    """Return the most points that a document has in each group, at least 1, and how many documents have any.

    Args:
        document: (n,) int64, the document of each point of the calibration data, admitted or not.

    Returns:
        (g,) int64 each.
    """
    inside = group >= 0
    cell, counts = np.unique(document[inside] * groups + group[inside], return_counts=True)
    most = np.ones(groups, dtype=np.int64)
    np.maximum.at(most, cell % groups, counts)
    return most, np.bincount(cell % groups, minlength=groups)
