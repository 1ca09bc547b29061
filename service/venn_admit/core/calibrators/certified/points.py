"""The points that a certificate rests on, in an order of their own, and what a policy admits in each document."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

TOGETHER_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, eq=False)
class CertificatePoints:
    """The labelled points of one split (`mc` or `vp`) as a certificate sees them.

    Attributes:
        p0: (n,) float64 in [0, 1], the confidence in the prediction; that of a point of `mc` must come from a model
            that was not fitted to the point's document.
        predicted: (n,) int64 in [0, C), the predicted class.
        label: (n,) int64 in [0, C), the true class.
        document: (n,) int64, the same number for the points of one document, and for no others.
    """

    p0: FloatArray
    predicted: IntArray
    label: IntArray
    document: IntArray

    @property
    def document_count(self) -> int:
        """The number of documents of points in canonical order."""
        return int(self.document[-1]) + 1


def check_points(name: str, points: CertificatePoints, class_count: int) -> None:
    """Check the points of one split.

    Args:
        name: The split, for the message.
        points: The points.

    Raises:
        InvalidInputError: Arrays differ in length, a value is out of range, or there are fewer than two documents.
    """
    check_lengths(p0=points.p0, predicted=points.predicted, label=points.label, document=points.document)
    check_classes(class_count, {"predicted": points.predicted, "label": points.label})
    outside = ~((points.p0 >= 0) & (points.p0 <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInputError(f"p0 of {name} must lie in [0, 1], got {points.p0[row]} in row {row}")
    documents = len(np.unique(points.document))
    if documents < 2:
        raise InvalidInputError(
            f"a certificate needs at least two documents in {name}, got {documents}; label more documents"
        )


def canonical(points: CertificatePoints) -> tuple[CertificatePoints, np.random.Generator]:
    """Return the points in an order that depends on their content only, and a generator seeded by that content.

    Documents are sorted by a digest of their points, and points within their document; documents are numbered from 0.
    Documents of the same content are interchangeable, so that neither the order of rows nor the numbers that documents
    came with show in anything computed from the result.

    Args:
        points: In any order.
    """
    order = np.lexsort((points.label, points.predicted, points.p0, points.document))
    rows = np.empty(len(order), dtype=[("p0", "<f8"), ("predicted", "<i8"), ("label", "<i8")])
    # Adding 0 makes the negative zero positive, which compares equal to it.
    rows["p0"], rows["predicted"] = points.p0[order] + 0.0, points.predicted[order]
    rows["label"] = points.label[order]
    document = points.document[order]
    starts = np.flatnonzero(np.r_[True, document[1:] != document[:-1]])
    ends = np.r_[starts[1:], len(order)]
    content_of = rows.tobytes()
    width = rows.itemsize
    digest_of: dict[bytes, bytes] = {}  # many documents of one point are alike
    digests = []
    for start, end in zip((width * starts).tolist(), (width * ends).tolist(), strict=True):
        document_content = content_of[start:end]
        if document_content not in digest_of:
            digest_of[document_content] = blake2b(document_content, digest_size=16).digest()
        digests.append(digest_of[document_content])
    ranked = sorted(range(len(digests)), key=digests.__getitem__)
    sizes = (ends - starts)[ranked]
    ends_in_order = np.cumsum(sizes)
    taken = np.arange(len(order)) + np.repeat(starts[ranked] - (ends_in_order - sizes), sizes)
    content = blake2b(b"".join(digests[index] for index in ranked), digest_size=16).digest()
    return (
        CertificatePoints(
            p0=rows["p0"][taken].astype(np.float64),
            predicted=rows["predicted"][taken].astype(np.int64),
            label=rows["label"][taken].astype(np.int64),
            document=np.repeat(np.arange(len(sizes)), sizes),
        ),
        np.random.default_rng(int.from_bytes(content, "little")),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """Counts for h classes: of each policy, side by side, those of each kind asked for, in the order of `ClassKind`.

    Attributes:
        admitted: (documents, h) int64.
        wrong: (documents, h) int64.
    """

    admitted: IntArray
    wrong: IntArray


def tally(points: CertificatePoints, admitted: BoolArray, kinds: Sequence[ClassKind], class_count: int) -> Tallies:
    """Count the admitted points of each document and class under each policy, and the wrong ones among them.

    Args:
        points: In canonical order.
        admitted: (policies, n) bool.
        kinds: The kinds asked for, in the order of `ClassKind`.
    """
    policy, taken = np.nonzero(admitted)
    classes = {ClassKind.PREDICTED: points.predicted[taken], ClassKind.TRUE: points.label[taken]}
    width = len(admitted) * len(kinds) * class_count
    place = points.document[taken] * width + policy * (len(kinds) * class_count)
    missed = points.predicted[taken] != points.label[taken]

    def count(rows: BoolArray | slice) -> IntArray:
        cells = [place[rows] + number * class_count + classes[kind][rows] for number, kind in enumerate(kinds)]
        counts = np.bincount(np.concatenate(cells), minlength=points.document_count * width)
        return counts.reshape(points.document_count, width)

    return Tallies(count(slice(None)), count(missed))


def policies_together(points: CertificatePoints, kinds: Sequence[ClassKind], class_count: int) -> int:
    """Return for how many policies to count together, so that the counts take about `TOGETHER_BYTES`; at least 1.

    Statistics of many classes side by side take little longer than of one.

    Args:
        points: The points to count.
        kinds: As in `tally`.
    """
    return max(1, TOGETHER_BYTES // (8 * len(points.p0) * len(kinds) * class_count))
