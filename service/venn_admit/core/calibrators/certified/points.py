"""The labelled points that a certificate rests on, in an order of their own, and which of them policies look at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind, PromisedClass
from venn_admit.core.calibrators.certified.policies import GroupThresholds
from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

MOST_VALUES = 200
"""More values of an attribute than these are no groups."""
LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True, eq=False)
class PointGroups:
    """The groups of an attribute to which n points belong.

    Attributes:
        values: Its V values, each once, sorted.
        codes: (n,) int64 in [-1, V), the place of each point's value; -1 for a point without one.
    """

    attribute: str
    values: tuple[str, ...]
    codes: IntArray


def groups_of(attribute: str, of_points: Sequence[str | None], values: Sequence[str]) -> PointGroups:
    """Return the groups of points by the values of an attribute.

    Args:
        of_points: (n,) the value of each point; None for a point without one.
        values: All that there are, sorted.
    """
    place_of: dict[str | None, int] = {value: place for place, value in enumerate(values)}
    return PointGroups(attribute, tuple(values), np.array([place_of.get(one, -1) for one in of_points], dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class CertificatePoints:
    """Labelled points as a certificate sees them.

    Attributes:
        score: (n,) float64 in [0, 1], which must not depend on the labels of these points if they are evidence.
        document: (n,) int64, the same number for the points of one document, and for no others.
        groups: The groups of each attribute that is asked for, in the order of their names.
        weight: (n,) float64 in [0, 1], of points that were drawn with different probabilities; None: all count alike.
    """

    score: FloatArray
    predicted: IntArray
    label: IntArray
    document: IntArray
    groups: tuple[PointGroups, ...] = ()
    weight: FloatArray | None = None

    @property
    def weights(self) -> FloatArray:
        """(n,) float64."""
        return np.ones(len(self.score)) if self.weight is None else self.weight

    @property
    def document_count(self) -> int:
        """The number of documents of points in canonical order."""
        return int(self.document[-1]) + 1

    @property
    def attributes(self) -> dict[str, list[str | None]]:
        """The value of each point, by attribute."""
        return {of.attribute: [(*of.values, None)[code] for code in of.codes.tolist()] for of in self.groups}

    def take(self, rows: BoolArray | IntArray | slice) -> "CertificatePoints":
        """Return some of the points."""
        groups = tuple(replace(of, codes=of.codes[rows]) for of in self.groups)
        weight = None if self.weight is None else self.weight[rows]
        return CertificatePoints(
            self.score[rows], self.predicted[rows], self.label[rows], self.document[rows], groups, weight
        )

    def group(self, attribute: str) -> PointGroups:
        """Return the groups of an attribute that is asked for."""
        return _of_attribute(attribute, self.groups)

    def classes(self, kind: Kind) -> IntArray:
        """Return the class of each point in a kind, as `classes_of` does."""
        return classes_of(kind, self.predicted, self.label, self.groups)


def classes_of(kind: Kind, predicted: IntArray, label: IntArray, groups: Sequence[PointGroups]) -> IntArray:
    """Return the class of each of n points in a kind, (n,) int64; -1 for a point that is in none.

    The class of value v within the predicted class c has the number c V + v.
    """
    if not isinstance(kind, GroupKind):
        return predicted if kind is ClassKind.PREDICTED else label
    of = _of_attribute(kind.attribute, groups)
    return np.where(of.codes < 0, -1, predicted * len(of.values) + of.codes) if kind.by_predicted else of.codes


def named_class(kind: Kind, number: int, groups: Sequence[PointGroups]) -> PromisedClass:
    """Return the class that has a number in `classes_of`."""
    if not isinstance(kind, GroupKind):
        return PromisedClass(kind, number, None)
    values = _of_attribute(kind.attribute, groups).values
    predicted, code = divmod(number, len(values))
    return PromisedClass(kind, predicted if kind.by_predicted else None, values[code])


def _of_attribute(attribute: str, groups: Sequence[PointGroups]) -> PointGroups:
    return next(of for of in groups if of.attribute == attribute)


def check_points(name: str, points: CertificatePoints, class_count: int) -> None:
    """Check some points.

    Raises:
        InvalidInputError: Arrays differ in length, a value is out of range, or there are fewer than two documents.
    """
    check_lengths(score=points.score, predicted=points.predicted, label=points.label, document=points.document)
    check_classes(class_count, {"predicted": points.predicted, "label": points.label})
    outside = ~((points.score >= 0) & (points.score <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInputError(f"the score of {name} must lie in [0, 1], got {points.score[row]} in row {row}")
    for of in points.groups:
        check_lengths(score=points.score, **{of.attribute: of.codes})
        longest = max(map(len, of.values), default=0)
        if longest > LONGEST_VALUE:
            raise InvalidInputError(
                f"attribute {of.attribute!r}: expected values of at most {LONGEST_VALUE} characters to certify for, "
                f"got one of {longest:,}; ingest it with short values, such as names of categories"
            )
        if len(of.values) > MOST_VALUES:
            raise InvalidInputError(
                f"attribute {of.attribute!r}: expected at most {MOST_VALUES} values to certify for, got "
                f"{len(of.values):,}; ingest it with fewer, such as ranges instead of numbers"
            )
    documents = len(np.unique(points.document))
    if documents < 2:
        raise InvalidInputError(
            f"a certificate needs at least two documents in {name}, got {documents}; label more documents"
        )


def canonical(points: CertificatePoints) -> tuple[CertificatePoints, np.random.Generator]:
    """Return the points in an order that depends on their content only, and a generator seeded by that content.

    Documents are numbered from 0 in that order.

    Args:
        points: In any order.
    """
    taken, document, generator = content_order(points)
    # Adding 0 makes the negative zero positive, which compares equal to it.
    found = replace(points.take(taken), document=document)
    return replace(found, score=found.score + 0.0), generator


def content_order(
    points: CertificatePoints, others: Sequence[IntArray] = (), other_scores: Sequence[FloatArray] = ()
) -> tuple[IntArray, IntArray, np.random.Generator]:
    """Return an order of points that depends on their content only, and a generator seeded by that content.

    Documents are sorted by a digest of their points, and points within their document. Documents of the same content
    are interchangeable, so that neither the order of rows nor the numbers that documents came with show in anything
    computed from the result. Digests see scores to six decimals: the last digits of a score differ between processors,
    on which chance must not depend.

    Args:
        points: In any order.
        others: (n,) int64 each, what else their content is.
        other_scores: (n,) float64 each, scores that belong to it too.

    Returns:
        The places of the points in that order and the number of the document of each, from 0, (n,) int64 each; and the
        generator.
    """
    # Adding 0 makes the negative zero positive, which compares equal to it.
    scores = [score + 0.0 for score in (points.score, *other_scores)]
    seen = [np.rint(score * 1e6).astype(np.int64) for score in scores]
    codes = [*(of.codes for of in points.groups), *others, points.label, points.predicted, *seen]
    order = np.lexsort((*scores, *codes, points.document))
    document = points.document[order]
    starts = np.flatnonzero(np.r_[True, document[1:] != document[:-1]])
    ends = np.r_[starts[1:], len(order)]
    contents = _of_documents([code[order] for code in codes], starts, ends)
    exactly = _of_documents([score[order] for score in scores], starts, ends)
    # Many documents of one point are alike.
    digest_of = {content: blake2b(content, digest_size=16).digest() for content in set(contents)}
    digests = [digest_of[content] for content in contents]
    keys = [digest + exact for digest, exact in zip(digests, exactly, strict=True)]
    ranked = sorted(range(len(keys)), key=keys.__getitem__)
    sizes = (ends - starts)[ranked]
    ends_in_order = np.cumsum(sizes)
    taken = np.arange(len(order)) + np.repeat(starts[ranked] - (ends_in_order - sizes), sizes)
    content = blake2b(b"".join(digests[index] for index in ranked), digest_size=16).digest()
    generator = np.random.default_rng(int.from_bytes(content, "little"))
    return order[taken], np.repeat(np.arange(len(sizes)), sizes), generator


def _of_documents(columns: Sequence[IntArray | FloatArray], starts: IntArray, ends: IntArray) -> list[bytes]:
    """The rows of each document, as bytes."""
    rows = np.stack(columns, axis=1)
    width, whole = rows.itemsize * rows.shape[1], rows.tobytes()
    return [whole[start:end] for start, end in zip((width * starts).tolist(), (width * ends).tolist(), strict=True)]


Coverage = tuple[BoolArray, ...]
"""For each attribute that is asked for, (C, V), whether each group is admitted in each predicted class."""


def covers(coverage: Coverage, points: CertificatePoints) -> BoolArray:
    """Return which points are of groups that are admitted, (n,) bool.

    No coverage covers all points; one without an attribute is of no group of it.
    """
    found = np.ones(len(points.score), dtype=np.bool_)
    for mask, of in zip(coverage, points.groups, strict=True):
        found &= (of.codes >= 0) & mask[points.predicted, of.codes]
    return found


def group_thresholds(
    parts: Sequence[tuple[Coverage, IntArray, tuple[float | None, ...]]],
    groups: Sequence[PointGroups],
    class_count: int,
) -> tuple[GroupThresholds, ...]:
    """Return the thresholds of the groups of each attribute under policies that admit disjoint groups.

    Args:
        parts: The groups that each policy covers, the predicted classes that it sets thresholds for, and these.
    """
    found = []
    for place, of in enumerate(groups):
        least: list[dict[str, float]] = [{} for _ in range(class_count)]
        for coverage, predicted, thresholds in parts:
            for number, threshold in zip(predicted.tolist(), thresholds, strict=True):
                if threshold is not None:
                    codes = np.flatnonzero(coverage[place][number]).tolist()
                    least[number] |= {of.values[code]: threshold for code in codes}
        found.append(GroupThresholds(of.attribute, tuple(least)))
    return tuple(found)
