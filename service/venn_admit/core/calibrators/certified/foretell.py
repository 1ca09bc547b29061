"""The policies that a certification is expected to find, foretold before any label of the evidence is looked at.

Source: docs/PROCEDURE.md, section 10; docs/explanation/choosing-a-method.md.
"""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, Kind, make_certification, part_kind
from venn_admit.core.calibrators.certified.chains import Order, finite_thresholds, joined_policy, plan_chains
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, check_points
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.certified.strongest import each_confidence, takes_both
from venn_admit.core.types import BoolArray

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

    Args:
        points: The number of points in the documents.

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
    """Return what `certify_strongest` is expected to find, by its rule.

    Args:
        points: The number of points in the documents.
    """
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
