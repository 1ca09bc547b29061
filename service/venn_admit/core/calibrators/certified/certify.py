"""Certification: policies are proposed on `mc` and tested on `vp` in turn; of those that pass, one is chosen.

Sources: Angelopoulos, Bates, Candès, Jordan & Lei (2022), *Learn then test*; Laufer-Goldshtein, Fisch, Barzilay &
Jaakkola (2023), *Efficiently controlling multiple risks with Pareto testing*; docs/explanation/certificate.md.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, DocumentTest, make_certification
from venn_admit.core.calibrators.certified.certificate import Certificate, ClassResult, Proposal
from venn_admit.core.calibrators.certified.evidence import Evidence, documents_needed
from venn_admit.core.calibrators.certified.hypothesis_tests import boundary_deviation, class_p_values, largest_excess
from venn_admit.core.calibrators.certified.points import (
    CertificatePoints,
    Tallies,
    canonical,
    check_points,
    policies_together,
    tally,
)
from venn_admit.core.calibrators.certified.policies import ProposedPolicy, admit, propose, vacuous
from venn_admit.core.types import FloatArray
from venn_admit.errors import InvalidInputError


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
    _check_frame(class_count, alpha)
    asked = make_certification(kinds, confidence, test)
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
        kinds=asked.kinds,
        test=asked.test,
        single_points=vp.document_count == len(vp.p0),
        seed=int(generator.integers(2**63)),
    )
    proposed = propose(mc, alpha=alpha, kinds=asked.kinds, class_count=class_count, evidence=setting.evidence)
    proposals: list[Proposal] = []
    for one, results in _tested(proposed, setting):
        passing = not proposals or proposals[-1].passed
        proposals.append(_proposal(one, results, setting, margin=one.aim.margin * alpha, passing=passing))
    passed = [position for position, proposal in enumerate(proposals) if proposal.passed]
    return Certificate(
        alpha=alpha,
        confidence=confidence,
        kinds=asked.kinds,
        test=asked.test,
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


def _tested(
    proposed: Sequence[ProposedPolicy], setting: _Setting
) -> Iterator[tuple[ProposedPolicy, tuple[ClassResult, ...]]]:
    """Each proposal with the results of its classes; several are tested together, and no class bears on another."""
    larger = max(setting.mc, setting.vp, key=lambda points: len(points.p0))
    step = policies_together(larger, setting.kinds, setting.class_count)
    for start in range(0, len(proposed), step):
        batch = proposed[start : start + step]
        results = _batch_results(batch, setting)
        width = len(results) // len(batch)
        for place, one in enumerate(batch):
            yield one, tuple(results[place * width : (place + 1) * width])


def _batch_results(batch: Sequence[ProposedPolicy], setting: _Setting) -> list[ClassResult]:
    """The results of the classes of each proposal; the counts, which are large, are given up before the next batch."""

    def count(points: CertificatePoints) -> Tallies:
        admitted = np.stack([admit(points.p0, points.predicted, one.policy) for one in batch])
        return tally(points, admitted, setting.kinds, setting.class_count)

    mc, vp = count(setting.mc), count(setting.vp)
    p_values = class_p_values(
        vp.admitted,
        vp.wrong,
        mc_admitted=mc.admitted,
        mc_wrong=mc.wrong,
        single_points=setting.single_points,
        alpha=setting.alpha,
        level=setting.level,
        test=setting.test,
        generator=np.random.default_rng(setting.seed),
    )
    nothing_asked = np.concatenate([vacuous(one.policy, setting.kinds) for one in batch])
    return _class_results(mc, vp, np.where(nothing_asked, np.nan, p_values), setting)


def _proposal(
    proposed: ProposedPolicy, results: tuple[ClassResult, ...], setting: _Setting, *, margin: Decimal, passing: bool
) -> Proposal:
    """What was found of one proposal; it passes only if all before it did."""
    # A policy that admits something has a class that is tested: a predicted one with a threshold, or every true one.
    p_value = max(result.p_value for result in results if result.p_value is not None)
    of_one_kind = results[: setting.class_count]  # each admitted point is of one class of each kind
    return Proposal(
        margin=margin,
        standard_errors=proposed.aim.standard_errors,
        policy=proposed.policy,
        mc_share=sum(result.mc_admitted for result in of_one_kind) / len(setting.mc.p0),
        vp_share=sum(result.vp_admitted for result in of_one_kind) / len(setting.vp.p0),
        classes=results,
        p_value=p_value,
        passed=passing and p_value <= setting.level,
    )


def _class_results(mc: Tallies, vp: Tallies, p_values: FloatArray, setting: _Setting) -> list[ClassResult]:
    """The results of the classes of several policies; a p-value is NaN if nothing is asked of the class."""
    mc_admitted, mc_wrong = mc.admitted.sum(axis=0).tolist(), mc.wrong.sum(axis=0).tolist()
    vp_admitted, vp_wrong = vp.admitted.sum(axis=0).tolist(), vp.wrong.sum(axis=0).tolist()
    gain = (setting.alpha * vp.admitted - vp.wrong).mean(axis=0).tolist()
    deviation = np.std(vp.wrong - setting.alpha * vp.admitted, axis=0, ddof=1).tolist()
    boundary = boundary_deviation(vp.admitted, vp.wrong, setting.alpha).tolist()
    bound = largest_excess(mc.admitted, setting.alpha).tolist()
    results = []
    for place, p_value in enumerate(p_values.tolist()):
        kind, number = divmod(place, setting.class_count)
        needed = None
        if not math.isnan(p_value):
            needed = documents_needed(
                gain[place],
                deviation[place],
                boundary[place],
                bound[place],
                level=setting.level,
                bounded=setting.bounded,
            )
        results.append(
            ClassResult(
                kind=setting.kinds[kind % len(setting.kinds)],
                number=number,
                mc_admitted=mc_admitted[place],
                mc_right=mc_admitted[place] - mc_wrong[place],
                vp_admitted=vp_admitted[place],
                vp_right=vp_admitted[place] - vp_wrong[place],
                p_value=None if math.isnan(p_value) else p_value,
                documents_needed=needed,
            )
        )
    return results


def _check_frame(class_count: int, alpha: Decimal) -> None:
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")
    if not (alpha.is_finite() and 0 < alpha < 1):
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha}")
