"""Policies: one threshold of p0 for each predicted class; which points they admit, and which policies are proposed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.hypothesis_tests import document_variance, largest_excess
from venn_admit.core.calibrators.certified.points import CertificatePoints, Tallies, policies_together, tally
from venn_admit.core.calibrators.certified.search import TOLERANCE, Limits, best_choice, threshold_options
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

RESERVE_ROUNDS = 2
"""How often the reserve of true classes is renewed, which depends on the policy that it yields."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a proposed policy is to keep on `mc`.

    Attributes:
        margin: The part of alpha by which the asked shares must exceed 1 - alpha at least.
        standard_errors: How many standard errors of their estimate on `vp` they must exceed it by at least.
    """

    margin: Decimal
    standard_errors: float


AIMS = (
    *(Aim(Decimal("0"), errors) for errors in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0)),
    *(Aim(Decimal(part), 0.0) for part in ("0.1", "0.2", "0.3", "0.4", "0.6", "0.8")),
)
"""The aims by default."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The thresholds at which predictions are admitted.

    Attributes:
        thresholds: (C,) the least p0 in [0, 1] at which each predicted class is admitted; None is never.
    """

    thresholds: tuple[float | None, ...]


def admit(p0: FloatArray, predicted: IntArray, policy: Policy) -> BoolArray:
    """Return which points a policy admits.

    Args:
        p0: (n,) float64; NaN is not admitted.
        predicted: (n,) int64 in [0, C), the predicted class.
        policy: The policy of C classes.

    Returns:
        (n,) bool.

    Raises:
        InvalidInputError: The arrays differ in length, or a class is unknown to the policy.

    Examples:
        >>> admit(np.array([0.9, 0.9]), np.array([0, 1]), Policy((0.8, None))).tolist()
        [True, False]
    """
    if len(p0) != len(predicted) or (
        len(predicted) and not 0 <= predicted.min() <= predicted.max() < len(policy.thresholds)
    ):
        raise InvalidInputError(
            f"expected p0 and predictions of the same points in [0, {len(policy.thresholds)}), got {len(p0)} and "
            f"{len(predicted)}; pass what the policy was certified for"
        )
    thresholds = np.array([math.inf if value is None else value for value in policy.thresholds])
    admitted: BoolArray = p0 >= thresholds[predicted]
    return admitted


@dataclass(frozen=True, slots=True)
class ProposedPolicy:
    """A policy that is to be tested.

    Attributes:
        promise: How many standard errors the class that is nearest to fail is expected to pass by.
    """

    aim: Aim
    policy: Policy
    promise: float


def propose(
    points: CertificatePoints,
    *,
    alpha: Decimal,
    kinds: Sequence[ClassKind],
    class_count: int,
    evidence: Evidence,
    aims: Sequence[Aim] = AIMS,
) -> list[ProposedPolicy]:
    """Return the policies to test, the most promising first; they rest on `mc` and on the number of documents of `vp`.

    Args:
        points: The points of `mc`, in canonical order.
        kinds: The kinds of classes asked for, in the order of `ClassKind`.
        evidence: What `vp` can show.
        aims: What the policies are to keep on `mc`; each yields one policy at most, and equal policies count once.
    """
    search = _Search(points, float(alpha), kinds, class_count, evidence)
    found: dict[Policy, Aim] = {}
    for aim in aims:
        policy = search.policy(float(aim.margin * alpha), aim.standard_errors)
        if policy is not None:
            found.setdefault(policy, aim)
    promises = search.promises(list(found))
    proposed = [
        ProposedPolicy(aim, policy, promise) for (policy, aim), promise in zip(found.items(), promises, strict=True)
    ]
    # The sort keeps the order of the aims among equals.
    return sorted(proposed, key=lambda one: -one.promise)


class _Search:
    """The search of policies on one `mc`."""

    def __init__(
        self, points: CertificatePoints, alpha: float, kinds: Sequence[ClassKind], class_count: int, evidence: Evidence
    ) -> None:
        self._points, self._alpha, self._kinds = points, alpha, kinds
        self._class_count = class_count
        self._options = threshold_options(points, class_count, alpha)
        self._errors = self._options.wrong.sum(axis=2)  # (C, k)
        self._evidence = evidence
        self._known: dict[tuple[float, bytes, bytes | None], Policy | None] = {}

    def policy(self, margin: float, standard_errors: float) -> Policy | None:
        """The policy that admits most, of those whose shares exceed 1 - alpha by both margins, if there is one."""
        options, share = self._options, self._alpha - margin
        errors, allowed = self._errors, options.exists
        if ClassKind.PREDICTED in self._kinds:
            bound = (1 - self._alpha) * options.largest
            reserve = self._evidence.reserve(standard_errors, options.deviation, bound) * self._points.document_count
            allowed &= errors - share * options.admitted <= TOLERANCE
            allowed &= errors - self._alpha * options.admitted <= TOLERANCE - reserve
        if ClassKind.TRUE not in self._kinds:
            return self._chosen(Limits(share, allowed, None))
        policy = self._chosen(Limits(share, allowed, np.zeros(self._class_count)))
        for _ in range(RESERVE_ROUNDS if standard_errors else 0):
            if policy is None:
                break
            counts = self._counts([policy])
            reserve = self._evidence.reserve(
                standard_errors, self._deviation(counts), largest_excess(counts.admitted, self._alpha)
            )[-self._class_count :]
            policy = self._chosen(Limits(share, allowed, reserve * self._points.document_count))
        return policy

    def promises(self, policies: Sequence[Policy]) -> list[float]:
        """How many standard errors the class nearest to fail is expected to pass by on `vp`, for each policy."""
        found = []
        step = policies_together(self._points, self._kinds, self._class_count)
        for start in range(0, len(policies), step):
            batch = policies[start : start + step]
            counts = self._counts(batch)
            gain = (self._alpha * counts.admitted - counts.wrong).mean(axis=0)
            bound = largest_excess(counts.admitted, self._alpha)
            expected = np.split(self._evidence.expected(gain, self._deviation(counts), bound), len(batch))
            found += [
                float(of_policy[~vacuous(policy, self._kinds)].min())
                for policy, of_policy in zip(batch, expected, strict=True)
            ]
        return found

    def _chosen(self, limits: Limits) -> Policy | None:
        """The best choice under these limits, which several aims may come to."""
        reserve = None if limits.reserve is None else limits.reserve.tobytes()
        key = (limits.error_share, limits.allowed.tobytes(), reserve)
        if key not in self._known:
            self._known[key] = self._best(limits)
        return self._known[key]

    def _best(self, limits: Limits) -> Policy | None:
        choice = best_choice(self._options, limits)
        if choice is None:
            return None
        values = self._options.threshold[np.arange(self._class_count), choice].tolist()
        return Policy(tuple(None if math.isinf(value) else value for value in values))

    def _counts(self, policies: Sequence[Policy]) -> Tallies:
        admitted = np.stack([admit(self._points.p0, self._points.predicted, policy) for policy in policies])
        return tally(self._points, admitted, self._kinds, self._class_count)

    def _deviation(self, counts: Tallies) -> FloatArray:
        return np.sqrt(document_variance(counts.admitted, counts.wrong, self._alpha))


def vacuous(policy: Policy, kinds: Sequence[ClassKind]) -> BoolArray:
    """Return for which of the classes asked for the promise says nothing: predicted classes that are never admitted.

    Args:
        policy: The policy of C classes.
        kinds: The kinds asked for, in the order of `ClassKind`.

    Returns:
        (h,) bool.
    """
    never = np.array([value is None for value in policy.thresholds])
    return np.concatenate([never if kind is ClassKind.PREDICTED else np.zeros_like(never) for kind in kinds])
