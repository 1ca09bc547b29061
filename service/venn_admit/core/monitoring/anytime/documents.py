"""Labelled documents in the order in which they count, and what each contributes.

A document contributes once, because how its points depend on each other is unknown. For shares of points it counts
with at most as many points as a document of the calibration data has; for ranks among documents, which need one value
each, with one of its points. Both are drawn by a hash of the point's key, which depends on nothing that is observed.

Points that were drawn with known probabilities weigh by these in shares; those that were not, and have a random label,
weigh by the probabilities of that. Ranks take no weights, so there another hash leaves out as many as make each point
equally likely. So it does in shares of documents that were drawn point by point: if there are more points than count,
those that were more likely to be drawn would leave less room for the others.
Source: Horvitz & Thompson (1952), *A generalization of sampling without replacement from a finite universe*.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any

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
        weight: (n,) float64 in [0, 1], in shares of predicted classes and partitions: the smallest probability that an
            admitted point of the predicted class could have had to be drawn, divided by that of the point, or the same
            of not being drawn; or, for points of a document that were drawn one by one, 1 with this probability and 0
            otherwise.
        weight_of_admitted: (n,) float64 in [0, 1], in shares of true classes and groups: the same among all that could
            have been admitted.
        is_ranked: (n,) bool, whether it stands for its document in ranks, if it is drawn there.
        beside: (n,) int64 in [-1, C), the predicted class of the point that it is compared with, which had no label yet
            and was as likely to get one first; -1 if there is none.
        surer: (n,) int64, 1 if its score is above that of this point, -1 if it is below, 0 otherwise.
        groups: The groups of each attribute that is asked for, by the values that the calibration data have.
    """

    document: IntArray
    draw: npt.NDArray[np.uint64]
    uniform: FloatArray
    predicted: IntArray
    label: IntArray
    partition: IntArray
    admitted: BoolArray
    weight: FloatArray
    weight_of_admitted: FloatArray
    is_ranked: BoolArray
    beside: IntArray
    surer: IntArray
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
        weights = np.stack([self.weight, self.weight_of_admitted, self.is_ranked], axis=1)  # (n, 3)
        # Where none was drawn with a probability, the digest is as it was before there were weights.
        of_weights = b"" if (weights == 1).all() else weights.astype("<f8").tobytes()
        compared = np.stack([self.beside, self.surer], axis=1)  # (n, 2)
        of_sample = compared.astype("<i8").tobytes() if (self.beside >= 0).any() else b""
        return blake2b(before + rows.tobytes() + of_weights + of_sample, digest_size=16).digest()


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
    weight: FloatArray | None = None,
    weight_of_admitted: FloatArray | None = None,
    chance_in_ranks: FloatArray | None = None,
    stands_alone: BoolArray | None = None,
    beside: IntArray | None = None,
    surer: IntArray | None = None,
) -> LabelledPoints:
    """Return n points as monitors see them.

    Args:
        keys: The external id of each point, all different.
        document: (n,) int64, the number of its document, from 0 in the order in which documents count.
        match_count: (n,) int64, q in [0, K]; None if the classifier has logits only.
        groups: The groups of the points by each attribute that is asked for.
        weight: (n,) float64 in [0, 1], as `LabelledPoints` has it; None for points of which none was drawn with a
            probability, which weigh 1.
        weight_of_admitted: (n,) float64 in [0, 1], or None, as `weight`.
        chance_in_ranks: (n,) float64 in [0, 1], or None, the same among all points, with which one is kept in ranks.
        stands_alone: (n,) bool, False for points of larger documents that were drawn one by one: a point counts with a
            probability, its weight, and stands for no document in ranks, where long ones would be favoured. None if
            there are none.
        beside: (n,) int64 in [-1, C), as `LabelledPoints` has it; None if nothing is compared.
        surer: (n,) int64 in [-1, 1], or None, as `beside`.
    """
    ones = np.ones(len(label))
    weight, weight_of_admitted, chance = (
        ones if of is None else of for of in (weight, weight_of_admitted, chance_in_ranks)
    )
    zeros = np.zeros(len(label), dtype=np.int64)
    beside, surer = zeros - 1 if beside is None else beside, zeros if surer is None else surer
    check_lengths(document=document, predicted=predicted, label=label, admitted=admitted)
    check_classes(class_count, {"predicted": predicted, "label": label})
    group = _match_group(match_count, neighbour_count, len(predicted))
    draw = hash_keys(keys, seed=seed, purpose="monitor draw")
    order = np.lexsort((draw, document))
    uniform = _uniform(keys, seed=seed, purpose="monitor tie")
    is_ranked = np.ones(len(label), dtype=np.bool_)
    stands_alone = is_ranked if stands_alone is None else stands_alone
    if not ((chance == 1).all() and stands_alone.all()):
        thinning = _uniform(keys, seed=seed, purpose="monitor thinning")
        is_ranked = (thinning < chance) & stands_alone
        weight, weight_of_admitted = (np.where(stands_alone, of, thinning < of) for of in (weight, weight_of_admitted))
    return LabelledPoints(
        document=document[order],
        draw=draw[order],
        uniform=uniform[order],
        predicted=predicted[order],
        label=label[order],
        partition=(group * class_count + predicted)[order],
        admitted=admitted[order],
        weight=weight[order],
        weight_of_admitted=weight_of_admitted[order],
        is_ranked=is_ranked[order],
        beside=beside[order],
        surer=surer[order],
        groups=tuple(replace(of, codes=of.codes[order]) for of in groups),
    )


def _uniform(keys: Sequence[str], *, seed: int, purpose: str) -> FloatArray:
    return (hash_keys(keys, seed=seed, purpose=purpose) >> np.uint64(11)) / _TWO_TO_53


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


@dataclass(frozen=True, slots=True, eq=False)
class DocumentTally:
    """What each document has of each group, (documents, g) each.

    Attributes:
        points: int64, admitted points that count.
        wrong: int64, the wrong ones among them.
        weight: float64, the sum of the weights of the points.
        wrong_weight: float64, that of the wrong ones.
    """

    points: IntArray
    wrong: IntArray
    weight: FloatArray
    wrong_weight: FloatArray

    def __add__(self, other: "DocumentTally") -> "DocumentTally":
        """Return both together."""
        return DocumentTally(*(getattr(self, of.name) + getattr(other, of.name) for of in fields(self)))


def tally(points: LabelledPoints, group: IntArray, largest: IntArray, weight: FloatArray) -> DocumentTally:
    """Count the admitted points of each document and group, at most M of them, the first by their draws.

    Args:
        group: (n,) int64 in [-1, g); -1 for none.
        largest: (g,) int64, M.
        weight: (n,) float64 in [0, 1]; a point that weighs nothing does not count.
    """
    groups = len(largest)
    rows = np.flatnonzero(points.admitted & (group >= 0) & (weight > 0))
    cell = points.document[rows] * groups + group[rows]
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    rank = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    kept = rank < largest[ordered % groups]
    cell, of_point, wrong = ordered[kept], weight[rows[order[kept]]], points.wrong[rows[order[kept]]]

    def summed(rows: BoolArray, weights: FloatArray | None) -> npt.NDArray[Any]:
        own = None if weights is None else weights[rows]
        return np.bincount(cell[rows], own, minlength=points.document_count * groups).reshape(-1, groups)

    every = np.ones(len(cell), dtype=np.bool_)
    return DocumentTally(summed(every, None), summed(wrong, None), summed(every, of_point), summed(wrong, of_point))


def drawn(points: LabelledPoints) -> IntArray:
    """Return the row of the point that was drawn of each document, (documents,) int64."""
    return np.searchsorted(points.document, np.arange(points.document_count))


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
