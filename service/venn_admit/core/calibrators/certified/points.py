"""The labelled points that a certificate rests on, in an order of their own."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class CertificatePoints:
    """Labelled points as a certificate sees them.

    Attributes:
        score: (n,) float64 in [0, 1], which must not depend on the labels of these points if they are evidence.
        predicted: (n,) int64 in [0, C), the predicted class.
        label: (n,) int64 in [0, C), the true class.
        document: (n,) int64, the same number for the points of one document, and for no others.
    """

    score: FloatArray
    predicted: IntArray
    label: IntArray
    document: IntArray

    @property
    def document_count(self) -> int:
        """The number of documents of points in canonical order."""
        return int(self.document[-1]) + 1


def check_points(name: str, points: CertificatePoints, class_count: int) -> None:
    """Check some points.

    Args:
        name: What they are, for the message.
        points: The points.

    Raises:
        InvalidInputError: Arrays differ in length, a value is out of range, or there are fewer than two documents.
    """
    check_lengths(score=points.score, predicted=points.predicted, label=points.label, document=points.document)
    check_classes(class_count, {"predicted": points.predicted, "label": points.label})
    outside = ~((points.score >= 0) & (points.score <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInputError(f"the score of {name} must lie in [0, 1], got {points.score[row]} in row {row}")
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
    order = np.lexsort((points.label, points.predicted, points.score, points.document))
    rows = np.empty(len(order), dtype=[("score", "<f8"), ("predicted", "<i8"), ("label", "<i8")])
    # Adding 0 makes the negative zero positive, which compares equal to it.
    rows["score"], rows["predicted"] = points.score[order] + 0.0, points.predicted[order]
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
            score=rows["score"][taken].astype(np.float64),
            predicted=rows["predicted"][taken].astype(np.int64),
            label=rows["label"][taken].astype(np.int64),
            document=np.repeat(np.arange(len(sizes)), sizes),
        ),
        np.random.default_rng(int.from_bytes(content, "little")),
    )
