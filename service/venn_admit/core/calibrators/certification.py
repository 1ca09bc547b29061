"""What a certificate is asked for."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from venn_admit.errors import InvalidInputError

DEFAULT_CONFIDENCE = Decimal("0.95")


class ClassKind(StrEnum):
    """The classes among whose admitted points a share is promised."""

    PREDICTED = "predicted"
    TRUE = "true"


class DocumentTest(StrEnum):
    """How documents of several points are tested."""

    FINITE_SAMPLE = "finite-sample"
    ASYMPTOTIC = "asymptotic"


@dataclass(frozen=True, slots=True)
class Certification:
    """What a certificate is asked for, besides the error level.

    Attributes:
        kinds: The kinds of classes for which the promise shall hold, each once, in the order of `ClassKind`.
        confidence: 1 - eps, over the calibration data, an exact decimal in (0, 1).
        test: How documents of several points are tested.
    """

    kinds: tuple[ClassKind, ...]
    confidence: Decimal = DEFAULT_CONFIDENCE
    test: DocumentTest = DocumentTest.FINITE_SAMPLE


def make_certification(
    kinds: Collection[ClassKind | str],
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
) -> Certification:
    """Return what is asked for, checked.

    Args:
        kinds: `predicted`, `true` or both, in any order.
        confidence: As in `Certification`.
        test: `finite-sample` or `asymptotic`.

    Raises:
        InvalidInputError: There is no such kind or test, no kind is given, or the confidence is out of range.

    Examples:
        >>> [str(kind) for kind in make_certification(["true", "predicted"]).kinds]
        ['predicted', 'true']
    """
    unknown = [str(kind) for kind in kinds if kind not in tuple(ClassKind)]
    if unknown or not kinds:
        raise InvalidInputError(
            f"a certificate is for {' or '.join(ClassKind)} classes, or both; got {', '.join(unknown) or 'neither'}"
        )
    if not (confidence.is_finite() and 0 < confidence < 1):
        raise InvalidInputError(f"confidence must lie strictly between 0 and 1, got {confidence}; 0.95 is usual")
    if test not in tuple(DocumentTest):
        raise InvalidInputError(f"documents are tested by {' or '.join(DocumentTest)}; got {test}")
    return Certification(tuple(kind for kind in ClassKind if kind in kinds), confidence, DocumentTest(test))
