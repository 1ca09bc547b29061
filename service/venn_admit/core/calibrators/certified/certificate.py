"""Certificates: the records of what was proposed, tested and chosen, and their form for storage and export."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ClassResult:
    """What was found for one class of one kind under one policy.

    Attributes:
        mc_admitted: The number of its points of `mc` that are admitted.
        mc_right: How many of them are right.
        vp_admitted: The number of its points of `vp` that are admitted.
        vp_right: How many of them are right.
        p_value: In [0, 1]; None for a predicted class that is never admitted, of which nothing is promised.
        documents_needed: The number of documents of `vp` with which the class passes with a chance of 0.8, at the rates
            seen there; None if it fails at any number, or nothing is tested.
    """

    kind: ClassKind
    number: int
    mc_admitted: int
    mc_right: int
    vp_admitted: int
    vp_right: int
    p_value: float | None
    documents_needed: int | None

    @property
    def mc_share(self) -> float | None:
        """The share that is right of the admitted points of `mc`; None if there are none."""
        return self.mc_right / self.mc_admitted if self.mc_admitted else None

    @property
    def vp_share(self) -> float | None:
        """The share that is right of the admitted points of `vp`; None if there are none."""
        return self.vp_right / self.vp_admitted if self.vp_admitted else None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A policy that was proposed on `mc`, and its test on `vp`.

    Attributes:
        margin: How far the asked shares were to exceed 1 - alpha on `mc`.
        standard_errors: How many standard errors of their estimate on `vp` they were to exceed it by.
        mc_share: The share of the points of `mc` that is admitted.
        vp_share: The share of the points of `vp` that is admitted.
        classes: The results of the classes of each kind asked for.
        p_value: The largest of the p-values of the classes.
        passed: Whether its p-value, and that of every proposal before it, is at most 1 - confidence.
    """

    margin: Decimal
    standard_errors: float
    policy: Policy
    mc_share: float
    vp_share: float
    classes: tuple[ClassResult, ...]
    p_value: float
    passed: bool

    @property
    def documents_needed(self) -> int | None:
        """The number of documents of `vp` with which every class is likely to pass; None if one fails at any number."""
        tested = [result.documents_needed for result in self.classes if result.p_value is not None]
        known = [number for number in tested if number is not None]
        return max(known) if known and len(known) == len(tested) else None


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome of a certification.

    Attributes:
        confidence: 1 - eps, over the calibration data.
        kinds: The kinds of classes among whose admitted points 1 - alpha are right.
        test: How documents of several points were tested.
        single_points: Whether every document of `vp` was one point, so that the test was the exact binomial one.
        proposals: In the order in which they were tested.
        chosen: The position of the passed proposal that admits most of `mc`; None if none passed.
    """

    alpha: Decimal
    confidence: Decimal
    kinds: tuple[ClassKind, ...]
    test: DocumentTest
    single_points: bool
    vp_documents: int
    vp_points: int
    proposals: tuple[Proposal, ...]
    chosen: int | None

    @property
    def policy(self) -> Policy | None:
        """The certified policy, or None: then nothing may be admitted."""
        return None if self.chosen is None else self.proposals[self.chosen].policy

    @property
    def level(self) -> float:
        """eps, which the p-value of a policy must not exceed."""
        return float(1 - self.confidence)

    @property
    def closest(self) -> Proposal | None:
        """The certified proposal or, if there is none, the failed one that lacks the fewest documents.

        If no number of documents would do, it is the most promising one; None if nothing was proposed.
        """
        if self.chosen is not None:
            return self.proposals[self.chosen]
        failed = [proposal for proposal in self.proposals if proposal.p_value > self.level]
        passable = [proposal for proposal in failed if proposal.documents_needed is not None]
        return min(passable, key=lambda proposal: proposal.documents_needed or 0, default=next(iter(failed), None))

    @property
    def documents_needed(self) -> int | None:
        """The number of documents of `vp` with which some proposal that failed its test is likely to pass.

        None if a policy is certified, or if no number would do at the rates seen.
        """
        if self.chosen is not None:
            return None
        return None if self.closest is None else self.closest.documents_needed

    @property
    def labels_needed(self) -> int | None:
        """The number of points in `documents_needed` documents, at the mean size of those of `vp`."""
        return None if self.documents_needed is None else self.points_in(self.documents_needed)

    def points_in(self, documents: int) -> int:
        """Return the number of points in `documents`, at the mean size of those of `vp`, rounded up.

        Args:
            documents: >= 0.
        """
        return -(-documents * self.vp_points // self.vp_documents)


def to_document(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as values that JSON can hold; a threshold of null is never.

    Args:
        certificate: The certificate.
    """
    return {
        "alpha": str(certificate.alpha),
        "confidence": str(certificate.confidence),
        "kinds": [str(kind) for kind in certificate.kinds],
        "test": str(certificate.test),
        "single_points": certificate.single_points,
        "vp_documents": certificate.vp_documents,
        "vp_points": certificate.vp_points,
        "chosen": certificate.chosen,
        "thresholds": None if certificate.policy is None else list(certificate.policy.thresholds),
        "documents_needed": certificate.documents_needed,
        "labels_needed": certificate.labels_needed,
        "proposals": [
            {
                "margin": str(proposal.margin),
                "standard_errors": proposal.standard_errors,
                "thresholds": list(proposal.policy.thresholds),
                "mc_share": proposal.mc_share,
                "vp_share": proposal.vp_share,
                "p_value": proposal.p_value,
                "passed": proposal.passed,
                "documents_needed": proposal.documents_needed,
                "classes": [
                    {
                        "kind": str(result.kind),
                        "class": result.number,
                        "mc_admitted": result.mc_admitted,
                        "mc_right": result.mc_right,
                        "mc_share": result.mc_share,
                        "vp_admitted": result.vp_admitted,
                        "vp_right": result.vp_right,
                        "vp_share": result.vp_share,
                        "p_value": result.p_value,
                        "documents_needed": result.documents_needed,
                    }
                    for result in proposal.classes
                ],
            }
            for proposal in certificate.proposals
        ],
    }


def from_document(document: Mapping[str, Any]) -> Certificate:
    """Return the certificate that `to_document` made a document of.

    Args:
        document: As JSON holds it.

    Raises:
        InvalidInputError: A field is absent or has a value that no certificate has.
    """
    try:
        return Certificate(
            alpha=Decimal(document["alpha"]),
            confidence=Decimal(document["confidence"]),
            kinds=tuple(ClassKind(kind) for kind in document["kinds"]),
            test=DocumentTest(document["test"]),
            single_points=document["single_points"],
            vp_documents=document["vp_documents"],
            vp_points=document["vp_points"],
            proposals=tuple(_proposal(proposal) for proposal in document["proposals"]),
            chosen=document["chosen"],
        )
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"expected the document of a certificate, got one that fails at {error!r}; recalibrate to write it again"
        ) from error


def _proposal(document: Mapping[str, Any]) -> Proposal:
    return Proposal(
        margin=Decimal(document["margin"]),
        standard_errors=document["standard_errors"],
        policy=Policy(tuple(document["thresholds"])),
        mc_share=document["mc_share"],
        vp_share=document["vp_share"],
        classes=tuple(
            ClassResult(
                kind=ClassKind(result["kind"]),
                number=result["class"],
                mc_admitted=result["mc_admitted"],
                mc_right=result["mc_right"],
                vp_admitted=result["vp_admitted"],
                vp_right=result["vp_right"],
                p_value=result["p_value"],
                documents_needed=result["documents_needed"],
            )
            for result in document["classes"]
        ),
        p_value=document["p_value"],
        passed=document["passed"],
    )
