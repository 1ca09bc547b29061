"""Why predictions are rejected: each reason once, with its code in arrays and its words for people."""

from enum import StrEnum
from typing import Self

ADMITTED = -1
"""Stands in arrays of codes for a prediction that is admitted, and so has no reason."""


class Reason(StrEnum):
    """Why a prediction was rejected: the first reason that applies, in this order.

    The text is what tables, files and answers hold.

    Attributes:
        code: Stands for the reason in arrays; it never changes, whatever reasons are added.
        meaning: What it says of the prediction, for people.
        remedy: What can be done about it, for people.
    """

    code: int
    meaning: str
    remedy: str

    def __new__(cls, text: str, code: int = 0, meaning: str = "", remedy: str = "") -> Self:
        """Make a member that equals its text; with the text alone, `Reason(text)` finds it."""
        member = str.__new__(cls, text)
        member._value_ = text
        member.code, member.meaning, member.remedy = code, meaning, remedy
        return member

    BAND_BELOW_KAPPA = (
        "band below kappa",
        1,
        "The band holds fewer than kappa calibration points of some class, too few to tell.",
        "Label more data like it, or calibrate with a smaller kappa or a larger delta.",
    )
    SET_NOT_SINGLETON = (
        "set not a singleton",
        2,
        "Another class cannot be excluded at this alpha.",
        "Let a person decide; with more data like it, or a larger alpha, sets are smaller.",
    )
    POLICY_NOT_CERTIFIED = (
        "policy not certified",
        3,
        "A certificate was asked for, and no policy passed or what passed is withdrawn, so nothing is admitted.",
        "Label more data and calibrate again, or ask for less confidence.",
    )
    CERTIFICATE_WITHDRAWN = (
        "certificate withdrawn",
        8,
        "What was certified of its class is withdrawn: labels refute it, or an alarm of the promise stands for it.",
        "Let a person decide; label recent traffic, and begin the next chain.",
    )
    CLASS_NOT_CERTIFIED = (
        "class not certified",
        9,
        "No score of its class was shown to be right often enough, so nothing of the class is admitted.",
        "Let a person decide; label more data of this class and calibrate again.",
    )
    GROUP_NOT_CERTIFIED = (
        "group not certified",
        7,
        "The certificate is for groups, and nothing is promised for this one, or it is not known.",
        "Give the attribute, and label more data of this group.",
    )
    PROBABILITY_BELOW_THRESHOLD = (
        "probability below threshold",
        4,
        "The lower probability that the prediction is right is below the least that admits its class.",
        "Let a person decide; a lower threshold admits more, and more of it is wrong.",
    )
    SCORE_BELOW_THRESHOLD = (
        "score below threshold",
        6,
        "The score is below the least for which enough predictions of its class were shown to be right.",
        "Let a person decide; with more labels, certified thresholds are lower.",
    )
    MATCH_COUNT_BELOW_K = (
        "q below K",
        5,
        "Not all of the K nearest training exemplars agree with the prediction, which was required.",
        "Let a person decide, or decide without requiring q = K.",
    )

    @classmethod
    def of_code(cls, code: int) -> "Reason | None":
        """Return the reason of a code; None for `ADMITTED`.

        >>> Reason.of_code(5), Reason.of_code(ADMITTED)
        (<Reason.MATCH_COUNT_BELOW_K: 'q below K'>, None)
        """
        return None if code == ADMITTED else next(reason for reason in cls if reason.code == code)
