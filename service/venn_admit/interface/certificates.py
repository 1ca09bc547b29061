"""What became of a certificate, in terms of this package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from venn_admit.core.calibrators.certified.certificate import Certificate as FoundCertificate
from venn_admit.core.calibrators.certified.certificate import ClassResult
from venn_admit.report.calibration.cells.certified import certificate_payload


@dataclass(frozen=True, slots=True)
class CertifiedClass:
    """What a test on split vp found for one class under one policy.

    Attributes:
        kind: `predicted` or `true`.
        name: The class.
        admitted: The share of all points of vp that are of this class and admitted.
        right: The share of these that is right; None if there are none.
        p_value: The smaller, the better vouched for; None for a predicted class that is never admitted, of which
            nothing is promised.
        documents_needed: If the class falls short, the documents of vp with which it is likely to pass at the rates
            seen; None if it passes, or if no number would do.
        labels_needed: The labels that these documents hold.
    """

    kind: str
    name: str
    admitted: float
    right: float | None
    p_value: float | None
    documents_needed: int | None
    labels_needed: int | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """Whether a policy could be certified: thresholds under which enough is right in every class asked for.

    Attributes:
        is_certified: Whether a policy passed. If none did, everything is rejected.
        kinds: The classes for which it holds: `predicted`, `true` or both.
        confidence: Over the calibration data, with which it holds.
        test: How documents of several points were tested: `finite-sample` or `asymptotic`.
        thresholds: For each predicted class the least p0 at which it is admitted, None for never; None if nothing is
            certified.
        admitted: The share of split vp that the policy admits; None if nothing is certified.
        classes: The results of the certified policy, or of the one that came closest.
        documents_needed: The documents of vp with which a policy is likely to pass at the rates seen; None if one did,
            or if no number would do.
        labels_needed: The labels that these documents hold.
        document: Everything, with each policy that was proposed and tested, as JSON holds it.
    """

    is_certified: bool
    kinds: tuple[str, ...]
    confidence: Decimal
    test: str
    thresholds: Mapping[str, float | None] | None
    admitted: float | None
    classes: tuple[CertifiedClass, ...]
    documents_needed: int | None
    labels_needed: int | None
    document: Mapping[str, Any] = field(repr=False)


def certificate_of(found: FoundCertificate, classes: Sequence[str]) -> Certificate:
    """Return a certificate in terms of class names."""
    chosen = None if found.chosen is None else found.proposals[found.chosen]
    shown = found.closest
    return Certificate(
        is_certified=chosen is not None,
        kinds=tuple(map(str, found.kinds)),
        confidence=found.confidence,
        test=str(found.test),
        thresholds=None if chosen is None else dict(zip(classes, chosen.policy.thresholds, strict=True)),
        admitted=None if chosen is None else chosen.vp_share,
        classes=() if shown is None else tuple(_class(found, result, classes) for result in shown.classes),
        documents_needed=found.documents_needed,
        labels_needed=found.labels_needed,
        document=certificate_payload(found, classes),
    )


def _class(found: FoundCertificate, result: ClassResult, classes: Sequence[str]) -> CertifiedClass:
    falls_short = result.p_value is not None and result.p_value > found.level
    needed = result.documents_needed if falls_short else None
    return CertifiedClass(
        kind=str(result.kind),
        name=classes[result.number],
        admitted=result.vp_admitted / found.vp_points,
        right=result.vp_share,
        p_value=result.p_value,
        documents_needed=needed,
        labels_needed=None if needed is None else found.points_in(needed),
    )
