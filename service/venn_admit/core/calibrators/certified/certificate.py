"""Certificates: the records of what was tested and certified, and their form for storage and export."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from venn_admit.core.calibrators.certification import (
    ClassKind,
    DocumentTest,
    Kind,
    PromisedClass,
    class_document,
    class_from_document,
    parse_kind,
    part_kind,
)
from venn_admit.core.calibrators.certified.policies import Bounded, GroupThresholds, Policy
from venn_admit.core.calibrators.loss import LossMatrix
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ClassResult(PromisedClass):
    """What was found for one class of one kind under one policy.

    Attributes:
        admitted: The number of its points of the evidence that are admitted.
        right: How many of them are right.
        p_value: In [0, 1]; None for a predicted class that is never admitted, of which nothing is promised.
        documents_needed: The number of documents of evidence with which the class passes with a chance of 0.8, at the
            rates seen there; None if it fails at any number.
        mean_loss: That of its admitted points, 0 if there are none; None if no loss was asked for.
    """

    admitted: int
    right: int
    p_value: float | None
    documents_needed: int | None
    mean_loss: float | None = None

    @property
    def share(self) -> float | None:
        """The share that is right of the admitted points; None if there are none."""
        return self.right / self.admitted if self.admitted else None


@dataclass(frozen=True, slots=True)
class TriedPolicy:
    """A policy of a chain, and its test.

    Attributes:
        shares: The thresholds on g, the share right that is foretold, for the predicted classes of the chain; None is
            never.
        thresholds: Those on the score that follow.
        admitted: The number of points of the evidence that it admits.
        classes: The results of the classes that it is tested for.
        passed: Whether its p-value, and that of every step before it, is at most the level of the chain.
    """

    shares: tuple[float | None, ...]
    thresholds: tuple[float | None, ...]
    admitted: int
    classes: tuple[ClassResult, ...]
    passed: bool

    @property
    def p_value(self) -> float:
        """The largest of the p-values of the classes."""
        return max(result.p_value for result in self.classes if result.p_value is not None)

    @property
    def documents_needed(self) -> int | None:
        """The documents of evidence with which every class is likely to pass; None if one fails at any number."""
        return needed_together(self.classes)


@dataclass(frozen=True, slots=True)
class Chain:
    """Policies that were tested in an order fixed beforehand, up to the first that failed.

    Attributes:
        name: `class` for the thresholds of one predicted class, `group` for those of one group, `class in group` for
            those of one predicted class within one; `one threshold` or `by class` for policies of everything;
            `proposals` in certificates made before there were chains, in which all were tested.
        predicted: The predicted classes that it sets thresholds for.
        level: The level of its tests, its part of 1 - confidence.
    """

    name: str
    predicted: tuple[int, ...]
    level: float
    steps: tuple[TriedPolicy, ...]

    @property
    def last_passed(self) -> TriedPolicy | None:
        """The most liberal policy that passed."""
        return next((step for step in reversed(self.steps) if step.passed), None)

    @property
    def covers_true_classes(self) -> bool:
        """Whether true classes are tested, not predicted ones alone."""
        return any(result.kind is ClassKind.TRUE for step in self.steps for result in step.classes)

    @property
    def closest(self) -> TriedPolicy:
        """That policy or, if none passed, the failed one that lacks the fewest documents."""
        if self.last_passed is not None:
            return self.last_passed
        passable = [step for step in self.steps if step.documents_needed is not None]
        return min(passable, key=lambda step: step.documents_needed or 0, default=self.steps[0])


@dataclass(frozen=True, slots=True)
class SetAside:
    """A policy that is certified and not in use, because it admits less than the softmax.

    Attributes:
        admitted: The number of points of evidence that it admits.
        by_softmax: The number that the network's softmax at 1 - alpha admits.
        classes: The results of the classes that it would promise something for.
    """

    policy: Policy
    admitted: int
    by_softmax: int
    classes: tuple[ClassResult, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome of a certification.

    Attributes:
        kinds: The kinds of classes among whose admitted points 1 - alpha are right.
        documents: The number of documents of evidence.
        points: The number of points in them.
        proposing: The number of points that fixed the order of the tests.
        capped: The number of documents of evidence that count for fewer points of some class than they hold.
        policy: The certified policy, or None: then nothing may be admitted by it.
        admitted: The number of points of evidence that it admits.
        classes: The results of the classes that something is promised for.
        lacking: For the others, the policy nearest to a promise, with the documents that it would take.
        loss: What errors cost, if the mean loss is promised; None for the share right.
        set_aside: The certified policy that the average promise takes the place of; None if there is none.
    """

    alpha: Decimal
    confidence: Decimal
    kinds: tuple[Kind, ...]
    test: DocumentTest
    documents: int
    points: int
    proposing: int
    capped: int
    policy: Policy | None
    admitted: int
    classes: tuple[ClassResult, ...]
    lacking: tuple[ClassResult, ...]
    chains: tuple[Chain, ...]
    loss: LossMatrix | None = None
    set_aside: SetAside | None = None

    def without_policy(self, by_softmax: int) -> "Certificate":
        """Return the certificate with its policy set aside.

        Args:
            by_softmax: The number of points of the evidence that the network's softmax at 1 - alpha admits.
        """
        assert self.policy is not None, "there is a policy to set aside"
        aside = SetAside(self.policy, self.admitted, by_softmax, self.classes)
        return replace(self, policy=None, admitted=0, classes=(), set_aside=aside)

    @property
    def single_points(self) -> bool:
        """Whether every document is one point."""
        return self.documents == self.points

    @property
    def share(self) -> float | None:
        """The share of the evidence that the policy admits; None if nothing is certified."""
        return None if self.policy is None else self.admitted / self.points

    @property
    def p_value(self) -> float | None:
        """The largest p-value of a class under the policy; None if nothing is certified."""
        if self.policy is None:
            return None
        return max(result.p_value for result in self.classes if result.p_value is not None)

    @property
    def unpromised(self) -> tuple[ClassResult, ...]:
        """The results of kinds of classes that the policy does not cover; none unless the strongest was asked for."""
        return tuple(result for result in self.lacking if result.kind not in self.kinds)

    @property
    def documents_needed(self) -> int | None:
        """The documents of evidence with which some policy is likely to pass; None if one did, or none would."""
        if self.policy is not None or self.set_aside is not None:
            return None
        if part_kind(self.kinds) is None:
            return needed_together(closest_together(self.chains, self.lacking))
        needed = [result.documents_needed for result in self.lacking if result.kind in self.kinds]
        return min((number for number in needed if number is not None), default=None)

    @property
    def closest_for_unpromised(self) -> tuple[ClassResult, ...]:
        """The results of all classes under the policy nearest to a promise for those of `unpromised` too."""
        return closest_together([chain for chain in self.chains if chain.covers_true_classes], self.unpromised)

    @property
    def needed_for_unpromised(self) -> int | None:
        """The documents with which that policy is likely to pass for every class; None if no number would do."""
        return needed_together(self.closest_for_unpromised)

    @property
    def labels_needed(self) -> int | None:
        """The number of points in `documents_needed` documents, at the mean size of those of the evidence."""
        return None if self.documents_needed is None else self.points_in(self.documents_needed)

    def points_in(self, documents: int) -> int:
        """Return the number of points in some documents, at the mean size of those of the evidence, rounded up.

        Args:
            documents: >= 0.
        """
        return -(-documents * self.points // self.documents)


def closest_together(chains: Sequence[Chain], untested: Sequence[ClassResult]) -> tuple[ClassResult, ...]:
    """Return the results of the policy that takes the fewest documents to pass for every class that it is tested for.

    Args:
        chains: Those with such policies; the nearest of each is looked at.
        untested: What is known of the classes if there is no chain.
    """
    closest = [chain.closest.classes for chain in chains]
    return min(closest, key=lambda results: needed_together(results) or math.inf, default=tuple(untested))


def needed_together(results: Sequence[ClassResult]) -> int | None:
    """Return the documents with which every class is likely to pass; None if one fails at any number, or none is there.

    Args:
        results: Those of a policy.
    """
    # Nothing is asked of a predicted class that is never admitted under a policy that was tested.
    tested = [one.documents_needed for one in results if one.p_value is not None] or [
        one.documents_needed for one in results
    ]
    known = [number for number in tested if number is not None]
    return max(known) if known and len(known) == len(tested) else None


def to_document(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as values that JSON can hold; a threshold of null is never."""
    policy = certificate.policy
    return {
        "alpha": str(certificate.alpha),
        "confidence": str(certificate.confidence),
        "kinds": [str(kind) for kind in certificate.kinds],
        "test": str(certificate.test),
        # Absent without a loss, as in certificates made before there were any.
        **({} if certificate.loss is None else {"loss": [list(map(str, row)) for row in certificate.loss]}),
        "single_points": certificate.single_points,
        "documents": certificate.documents,
        "points": certificate.points,
        "proposing": certificate.proposing,
        "capped": certificate.capped,
        **_policy_document(policy),
        "admitted": certificate.admitted,
        "share": certificate.share,
        "documents_needed": certificate.documents_needed,
        "labels_needed": certificate.labels_needed,
        "promised": [_result_document(result) for result in certificate.classes],
        "lacking": [_result_document(result) for result in certificate.lacking],
        # Absent unless there is one, as in certificates made before any was.
        **({} if certificate.set_aside is None else {"set_aside": _aside_document(certificate.set_aside)}),
        "chains": [
            {
                "name": chain.name,
                "predicted": list(chain.predicted),
                "level": chain.level,
                "steps": [
                    {
                        "shares": list(step.shares),
                        "thresholds": list(step.thresholds),
                        "admitted": step.admitted,
                        "passed": step.passed,
                        "classes": [_result_document(result) for result in step.classes],
                    }
                    for step in chain.steps
                ],
            }
            for chain in certificate.chains
        ],
    }


def _policy_document(policy: Policy | None) -> dict[str, Any]:
    return {
        "thresholds": None if policy is None else list(policy.thresholds),
        "bounded": None if policy is None else str(policy.bounded),
        # Absent unless groups were asked for, as in certificates made before there were any.
        **({"groups": groups_document(policy)} if policy is not None and policy.groups else {}),
    }


def _aside_document(aside: SetAside) -> dict[str, Any]:
    return {
        **_policy_document(aside.policy),
        "admitted": aside.admitted,
        "by_softmax": aside.by_softmax,
        "promised": [_result_document(result) for result in aside.classes],
    }


def groups_document(policy: Policy) -> list[dict[str, Any]]:
    """Return the thresholds of groups as values that JSON can hold."""
    return [{"attribute": of.attribute, "least": list(map(dict, of.least))} for of in policy.groups]


def policy_from_document(document: Mapping[str, Any]) -> Policy | None:
    """Return the certified policy of a certificate that `to_document` made a document of; None if there is none.

    Args:
        document: Its fields `thresholds`, `bounded` and, if there are any, `groups`.
    """
    if document["thresholds"] is None:
        return None
    groups = tuple(GroupThresholds(of["attribute"], tuple(of["least"])) for of in document.get("groups") or ())
    return Policy(tuple(document["thresholds"]), Bounded(document["bounded"]), groups)


def _result_document(result: ClassResult) -> dict[str, Any]:
    return {
        **class_document(result),
        "admitted": result.admitted,
        "right": result.right,
        **({} if result.mean_loss is None else {"mean_loss": result.mean_loss}),
        "p_value": result.p_value,
        "documents_needed": result.documents_needed,
    }


def from_document(document: Mapping[str, Any]) -> Certificate:
    """Return the certificate that `to_document` made a document of, or the program before there were chains.

    Raises:
        InvalidInputError: A field is absent or has a value that no certificate has.
    """
    try:
        if "proposals" in document:
            return _of_proposals(document)
        return Certificate(
            **_asked(document),
            documents=document["documents"],
            points=document["points"],
            proposing=document["proposing"],
            capped=document["capped"],
            policy=policy_from_document(document),
            admitted=document["admitted"],
            classes=tuple(map(_result, document["promised"])),
            lacking=tuple(map(_result, document["lacking"])),
            set_aside=_aside(document["set_aside"]) if "set_aside" in document else None,
            chains=tuple(
                Chain(
                    name=chain["name"],
                    predicted=tuple(chain["predicted"]),
                    level=chain["level"],
                    steps=tuple(
                        TriedPolicy(
                            shares=tuple(step["shares"]),
                            thresholds=tuple(step["thresholds"]),
                            admitted=step["admitted"],
                            classes=tuple(map(_result, step["classes"])),
                            passed=step["passed"],
                        )
                        for step in chain["steps"]
                    ),
                )
                for chain in document["chains"]
            ),
        )
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"expected the document of a certificate, got one that fails at {error!r}; recalibrate to write it again"
        ) from error


def _asked(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "alpha": Decimal(document["alpha"]),
        "confidence": Decimal(document["confidence"]),
        "kinds": tuple(map(parse_kind, document["kinds"])),
        "test": DocumentTest(document["test"]),
        "loss": tuple(tuple(map(Decimal, row)) for row in document["loss"]) if "loss" in document else None,
    }


def _aside(document: Mapping[str, Any]) -> SetAside:
    policy = policy_from_document(document)
    if policy is None:
        raise ValueError("a policy that is set aside has thresholds")
    classes = tuple(map(_result, document["promised"]))
    return SetAside(policy, document["admitted"], document["by_softmax"], classes)


def _result(document: Mapping[str, Any]) -> ClassResult:
    of = class_from_document(document)
    return ClassResult(
        kind=of.kind,
        number=of.number,
        value=of.value,
        admitted=document["admitted"],
        right=document["right"],
        p_value=document["p_value"],
        documents_needed=document["documents_needed"],
        mean_loss=document.get("mean_loss"),
    )


def _of_proposals(document: Mapping[str, Any]) -> Certificate:
    """A certificate made before there were chains: thresholds on p0, proposed on `mc` and tested on `vp`."""
    confidence, points = Decimal(document["confidence"]), document["vp_points"]
    steps = tuple(
        TriedPolicy(
            shares=(),
            thresholds=tuple(proposal["thresholds"]),
            admitted=round(proposal["vp_share"] * points),
            classes=tuple(
                _result({**result, "admitted": result["vp_admitted"], "right": result["vp_right"]})
                for result in proposal["classes"]
            ),
            passed=proposal["passed"],
        )
        for proposal in document["proposals"]
    )
    level, chosen = float(1 - confidence), document["chosen"]
    chains = (Chain("proposals", tuple(range(len(steps[0].thresholds))), level, steps),) if steps else ()
    return Certificate(
        **_asked(document),
        documents=document["vp_documents"],
        points=points,
        proposing=0,
        capped=0,
        policy=None if chosen is None else Policy(steps[chosen].thresholds, Bounded.LOWER),
        admitted=0 if chosen is None else steps[chosen].admitted,
        classes=() if chosen is None else steps[chosen].classes,
        lacking=chains[0].closest.classes if chains and chosen is None else (),
        chains=chains,
    )
