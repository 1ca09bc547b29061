"""The strongest certificate: for predicted and true classes if that can be had, otherwise for predicted classes alone.

What certifications are expected to find is foretold before any label of the evidence is looked at.

Source: docs/PROCEDURE.md, sections 9 and 10; docs/explanation/certificate.md and choosing-a-method.md.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import (
    DEFAULT_CONFIDENCE,
    ClassKind,
    DocumentTest,
    Kind,
    make_certification,
    part_kind,
)
from venn_admit.core.calibrators.certified.certificate import Certificate, closest_together, needed_together
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.chains import Order, finite_thresholds, joined_policy, plan_chains
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, check_points
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.loss import LossMatrix
from venn_admit.core.types import BoolArray

LEAST_PART = 0.5
"""The part of what is admitted otherwise that a promise for both kinds, or a new calibration, may not fall below.

One number, so that no calibration is withheld because its certificate covers both kinds again.
"""


def certify_strongest(
    proposing: CertificatePoints,
    evidence: CertificatePoints,
    *,
    class_count: int,
    alpha: Decimal,
    by_softmax: int,
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
    loss: LossMatrix | None = None,
) -> Certificate:
    """Certify policies for both kinds of classes and for predicted classes alone, and choose one of them.

    Each attempt has half of 1 - confidence, so that all policies that pass in either hold together with the confidence,
    and the choice between them may look at anything. The policy for both kinds is in use if it admits at least half of
    what the other one admits, and no less than the softmax would, unless both admit less than that. Errors are those of
    `certify`.

    Args:
        by_softmax: How many points of the evidence the network's softmax at 1 - alpha admits, which promises nothing.

    Returns:
        The certificate of the attempt that was chosen, with the chains of both. Without a promise for true classes,
        `lacking` has each of them too, by the policy for both kinds that came closest, with the documents that it would
        take for all classes to pass.
    """
    both, predicted = (
        certify(
            proposing,
            evidence,
            class_count=class_count,
            alpha=alpha,
            kinds=kinds,
            confidence=each_confidence(confidence),
            test=test,
            loss=loss,
        )
        for kinds in (tuple(ClassKind), (ClassKind.PREDICTED,))
    )
    chains = (*both.chains, *predicted.chains)
    if both.policy is not None and takes_both(both.admitted, predicted.admitted, by_softmax):
        return replace(both, confidence=confidence, chains=chains)
    # A class that would pass alone must wait for all others of the policy. One that passed took no more than there are.
    needed = both.documents if both.policy else needed_together(closest_together(both.chains, both.lacking))
    of_true_classes = [
        replace(one, documents_needed=needed) for one in (*both.classes, *both.lacking) if one.kind is ClassKind.TRUE
    ]
    return replace(predicted, confidence=confidence, lacking=(*predicted.lacking, *of_true_classes), chains=chains)


def gives_way(certified: int, on_average: int, by_softmax: int) -> bool:
    """Return whether the average promise takes the place of a certified policy, by the points that each admits.

    It does if the policy admits less of the evidence than the softmax, which promises nothing, and than the average
    promise.

    Args:
        certified: The points of the evidence that the certified policy admits.
        on_average: Those that the policy of the average promise admits.
        by_softmax: Those that the softmax at 1 - alpha admits.

    >>> gives_way(41, 286, 199), gives_way(200, 286, 199), gives_way(41, 30, 199)
    (True, False, False)
    """
    return certified < min(on_average, by_softmax)


def each_confidence(confidence: Decimal) -> Decimal:
    """Return the confidence of each of two attempts that hold together with a confidence."""
    return (1 + confidence) / 2


def takes_both(both: int, predicted: int, by_softmax: int) -> bool:
    """Return whether the policy for both kinds is in use, by the points that each policy and the softmax admit.

    >>> takes_both(60, 100, 70), takes_both(60, 100, 110), takes_both(40, 100, 10)
    (False, True, False)
    """
    return both >= max(LEAST_PART * predicted, by_softmax if predicted >= by_softmax else 0)


LIKELY = 0.5
"""A policy is expected to pass if its chance to is at least this."""


@dataclass(frozen=True, slots=True, eq=False)
class Foretold:
    """What a certification is expected to find.

    Attributes:
        kinds: The kinds of classes that its policy covers.
        policy: The policy; None if none is likely to pass.
        admitted: (n,) bool, which of the proposing points it admits.
    """

    kinds: tuple[Kind, ...]
    policy: Policy | None
    admitted: BoolArray


def foretell(
    proposing: CertificatePoints,
    *,
    documents: int,
    points: int,
    class_count: int,
    alpha: Decimal,
    kinds: Collection[str],
    confidence: Decimal = DEFAULT_CONFIDENCE,
) -> Foretold:
    """Return what `certify` is expected to find, by the finite-sample test, from the proposing points alone.

    Each chain goes as far as its policies are more likely to pass than not. What a chain that passes to its end leaves
    to the others is not foretold.

    Raises:
        InvalidInputError: An argument or an array is out of range, or there are fewer than two documents.
    """
    asked = make_certification(kinds, confidence)
    check_points("the proposing points", proposing, class_count)
    ordered, _ = canonical(proposing)
    plan = plan_chains(
        ordered,
        Evidence(documents, points, bounded=True),
        losses_of(None, class_count),
        alpha=float(alpha),
        kinds=asked.kinds,
        level=float(1 - confidence),
    )
    passing = [(order, last) for order in plan.orders if (last := _last_likely(order)) >= 0]
    likely = [(order, finite_thresholds(order.scores[last])) for order, last in passing]
    together = [likely] if part_kind(asked.kinds) is not None else [[one] for one in likely]
    policies = [joined_policy(steps, ordered, class_count) for steps in together if steps]
    none = Foretold(asked.kinds, None, np.zeros(len(proposing.score), dtype=np.bool_))
    found = [
        Foretold(asked.kinds, policy, admit(proposing.score, proposing.predicted, policy, proposing.attributes))
        for policy in policies
    ]
    return max(found, key=lambda one: int(one.admitted.sum()), default=none)


def foretell_strongest(
    proposing: CertificatePoints,
    *,
    documents: int,
    points: int,
    class_count: int,
    alpha: Decimal,
    by_softmax: int,
    confidence: Decimal = DEFAULT_CONFIDENCE,
) -> Foretold:
    """Return what `certify_strongest` is expected to find, by its rule."""
    both, predicted = (
        foretell(
            proposing,
            documents=documents,
            points=points,
            class_count=class_count,
            alpha=alpha,
            kinds=kinds,
            confidence=each_confidence(confidence),
        )
        for kinds in (tuple(ClassKind), (ClassKind.PREDICTED,))
    )
    of_both, of_predicted = (int(np.count_nonzero(one.admitted)) for one in (both, predicted))
    return both if both.policy is not None and takes_both(of_both, of_predicted, by_softmax) else predicted


def _last_likely(order: Order) -> int:
    """The place of the last policy before the first that is not likely to pass; -1 if the first is not."""
    unlikely = np.flatnonzero(order.chances < LIKELY)
    return int(unlikely[0]) - 1 if len(unlikely) else len(order.chances) - 1
