"""What is asked of a certificate of a cascade."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from venn_admit.core.calibrators.certification import (
    DEFAULT_CONFIDENCE,
    Certification,
    ClassKind,
    DocumentTest,
    make_certification,
)
from venn_admit.core.calibrators.settings import DEFAULT_ALPHA, check_alpha
from venn_admit.errors import InvalidInputError

DEFAULT_KINDS = (ClassKind.PREDICTED,)
DEFAULT_TEST = DocumentTest.FINITE_SAMPLE


@dataclass(frozen=True, slots=True)
class CascadeCertification:
    """What is asked of a certificate of a cascade, for predicted or true classes; alpha: in (0, 1)."""

    alpha: Decimal
    asked: Certification


def make_cascade_settings(
    alpha: Decimal = DEFAULT_ALPHA,
    certify: Collection[str] = DEFAULT_KINDS,
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DEFAULT_TEST,
) -> CascadeCertification:
    """Return what is asked for, checked.

    Args:
        alpha: In (0, 1).
        certify: `predicted`, `true`, or both.
        test: As in `make_certification`.

    Raises:
        InvalidInputError: An argument is out of range, or a promise is asked for groups.
    """
    check_alpha(alpha)
    others = [str(kind) for kind in certify if str(kind) not in tuple(ClassKind)]
    if others:
        raise InvalidInputError(
            f"a cascade promises {' and '.join(ClassKind)} classes, got {', '.join(others)}: name these alone; for "
            "groups, calibrate its last classifier and ask that one alone"
        )
    return CascadeCertification(alpha, make_certification(certify, confidence, test))
