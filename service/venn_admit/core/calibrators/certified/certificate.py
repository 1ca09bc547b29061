"""Certificates: the records of what was tested and certified."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from venn_admit.core.calibrators.certification import ClassKind, DocumentTest, Kind, OneClass, PromisedClass, part_kind
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.loss import LossMatrix


@dataclass(frozen=True, slots=True)
class ClassResult(PromisedClass):
    """What was found for one class of one kind under one policy.

    Attributes:
        admitted: The number of its points of the evidence that are admitted.
        right: How many of them are right.
        p_value: In [0, 1]; None for a predicted class that is never admitted, of which nothing is promised.
        documents_needed: The number of documents of evidence with which the class passes with a chance of 0.8, at the
            rates seen there; None if it fails at any number.
        mean_loss: That of its admitted points, 0 if there are none, weighed as their errors are if class shares were
            declared or estimated; None if no loss was asked for, or nothing is admitted for want of a chance.
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
class Refutation:
    """What the labels that count for a chain show against what it certified of a class.

    Attributes:
        admitted: The points with a label that the threshold in force admitted when they came to count.
        right: Those of them that are right.
        documents: The documents that they are in.
        since: The number of the document among these from which on too few are right, about.
    """

    admitted: int
    right: int
    documents: int
    since: int


@dataclass(frozen=True, slots=True)
class Advance:
    """How far the steps of a class are certified by a certificate that stands while labels arrive.

    Attributes:
        certified: How many steps are, the first of the chain; if true classes are asked for, for all classes together.
        thresholds: How many there are.
        documents: About how many further documents the class takes for the next one at the rates seen, 0 if it waits
            for others, or before any as the proposing points foretell; None if no number would do, or if there is none.
        is_withdrawn: Whether labels refute what is certified of the class, or an alarm of the promise stands for it.
            Then nothing of a predicted class is admitted or, if true classes are asked for, nothing at all.
        refuted: What the labels show, if they refute it.
    """

    number: int
    certified: int
    thresholds: int
    documents: int | None
    is_withdrawn: bool
    refuted: Refutation | None = None
    kind: ClassKind = ClassKind.PREDICTED

    @property
    def about(self) -> OneClass:
        """The class."""
        return self.kind, self.number

    @property
    def promised(self) -> PromisedClass:
        """The same, as what a promise is about."""
        return PromisedClass(self.kind, self.number, None)


@dataclass(frozen=True, slots=True)
class NextChain:
    """A chain that would admit clearly more if it began with the labels that there are.

    Attributes:
        chain: Its number.
        level: Its part of 1 - confidence.
        documents: After how many further documents it is compared.
        share: The share of all points that it is foretold to admit by then.
        instead_of: The share that the present chain is foretold to admit by then.
    """

    chain: int
    level: float
    documents: int
    share: float
    instead_of: float


@dataclass(frozen=True, slots=True)
class LaterChain:
    """The newest chain of a setting, beside an earlier one.

    Attributes:
        chain: Its number.
        calibration: Its snapshot that is in use, or else its newest.
        is_in_use: Whether that is in use.
    """

    chain: int
    calibration: int
    is_in_use: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """The chain of a certificate that stands while labels arrive, and how far it came.

    Attributes:
        chain: 1, 2, ... within the classifier.
        level: Its part of 1 - confidence.
        classes: Those that are tested.
        following: The next chain, if it would admit clearly more; None if it would not, or has begun already.
    """

    chain: int
    level: float
    classes: tuple[Advance, ...]
    following: NextChain | None = None


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
        class_shares: What was declared or estimated of the classes of traffic; None if it is like the calibration data.
        set_aside: The certified policy that the average promise takes the place of; None if there is none.
        standing: How far it came, if it stands while labels arrive; None if it was made once.
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
    class_shares: ClassShares | EstimatedShares | None = None
    set_aside: SetAside | None = None
    standing: Standing | None = None

    def without_policy(self, by_softmax: int) -> "Certificate":
        """Return the certificate with its policy set aside.

        Args:
            by_softmax: The number of points of the evidence that the network's softmax at 1 - alpha admits.
        """
        assert self.policy is not None, "there is a policy to set aside"
        aside = SetAside(self.policy, self.admitted, by_softmax, self.classes)
        return replace(self, policy=None, admitted=0, classes=(), set_aside=aside)

    @property
    def withdrawn(self) -> frozenset[OneClass]:
        """The classes for which an alarm stands, or which labels refute."""
        of_classes = () if self.standing is None else self.standing.classes
        return frozenset(of.about for of in of_classes if of.is_withdrawn)

    @property
    def lost(self) -> frozenset[OneClass]:
        """Those of them of which something was certified."""
        of_classes = () if self.standing is None else self.standing.classes
        return frozenset(of.about for of in of_classes if of.is_withdrawn and of.certified)

    @property
    def is_withdrawn(self) -> bool:
        """Whether nothing is admitted although thresholds are certified."""
        return self.policy is None and bool(self.lost)

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

        Without evidence yet, each is taken for one point.

        Args:
            documents: >= 0.
        """
        return -(-documents * self.points // self.documents) if self.documents else documents


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
