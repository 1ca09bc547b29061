"""Certification: chains of policies, fixed by the proposing points, are tested on all other calibration points.

Sources: docs/PROCEDURE.md, section 9; docs/explanation/certificate.md.
"""

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np

from venn_admit.core.calibrators.certification import (
    DEFAULT_CONFIDENCE,
    DocumentTest,
    Kind,
    attributes_of,
    make_certification,
    part_kind,
)
from venn_admit.core.calibrators.certified.certificate import Certificate, Chain, ClassResult
from venn_admit.core.calibrators.certified.chains import Order, joined_policy, plan_chains
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.losses import Losses, losses_of
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, check_points, named_class
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.certified.shares.declared import (
    SHARES_PART,
    costs_of_documents,
    costs_of_points,
    document_ratios,
    point_ratios,
)
from venn_admit.core.calibrators.certified.shares.estimated import foretell_confusion, foretell_shares
from venn_admit.core.calibrators.certified.testing import ChainSetting, capped_documents, run_chains
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares, check_class_shares
from venn_admit.core.calibrators.loss import LossMatrix, check_loss
from venn_admit.core.calibrators.settings import check_alpha, check_class_count
from venn_admit.core.types import BoolArray
from venn_admit.errors import InvalidInputError


def certify(
    proposing: CertificatePoints,
    evidence: CertificatePoints,
    *,
    class_count: int,
    alpha: Decimal,
    kinds: Collection[str],
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
    loss: LossMatrix | None = None,
    class_shares: ClassShares | EstimatedShares | None = None,
) -> Certificate:
    """Certify a policy: with the given confidence, at least 1 - alpha of the admitted points of each class are right.

    With a loss: the mean loss of the admitted points of each class is at most alpha. With class shares: in traffic that
    has the classes in these shares and points of each class like those of the evidence; for true classes, and for
    predicted ones, also within groups.

    If what is asked for falls apart into disjoint classes (predicted classes, the groups of one attribute, or predicted
    classes within them), each has a chain of its own, and an equal part of 1 - confidence; a class that fails stops no
    other, and a chain that passed to its end leaves its part to the rest. Otherwise, as with true classes or several
    attributes, each policy of a path is tested for everything at once. Groups that are foretold to stop it are never
    admitted, nor such predicted classes, unless true classes are asked for. A document counts for at most as many
    points of a class as the largest proposing one holds.

    The result depends on the content of the points only, neither on the order of rows nor on how documents are
    numbered. A predicted class or a group that is asked for and has no chance to pass is never admitted, nor is a point
    without an attribute that is asked for.

    Args:
        class_shares: What is declared of traffic, or estimated, which takes its level from 1 - confidence; None if
            traffic is like the evidence.

    Raises:
        InvalidInputError: An argument or an array is out of range, or there are fewer than two documents.
    """
    check_class_count(class_count)
    check_alpha(alpha)
    asked = make_certification(kinds, confidence, test)
    if loss is not None:
        check_loss(loss, alpha, class_count)
    if isinstance(class_shares, ClassShares):
        check_class_shares(class_shares, class_count)
    check_points("the proposing points", proposing, class_count)
    check_points("the evidence", evidence, class_count)
    for points in (proposing, evidence):
        if tuple(of.attribute for of in points.groups) != attributes_of(asked.kinds):
            raise InvalidInputError(
                f"expected points with the groups of {', '.join(attributes_of(asked.kinds)) or 'no attribute'}, got "
                f"those of {', '.join(of.attribute for of in points.groups) or 'none'}"
            )
    proposing, _ = canonical(proposing)
    evidence, generator = canonical(evidence)
    level = float(1 - confidence)
    shown = Evidence(evidence.document_count, len(evidence.score), asked.test is DocumentTest.FINITE_SAMPLE)
    losses = foretold = losses_of(loss, class_count)
    if class_shares is not None:
        losses, foretold = _under_shares(
            class_shares, losses, proposing, evidence, float(alpha), SHARES_PART * level, generator
        )
        level *= 1 - SHARES_PART
        level -= class_shares.level if isinstance(class_shares, EstimatedShares) else 0.0
        if level <= 0:
            raise InvalidInputError(
                f"class_shares: estimated shares take their level from 1 - confidence = {1 - confidence}, of which "
                "they leave nothing for tests; estimate them at a smaller level"
            )
    plan = plan_chains(proposing, shown, foretold, alpha=float(alpha), kinds=asked.kinds, level=level)
    seed = int(generator.integers(2**63))
    setting = ChainSetting(proposing, evidence, losses, foretold, float(alpha), asked.test, shown, seed)
    chains = run_chains(plan.orders, setting, level)
    untested = [
        ClassResult(of.kind, of.number, of.value, 0, 0, None, needed)
        for column, needed in plan.untested
        for of in [named_class(*column, evidence.groups)]
    ]
    tested = list(zip(plan.orders, chains, strict=True))
    found = _certificate(tested, untested, setting, class_count, alpha, confidence, asked.kinds)
    return replace(found, class_shares=class_shares)


def _under_shares(
    shares: ClassShares | EstimatedShares,
    losses: Losses,
    proposing: CertificatePoints,
    evidence: CertificatePoints,
    alpha: float,
    level: float,
    generator: np.random.Generator,
) -> tuple[Losses, Losses]:
    """What points cost under such shares: at most, and as foretold.

    What is tested, and in which order, must not depend on labels of the evidence. For that, costs are foretold.

    level: That of the bounds of the calibration data's own shares. generator: As `canonical` gives it.
    """
    labels = np.bincount(evidence.label, minlength=len(losses.matrix))
    if not labels.all():
        raise InvalidInputError(
            "class_shares: expected labels of every class on mc and vp, by which the shares of the calibration data "
            f"are bounded, got none of class {int(np.argmin(labels))}; label more points"
        )
    if evidence.document_count == len(evidence.score):
        ratios, costs = point_ratios(labels, level), costs_of_points
    else:
        ratios, costs = document_ratios(evidence, proposing, len(labels), level, generator), costs_of_documents
    confusion = foretell_confusion(proposing, evidence.document_count, len(labels))
    of_both = (shares, ratios), (foretell_shares(shares, confusion), point_ratios(confusion.sum(axis=0), level))
    most, foretold = (replace(losses, declared=costs(losses.matrix, *of, alpha=alpha)) for of in of_both)
    return most, foretold


def _certificate(
    tested: list[tuple[Order, Chain]],
    untested: list[ClassResult],
    setting: ChainSetting,
    class_count: int,
    alpha: Decimal,
    confidence: Decimal,
    kinds: tuple[Kind, ...],
) -> Certificate:
    """What is certified: the union of the chains of single classes, or the better of the paths."""
    passed = [(order, chain, chain.last_passed) for order, chain in tested]
    if part_kind(kinds) is None:
        passed = sorted(passed, key=lambda one: -1 if one[2] is None else -one[2].admitted)[:1]
    certified: list[ClassResult] = []
    lacking = list(untested)
    steps = []
    for order, chain, step in passed:
        if step is None:
            lacking += chain.closest.classes
        else:
            certified += step.classes
            steps.append((order, step.thresholds))
    evidence = setting.evidence
    policy = joined_policy(steps, evidence, class_count) if certified else None
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=kinds,
        test=setting.test,
        documents=setting.shown.documents,
        points=setting.shown.points,
        proposing=len(setting.proposing.score),
        capped=0 if policy is None else capped_documents(setting, kinds, partial(_admitted, policy)),
        loss=setting.losses.given,
        policy=policy,
        admitted=0 if policy is None else int(np.count_nonzero(_admitted(policy, evidence))),
        classes=tuple(certified),
        lacking=tuple(lacking),
        chains=tuple(chain for _, chain in tested),
    )


def _admitted(policy: Policy, points: CertificatePoints) -> BoolArray:
    return admit(points.score, points.predicted, policy, points.attributes)
