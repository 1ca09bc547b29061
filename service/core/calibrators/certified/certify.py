"""Certification: policies are proposed on `mc` and tested on `vp` in turn; of those that pass, one is chosen.

Sources: Angelopoulos, Bates, Candès, Jordan & Lei (2022), *Learn then test*; Laufer-Goldshtein, Fisch, Barzilay &
Jaakkola (2023), *Efficiently controlling multiple risks with Pareto testing*; docs/explanation/certificate.md.
"""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.service.core.calibrators.certified.certificate import Certificate, ClassResult, Proposal
from venn_admit.service.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.service.core.calibrators.certified.hypothesis_tests import (
    DocumentTest,
    boundary_deviation,
    class_p_values,
    largest_excess,
)
from venn_admit.service.core.calibrators.certified.points import CertificatePoints, canonical, check_points
from venn_admit.service.core.calibrators.certified.policies import Policy, ProposedPolicy, admit, propose, vacuous
from venn_admit.service.core.calibrators.certified.tallies import ClassKind, Tallies, tally
from venn_admit.service.core.types import BoolArray
from venn_admit.service.errors import InvalidInputError

DEFAULT_CONFIDENCE = Decimal("0.95")


def certify(
    mc: CertificatePoints,
    vp: CertificatePoints,
    *,
    class_count: int,
    alpha: Decimal,
    kinds: Collection[ClassKind | str],
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
) -> Certificate:
    """Certify a policy: with the given confidence, at least 1 - alpha of the admitted points of each class are right.

    The result depends on the content of the points only, neither on the order of rows nor on how documents are
    numbered. A predicted class of which `mc` has no point is never admitted. A true class of which nothing is admitted
    on `vp` cannot be certified, and no policy passes.

    Args:
        mc: Labelled points with p0 from models that were not fitted to their own documents.
        vp: Labelled points with p0 as scored points get it; they serve no other end.
        class_count: C >= 2.
        alpha: In (0, 1).
        kinds: `predicted`, `true` or both: the classes for which it shall hold.
        confidence: 1 - eps, in (0, 1).
        test: How documents of several points are tested. `finite-sample` is valid at any number of documents;
            `asymptotic` has more power, and is valid for very many only.

    Raises:
        InvalidInputError: An argument or an array is out of range, or a split has fewer than two documents.
    """
    asked, test = _checked(class_count, alpha, kinds, confidence, test)
    check_points("mc", mc, class_count)
    check_points("vp", vp, class_count)
    mc, _ = canonical(mc)
    vp, generator = canonical(vp)
    setting = _Setting(
        mc=mc,
        vp=vp,
        class_count=class_count,
        alpha=float(alpha),
        level=float(1 - confidence),
        kinds=asked,
        test=test,
        single_points=vp.document_count == len(vp.p0),
        seed=int(generator.integers(2**63)),
    )
    proposed = propose(mc, alpha=alpha, kinds=asked, class_count=class_count, evidence=setting.evidence)
    proposals = []
    passing = True
    for one in proposed:
        proposal = _tested(one, setting, margin=one.aim.margin * alpha, passing=passing)
        passing = proposal.passed
        proposals.append(proposal)
    passed = [position for position, proposal in enumerate(proposals) if proposal.passed]
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=asked,
        test=test,
        single_points=setting.single_points,
        vp_documents=vp.document_count,
        vp_points=len(vp.p0),
        proposals=tuple(proposals),
        chosen=max(passed, key=lambda position: proposals[position].mc_share, default=None),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What all proposals of a certificate are tested under.

    Attributes:
        seed: Drawn from the content of `vp`: every proposal is tested with the same order and the same uniform number.
    """

    mc: CertificatePoints
    vp: CertificatePoints
    class_count: int
    alpha: float
    level: float
    kinds: tuple[ClassKind, ...]
    test: DocumentTest
    single_points: bool
    seed: int

    @property
    def bounded(self) -> bool:
        return self.single_points or self.test is DocumentTest.FINITE_SAMPLE

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.vp.document_count, self.bounded)


def _tested(proposed: ProposedPolicy, setting: _Setting, *, margin: Decimal, passing: bool) -> Proposal:
    """Test one proposal; it passes only if all before it did."""
    policy = proposed.policy
    mc_admitted, mc_counts = _counted(setting.mc, policy, setting)
    vp_admitted, vp_counts = _counted(setting.vp, policy, setting)
    p_values = class_p_values(
        vp_counts.admitted,
        vp_counts.wrong,
        mc_admitted=mc_counts.admitted,
        mc_wrong=mc_counts.wrong,
        single_points=setting.single_points,
        alpha=setting.alpha,
        level=setting.level,
        test=setting.test,
        generator=np.random.default_rng(setting.seed),
    )
    nothing_asked = vacuous(policy, setting.kinds)
    # A policy that admits something has a class that is tested: a predicted one with a threshold, or every true one.
    p_value = float(p_values[~nothing_asked].max())
    return Proposal(
        margin=margin,
        standard_errors=proposed.aim.standard_errors,
        policy=policy,
        mc_share=float(mc_admitted.mean()),
        vp_share=float(vp_admitted.mean()),
        classes=tuple(
            _class_results(
                mc_counts,
                vp_counts,
                [None if skip else float(p) for skip, p in zip(nothing_asked, p_values, strict=True)],
                setting,
            )
        ),
        p_value=p_value,
        passed=passing and p_value <= setting.level,
    )


def _counted(points: CertificatePoints, policy: Policy, setting: _Setting) -> tuple[BoolArray, Tallies]:
    admitted = admit(points.p0, points.predicted, policy)
    return admitted, tally(points, admitted, setting.kinds, setting.class_count)


def _class_results(mc: Tallies, vp: Tallies, p_values: list[float | None], setting: _Setting) -> list[ClassResult]:
    mc_admitted, mc_wrong = mc.admitted.sum(axis=0).tolist(), mc.wrong.sum(axis=0).tolist()
    vp_admitted, vp_wrong = vp.admitted.sum(axis=0).tolist(), vp.wrong.sum(axis=0).tolist()
    gain = (setting.alpha * vp.admitted - vp.wrong).mean(axis=0)
    deviation = np.std(vp.wrong - setting.alpha * vp.admitted, axis=0, ddof=1)
    boundary = boundary_deviation(vp.admitted, vp.wrong, setting.alpha)
    bound = largest_excess(mc.admitted, setting.alpha)
    return [
        ClassResult(
            kind=setting.kinds[position // setting.class_count],
            number=position % setting.class_count,
            mc_admitted=mc_admitted[position],
            mc_right=mc_admitted[position] - mc_wrong[position],
            vp_admitted=vp_admitted[position],
            vp_right=vp_admitted[position] - vp_wrong[position],
            p_value=p_value,
            documents_needed=None
            if p_value is None
            else documents_needed(
                float(gain[position]),
                float(deviation[position]),
                float(boundary[position]),
                float(bound[position]),
                level=setting.level,
                bounded=setting.bounded,
            ),
        )
        for position, p_value in enumerate(p_values)
    ]


def _checked(
    class_count: int,
    alpha: Decimal,
    kinds: Collection[ClassKind | str],
    confidence: Decimal,
    test: DocumentTest | str,
) -> tuple[tuple[ClassKind, ...], DocumentTest]:
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")
    if not (alpha.is_finite() and 0 < alpha < 1):
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha}")
    if not (confidence.is_finite() and 0 < confidence < 1):
        raise InvalidInputError(f"confidence must lie strictly between 0 and 1, got {confidence}; 0.95 is usual")
    unknown = [str(kind) for kind in kinds if kind not in tuple(ClassKind)]
    if unknown or not kinds:
        raise InvalidInputError(
            f"a certificate is for {' or '.join(ClassKind)} classes, or both; got {', '.join(unknown) or 'neither'}"
        )
    if test not in tuple(DocumentTest):
        raise InvalidInputError(f"documents are tested by {' or '.join(DocumentTest)}; got {test}")
    return tuple(kind for kind in ClassKind if kind in kinds), DocumentTest(test)
