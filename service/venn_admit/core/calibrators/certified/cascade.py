"""Certificates of cascades: several classifiers are asked one after the other, and one promise covers what they serve.

A point is served by the first stage that admits it, as the class which that stage predicts. The policies of a path are
fixed by the proposing points alone and tested from strict to liberal, each for all classes at once, at the whole level:
nothing is shared among stages or classes. Source: docs/explanation/certificate.md, Cascades.
"""

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from functools import partial

from venn_admit.core.calibrators.cascade_settings import DEFAULT_KINDS, DEFAULT_TEST, make_cascade_settings
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.cascade_path import CascadePlan, plan_path
from venn_admit.core.calibrators.certified.cascade_points import CascadePoints, canonical_order, check_cascade_points
from venn_admit.core.calibrators.certified.certificate import Certificate, Chain, ClassResult
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.certified.testing import ChainSetting, capped_documents, run_chains


def certify_cascade(
    proposing: CascadePoints,
    evidence: CascadePoints,
    *,
    class_count: int,
    alpha: Decimal,
    kinds: Collection[str] = DEFAULT_KINDS,
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DEFAULT_TEST,
) -> Certificate:
    """Certify a cascade: with the given confidence, at least 1 - alpha of what it serves of each class are right.

    With true classes among the kinds: of what it serves of the points of each true class as well. A predicted class
    that has no chance to pass, as foretold by the proposing points, is never served. Neither the order of the points
    nor the numbers of their documents matter.

    Args:
        evidence: Labelled points, exchangeable with those to be served, on which no score was fitted.
        class_count: C >= 2, the same classes at all stages.
        kinds: `predicted`, `true`, or both.

    Returns:
        The certificate. The thresholds of its policy are those of the C classes at the first stage, then at the next;
        `stage_policies` takes them apart.

    Raises:
        InvalidInputError: An argument or an array is out of range, there are fewer than two documents, or a promise is
            asked for groups.
    """
    asked = make_cascade_settings(alpha, kinds, confidence, test).asked
    for name, points in (("the proposing points", proposing), ("the evidence", evidence)):
        check_cascade_points(name, points, class_count)
    proposing, _ = canonical_order(proposing)
    evidence, generator = canonical_order(evidence)
    stacked = evidence.stacked()
    shown = Evidence(stacked.document_count, len(evidence.label), asked.test is DocumentTest.FINITE_SAMPLE)
    losses, level = losses_of(None, class_count), float(1 - confidence)
    plan = plan_path(proposing, shown, alpha=float(alpha), kinds=asked.kinds, level=level, class_count=class_count)
    order = plan.order
    seed = int(generator.integers(2**63))
    setting = ChainSetting(proposing.stacked(), stacked, losses, losses, float(alpha), asked.test, shown, seed)
    (chain,) = run_chains([order], setting, level)
    passed = chain.last_passed
    tested = {number for kind, number in order.columns if kind is ClassKind.PREDICTED}
    untested = set(range(class_count)).difference(tested) if ClassKind.PREDICTED in asked.kinds else set()
    never = tuple(ClassResult(ClassKind.PREDICTED, number, None, 0, 0, None, None) for number in sorted(untested))
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=asked.kinds,
        test=asked.test,
        documents=shown.documents,
        points=shown.points,
        proposing=len(proposing.label),
        capped=0
        if passed is None
        else capped_documents(setting, asked.kinds, partial(order.served_by, chain.steps.index(passed))),
        policy=None if passed is None else Policy(passed.thresholds),
        admitted=0 if passed is None else passed.admitted,
        classes=() if passed is None else passed.classes,
        lacking=never if passed is not None else (*_lacking(chain, plan, shown, level), *never),
        chains=(chain,),
    )


def _lacking(chain: Chain, plan: CascadePlan, shown: Evidence, level: float) -> tuple[ClassResult, ...]:
    """The results of the policy nearest to a promise; if it is near to none, with the documents that are foretold."""
    closest = chain.closest
    if closest.documents_needed is not None:
        return closest.classes
    needed = plan.foretold.fewest(shown, level)
    return tuple(replace(of, documents_needed=number) for of, number in zip(closest.classes, needed, strict=True))
