"""The settings of Venn-Abers: what a certificate may be asked for, and what may not stand beside it."""

from decimal import Decimal

import pytest

from venn_admit.core.calibrators.certification import Certification, ClassKind, DocumentTest
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.errors import InvalidInputError


def test_no_certificate_is_asked_for_by_default() -> None:
    assert make_venn_abers_settings(2, 25).certification is None


def test_a_certificate_has_defaults_and_an_order() -> None:
    settings = make_venn_abers_settings(2, 25, certify=["true", "predicted", "true"])
    assert settings.certification == Certification(tuple(ClassKind), Decimal("0.95"), DocumentTest.FINITE_SAMPLE)
    assert settings.thresholds == (Decimal("0.9"),) * 2
    other = make_venn_abers_settings(2, 25, certify=["true"], confidence=Decimal("0.9"), test="asymptotic")
    assert other.certification == Certification((ClassKind.TRUE,), Decimal("0.9"), DocumentTest.ASYMPTOTIC)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"certify": []}, "COLUMN; got neither"),
        ({"certify": ["predicted", "every"]}, "COLUMN; got every"),
        ({"certify": ["true"], "confidence": Decimal(0)}, "confidence must lie strictly between 0 and 1, got 0"),
        ({"certify": ["true"], "confidence": Decimal("1.0")}, "confidence must lie strictly between 0 and 1, got 1.0"),
        ({"certify": ["true"], "confidence": Decimal("NaN")}, "confidence must lie strictly between 0 and 1, got NaN"),
        ({"certify": ["true"], "test": "t-test"}, "finite-sample or asymptotic; got t-test"),
        ({"confidence": Decimal("0.9")}, "confidence: this is a setting of certificates, got 0.9"),
        ({"test": "asymptotic"}, "test: this is a setting of certificates, got asymptotic"),
        ({"certify": ["true"], "thresholds": (Decimal("0.9"),) * 2}, "a certificate sets the thresholds itself"),
    ],
)
def test_what_cannot_be_asked_for(asked: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make_venn_abers_settings(2, 25, **asked)  # type: ignore[arg-type]
