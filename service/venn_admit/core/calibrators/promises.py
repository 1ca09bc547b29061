"""What each kind of method promises of traffic like the calibration data: one sentence each, which all shells show."""

from collections.abc import Collection
from enum import StrEnum

from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE, ClassKind, GroupKind, Kind


def _certified(classes: str) -> str:
    return (
        f"with confidence 1 - eps ({DEFAULT_CONFIDENCE} unless another is asked for) over the calibration labels, at "
        f"least 1 - alpha are right among the admitted of each {classes}"
    )


CERTIFIED_SENTENCE = _certified("class asked for")
CERTIFIED_LOSS_SENTENCE = (
    f"with confidence 1 - eps ({DEFAULT_CONFIDENCE} unless another is asked for) over the calibration labels, the mean "
    "loss is at most alpha among the admitted of each class asked for"
)


class AskedPromise(StrEnum):
    """What a calibration by Venn-Abers is asked to promise, if it is not asked for a certificate of certain kinds."""

    STRONGEST = "strongest"
    POINTWISE = "pointwise"
    AVERAGE = "average"


class Promised(StrEnum):
    """What is promised, in the order of rows: nothing, of sets, all points, each point, on average, classes, loss."""

    NONE = "none"
    SETS = "sets"
    OVERALL = "overall"
    POINTWISE = "pointwise"
    AVERAGE = "average"
    PREDICTED = "predicted"
    TRUE = "true"
    BOTH = "both"
    GROUPS = "groups"
    LOSS = "loss"

    @property
    def sentence(self) -> str:
        """The promise in words, to be put behind a colon."""
        return _SENTENCES[self]


_SENTENCES = {
    Promised.NONE: "nothing",
    Promised.SETS: "the set holds the label with probability 1 - alpha",
    Promised.OVERALL: (
        f"with confidence {DEFAULT_CONFIDENCE} over the calibration labels, at most alpha are wrong among all that is "
        "admitted together"
    ),
    Promised.POINTWISE: (
        "each admitted point lies where the calibration data were at least 1 - alpha right; usually far more are; "
        "there is no guarantee for laws just short of it"
    ),
    Promised.AVERAGE: (
        "over calibrations and batches, on average at most alpha are wrong among the admitted of each predicted class"
    ),
    Promised.PREDICTED: _certified("predicted class"),
    Promised.TRUE: _certified("true class"),
    Promised.BOTH: _certified("predicted and of each true class"),
    Promised.GROUPS: _certified("group asked for, and of each class asked for"),
    Promised.LOSS: CERTIFIED_LOSS_SENTENCE,
}


def promised(
    certify: Collection[Kind] | None, promise: AskedPromise = AskedPromise.POINTWISE, *, by_loss: bool = False
) -> Promised:
    """Return what a calibration promises.

    Args:
        certify: The kinds of classes that its certificate is about; None without one.
        promise: What was asked for; without a certificate, the strongest is the average one.
        by_loss: Whether the certificate is about the mean loss.
    """
    if certify is None:
        return Promised.POINTWISE if promise is AskedPromise.POINTWISE else Promised.AVERAGE
    if by_loss:
        return Promised.LOSS
    if any(isinstance(kind, GroupKind) for kind in certify):
        return Promised.GROUPS
    return Promised.BOTH if set(certify) == set(ClassKind) else Promised(next(iter(certify)))
