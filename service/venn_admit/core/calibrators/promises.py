"""What each kind of method promises of traffic like the calibration data: one sentence each, which all shells show."""

from collections.abc import Collection
from decimal import Decimal
from enum import StrEnum

from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, DocumentTest, GroupKind, Kind

_ASKED_FOR = "class asked for"


def _certified(classes: str) -> str:
    return (
        "with {of_test}confidence {confidence} over the calibration labels, at least {right} are right among the "
        f"admitted of each {classes}"
    )


_LOSS = (
    "with {of_test}confidence {confidence} over the calibration labels, the mean loss is at most {alpha} among the "
    "admitted of each {classes}"
)
_IN_SHARES = (
    ", in traffic that has the classes in the shares declared or estimated and points of each class like those of the "
    "calibration data"
)


def _of_any(template: str) -> str:
    """Return the sentence of any calibration of a kind, whose level and confidence are not known."""
    confidence = f"1 - eps ({DEFAULT_CONFIDENCE} unless another is asked for)"
    return template.format(of_test="", confidence=confidence, right="1 - alpha", alpha="alpha", classes=_ASKED_FOR)


CERTIFIED_SENTENCE = _of_any(_certified(_ASKED_FOR))
CERTIFIED_LOSS_SENTENCE = _of_any(_LOSS)


class AskedPromise(StrEnum):
    """What a calibration by Venn-Abers is asked to promise, if it is not asked for a certificate of certain kinds."""

    STRONGEST = "strongest"
    POINTWISE = "pointwise"
    AVERAGE = "average"


class Promised(StrEnum):
    """What is promised, in the order of rows, from nothing to classes, losses, and both in other class shares."""

    NONE = "none"
    SETS = "sets"
    OVERALL = "overall"
    POINTWISE = "pointwise"
    AVERAGE = "average"
    PREDICTED = "predicted"
    STANDING = "standing"
    TRUE = "true"
    BOTH = "both"
    GROUPS = "groups"
    LOSS = "loss"
    SHARES = "shares"
    LOSS_IN_SHARES = "loss in shares"

    @property
    def sentence(self) -> str:
        """The promise of any calibration of this kind in words, to be put behind a colon."""
        return _of_any(_TEMPLATES[self])

    @property
    def where(self) -> str:
        """What to say of traffic between "promised" and the sentence, which names it itself if it is other traffic."""
        return "" if self.is_for_other_shares else ", for traffic like the calibration data"

    @property
    def is_for_other_shares(self) -> bool:
        """Whether it is for traffic with class shares of its own."""
        return self in (Promised.SHARES, Promised.LOSS_IN_SHARES)

    def stated(
        self,
        alpha: Decimal,
        confidence: Decimal | None,
        test: DocumentTest | None = None,
        certify: Collection[Kind] | None = None,
    ) -> str:
        """Return the promise of one calibration in words, to be put behind a colon.

        Args:
            alpha: Its error level.
            confidence: That of its certificate; None without one.
            test: That of its certificate.
            certify: The kinds of classes that were asked for; None if they were not named.

        Examples:
            >>> Promised.SETS.stated(Decimal("0.1"), None)
            'the set holds the label with probability 0.9 or more'
            >>> said = Promised.STANDING.stated(Decimal("0.1"), Decimal("0.95"), certify=tuple(ClassKind))
            >>> said.partition("whenever one looks, ")[2]
            'at least 0.9 are right among the admitted of each predicted and of each true class'
        """
        of_test = "" if test is None else test.of_confidence
        classes = _CLASSES.get(frozenset(certify or ()), _ASKED_FOR)
        return _TEMPLATES[self].format(
            of_test=of_test, confidence=confidence, right=1 - alpha, alpha=alpha, classes=classes
        )


_BOTH = "predicted and of each true class"
_CLASSES: dict[frozenset[Kind], str] = {
    **{frozenset({kind}): f"{kind} class" for kind in ClassKind},
    frozenset(ClassKind): _BOTH,
}
_TEMPLATES = {
    Promised.NONE: "nothing",
    Promised.SETS: "the set holds the label with probability {right} or more",
    Promised.OVERALL: (
        f"with confidence {DEFAULT_CONFIDENCE} over the calibration labels, at most {{alpha}} are wrong among all that "
        "is admitted together"
    ),
    Promised.POINTWISE: (
        "each admitted point lies where the calibration data were at least {right} right; usually far more are; "
        "there is no guarantee for laws just short of it"
    ),
    Promised.AVERAGE: (
        "over calibrations and batches, on average at most {alpha} are wrong among the admitted of each predicted class"
    ),
    Promised.PREDICTED: _certified("predicted class"),
    Promised.STANDING: (
        "with confidence {confidence}, whenever one looks, at least {right} are right among the admitted of each "
        "{classes}"
    ),
    Promised.TRUE: _certified("true class"),
    Promised.BOTH: _certified(_BOTH),
    Promised.GROUPS: _certified("group asked for, and of each class asked for"),
    Promised.LOSS: _LOSS,
    Promised.SHARES: f"{_certified('{classes}')}{_IN_SHARES}",
    Promised.LOSS_IN_SHARES: f"{_LOSS}{_IN_SHARES}",
}


def promised(
    certify: Collection[Kind] | None,
    promise: AskedPromise = AskedPromise.POINTWISE,
    *,
    by_loss: bool = False,
    standing: bool = False,
    by_shares: bool = False,
) -> Promised:
    """Return what a calibration promises.

    Args:
        certify: The kinds of classes that its certificate is about; None without one.
        promise: What was asked for; without a certificate, the strongest is the average one.
        by_loss: Whether the certificate is about the mean loss.
        standing: Whether it stands while labels arrive.
        by_shares: Whether it is for class shares of traffic, declared or estimated.
    """
    if certify is None:
        return Promised.POINTWISE if promise is AskedPromise.POINTWISE else Promised.AVERAGE
    if by_shares:
        return Promised.LOSS_IN_SHARES if by_loss else Promised.SHARES
    if by_loss or standing:
        return Promised.LOSS if by_loss else Promised.STANDING
    if any(isinstance(kind, GroupKind) for kind in certify):
        return Promised.GROUPS
    return Promised.BOTH if set(certify) == set(ClassKind) else Promised(next(iter(certify)))
