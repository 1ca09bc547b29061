"""The strongest certificate: for predicted and true classes if that can be had, otherwise for predicted classes alone.

Source: docs/PROCEDURE.md, section 9; docs/explanation/certificate.md.
"""

from dataclasses import replace
from decimal import Decimal

from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints

MOST_GIVEN_UP = 2
"""The policy for both kinds is in use unless the one for predicted classes admits more than this many times as much."""


def certify_strongest(
    proposing: CertificatePoints,
    evidence: CertificatePoints,
    *,
    class_count: int,
    alpha: Decimal,
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
) -> Certificate:
    """Certify policies for both kinds of classes and for predicted classes alone, and choose one of them.

    Each attempt has half of 1 - confidence, so that all policies that pass in either hold together with the confidence,
    and the choice between them may look at what they admit. Errors are those of `certify`.

    Args:
        proposing: As in `certify`.
        evidence: As in `certify`.
        class_count: C >= 2.
        alpha: In (0, 1).
        confidence: 1 - eps, in (0, 1).
        test: How documents of several points are tested.

    Returns:
        The certificate of the attempt that was chosen, with the chains of both. Without a promise for true classes,
        `lacking` has each of them too, by the policy for both kinds that came closest.
    """
    both, predicted = (
        certify(
            proposing,
            evidence,
            class_count=class_count,
            alpha=alpha,
            kinds=kinds,
            confidence=(1 + confidence) / 2,
            test=test,
        )
        for kinds in (tuple(ClassKind), (ClassKind.PREDICTED,))
    )
    takes_both = both.policy is not None and MOST_GIVEN_UP * both.admitted >= predicted.admitted
    chosen = both if takes_both else predicted
    of_true_classes = (
        [] if takes_both else [one for one in (*both.classes, *both.lacking) if one.kind is ClassKind.TRUE]
    )
    return replace(
        chosen,
        confidence=confidence,
        lacking=(*chosen.lacking, *of_true_classes),
        chains=(*both.chains, *predicted.chains),
    )
