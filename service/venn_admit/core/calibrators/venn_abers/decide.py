"""Decisions of Venn-Abers by the pointwise promise, or by a policy (docs/PROCEDURE.md, sections 6 and 9)."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certified.policies import Attributes, Bounded, Policy, admit, are_covered
from venn_admit.core.calibrators.venn_abers.cells import Bounds
from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.reasons import ADMITTED, Reason
from venn_admit.core.types import BoolArray, FloatArray, IntArray, Selection


def reaches_threshold(lower: FloatArray, predicted: IntArray, thresholds: Sequence[Decimal | None]) -> BoolArray:
    """Return whether p0 reaches the threshold of the predicted class, p0 >= t_yhat: (m,) bool.

    Both are numbers rounded once to float64, which keeps equal numbers equal.

    Args:
        lower: (m,) float64 in [0, 1], p0.
        thresholds: (C,), t_c; None, which nothing reaches, for never.

    Examples:
        >>> reaches_threshold(np.array([0.9, 0.9]), np.array([0, 1]), (Decimal("0.9"), Decimal("0.91"))).tolist()
        [True, False]
    """
    check_lengths(lower=lower, predicted=predicted)
    check_classes(len(thresholds), {"predicted": predicted})
    least = np.array([np.inf if threshold is None else float(threshold) for threshold in thresholds])
    return lower >= least[predicted]


def select(
    bounds: Bounds, predicted: IntArray, thresholds: tuple[Decimal, ...], *, full_match: BoolArray | None = None
) -> Selection:
    """Admit the predictions whose p0 reaches the threshold of their class.

    Returns:
        The verdicts; the reason to reject is `Reason.PROBABILITY_BELOW_THRESHOLD`, or otherwise
        `Reason.MATCH_COUNT_BELOW_K`.
    """
    reached = reaches_threshold(bounds.lower, predicted, thresholds)
    return _selection(reached, Reason.PROBABILITY_BELOW_THRESHOLD, predicted, full_match)


def select_by_policy(
    bounds: Bounds,
    score: FloatArray,
    predicted: IntArray,
    policy: Policy | None,
    *,
    attributes: Attributes | None = None,
    full_match: BoolArray | None,
) -> Selection:
    """Admit the predictions that a policy admits, certified or on average; without one, none.

    Args:
        score: (m,) float64, their scores.
        policy: The policy of C classes; None if a certificate was asked for, and none passed.
        attributes: The groups of the points, if the policy is for groups.

    Returns:
        The verdicts. Without a policy, the reason is `Reason.POLICY_NOT_CERTIFIED`; for a class that it never admits
        `Reason.CERTIFICATE_WITHDRAWN` or `Reason.CLASS_NOT_CERTIFIED`, if the policy says which; and for a group that
        it never admits `Reason.GROUP_NOT_CERTIFIED`. Otherwise the reasons are those of `select`, or
        `Reason.SCORE_BELOW_THRESHOLD` if the policy bounds scores.
    """
    if policy is None:
        check_lengths(lower=bounds.lower, predicted=predicted)
        none = np.zeros(len(predicted), dtype=np.bool_)
        return _selection(none, Reason.POLICY_NOT_CERTIFIED, predicted, full_match)
    by_score, groups = policy.bounded is Bounded.SCORE, attributes or {}
    found = _selection(
        admit(score if by_score else bounds.lower, predicted, policy, groups),
        Reason.SCORE_BELOW_THRESHOLD if by_score else Reason.PROBABILITY_BELOW_THRESHOLD,
        predicted,
        full_match,
    )
    reason = np.where(are_covered(predicted, policy, groups), found.reason, Reason.GROUP_NOT_CERTIFIED.code)
    for why, classes in policy.never.items():
        reason = np.where(np.isin(predicted, classes), why.code, reason)
    return Selection(found.decision, reason)


def _selection(reached: BoolArray, otherwise: Reason, predicted: IntArray, full_match: BoolArray | None) -> Selection:
    """The verdicts; otherwise: the reason to reject what is not reached, which comes before that of q < K."""
    matches = np.ones_like(reached) if full_match is None else full_match
    kept = np.where(matches, ADMITTED, Reason.MATCH_COUNT_BELOW_K.code)
    return Selection(
        decision=np.where(reached & matches, predicted, -1), reason=np.where(reached, kept, otherwise.code)
    )
