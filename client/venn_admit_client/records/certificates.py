"""Certificates: what passed, for which classes, and how many looked at the same labels."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from typing import Any

from venn_admit_client.members import member, record


@record
class CertifiedClass:
    """What a test on splits mc and vp found for one class or group under one policy.

    Attributes:
        kind: `predicted` or `true`, or `group:COLUMN` or `predicted*group:COLUMN`.
        name: The class; None for a group of all predicted classes.
        group: The value of the attribute; None if the kind is not of groups.
        is_promised: Whether something is promised for the class. If not, the rest is the policy nearest to one.
        admitted: The share of all points of mc and vp that are of this class and admitted.
        right: The share of these that is right; None if there are none.
        p_value: The smaller, the stronger the evidence; None if nothing was tested.
        documents_needed: If nothing is promised, the documents of mc and vp with which the class is likely to pass at
            the rates seen; None if it passed, or if no number would do.
        labels_needed: The labels that these documents hold.
    """

    kind: str
    name: str | None
    group: str | None
    is_promised: bool
    admitted: float
    right: float | None
    p_value: float | None
    documents_needed: int | None
    labels_needed: int | None


@record
class SetAside:
    """A policy that is certified and not in use: it admits less than the softmax and than the average promise.

    Attributes:
        admitted: The share of splits mc and vp that it admits.
        by_softmax: The share that the network's softmax at 1 - alpha admits.
        classes: The results of the classes that it would promise something for.
    """

    admitted: float
    by_softmax: float
    classes: tuple[CertifiedClass, ...]


@record
class Certificate:
    """Whether a policy could be certified: thresholds under which enough is right in every class asked for.

    Attributes:
        is_certified: Whether a certified policy decides. If none does, everything is rejected, or the average promise
            takes its place.
        kinds: What it holds for: `predicted`, `true`, `group:COLUMN`, `predicted*group:COLUMN`, or several of these.
        confidence: The probability, over draws of the calibration data, with which it holds.
        test: How documents of several points were tested: `finite-sample` or `asymptotic`.
        thresholds: For each predicted class the least score at which it is admitted, None for never; None if nothing is
            certified. Those of groups, which must be reached too, are in the document.
        admitted: The share of splits mc and vp that the policy admits; None if nothing is certified.
        classes: The results of the classes that something is promised for, then, for the others, the nearest to a
            promise.
        documents_needed: The documents of mc and vp with which a policy is likely to pass at the rates seen; None if
            one did, or if no number would do.
        labels_needed: The labels that these documents hold.
        set_aside: The certified policy that the average promise takes the place of; None if there is none.
        document: Everything, with each policy that was tested, as JSON holds it.
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
    set_aside: SetAside | None
    document: Mapping[str, Any] = field(repr=False)


@record
class Policy(Certificate):
    """The certificate of a stored calibration.

    Attributes:
        classifier: The name of the classifier.
        calibration: The number of the calibration that was asked for the certificate.
    """

    classifier: str
    calibration: int

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as `venn-admit export --what policy` writes it."""
        return dict(self.document)


@record
class CertificateLook:
    """A certificate that looked at the held-out labels of a classifier.

    Attributes:
        calibration: The first calibration with it, which may be gone by now.
        setting: The number of the setting.
        classifier: The generation of the classifier.
        created_at: When it looked.
        confidence: The confidence that was asked for.
        looks: How many certificates looked at these labels, with this one and those before it.
        joint_confidence: The confidence that all of these hold together, whatever was chosen among them.
    """

    calibration: int = member(7)
    setting: int = member(1)
    classifier: str = member("reviews")
    created_at: datetime = member("2026-07-01T12:00:00+00:00")
    confidence: Decimal = member("0.95")
    looks: int = member(2)
    joint_confidence: Decimal = member("0.90")


def looks_text(looks: int, joint_confidence: Decimal) -> str:
    """Return what is said of the certificates that looked at the same labels.

    >>> looks_text(3, Decimal("0.85"))
    '3 certificates looked at the labels of mc and vp; all hold together with confidence 0.85.'
    """
    they = "1 certificate" if looks == 1 else f"{looks:,} certificates"
    if not joint_confidence:
        return f"{they} looked at the labels of mc and vp: too many for any confidence that all hold together."
    what = "it holds" if looks == 1 else "all hold together"
    return f"{they} looked at the labels of mc and vp; {what} with confidence {joint_confidence}."


def count_text(count: float) -> str:
    """Return an estimated number with two digits.

    >>> [count_text(count) for count in (7, 1234)]
    ['7', '1,200']
    """
    return f"{int(float(f'{count:.2g}')):,}"


def labels_needed_text(needed: int | None, known: int = 0) -> str:
    """Return how many labels would do.

    Args:
        known: How many there are.

    >>> labels_needed_text(1234), labels_needed_text(None), labels_needed_text(1234, known=5376)
    ('about 1,200 labels', 'no number of labels would do', 'not for lack of labels')
    """
    if needed is not None and needed <= known:
        return "not for lack of labels"
    return "no number of labels would do" if needed is None else f"about {count_text(needed)} labels"
