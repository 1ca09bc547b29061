"""Why a decision was made, as steps and tables for people; the figures are those that JSON has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from venn_admit.core.calibrators.certified.policies import Bounded
from venn_admit.core.evaluation.category import Bounds
from venn_admit.core.evidence import own_fields, scalar_fields
from venn_admit.core.reasons import Reason
from venn_admit.flows.decisions.listing import AppliedRule
from venn_admit.report.decision import category_fact

NUMBER = "{:.6g}".format
"""How pages write numbers."""


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step on the way to a decision. outcome: `passed`, `stopped`, or `said` if nothing is decided there."""

    title: str
    said: str
    outcome: str


def steps(stored: Mapping[str, Any], class_names: Sequence[str], rule: AppliedRule) -> list[ExplainedStep]:
    """Return the steps of a decision, up to the one that rejects it if there is such a step.

    stored: the fields of a decision. rule: what decides whether its calibration admits the predicted class.
    """
    predicted = class_names[stored["predicted"]]
    reason = None if stored["reason"] is None else Reason(stored["reason"])
    found = [ExplainedStep("Prediction", f"The prediction is {predicted}.", "said")]
    if stored.get("match_count") is not None:
        found.append(ExplainedStep("Neighbours", _near_text(stored["match_count"], stored["distance"]), "said"))
    if "admit_set" in stored:
        found += _of_bands(stored, class_names)
    elif stored.get("score") is not None:
        found.append(
            ExplainedStep("Score", f"s = {stored['score']:.6g} ranks the prediction among those of its cell.", "said")
        )
    if stored["lower"] is not None:
        bounds = f"The probability that it is right lies between {stored['lower']:.3f} and {stored['upper']:.3f}."
        weight = (
            "" if stored["upweight"] is None else f" Up-weight {stored['upweight']:.4g}, for what is unlike the data."
        )
        found.append(ExplainedStep("Probability", bounds + weight, "said"))
    if rule.policy is not None:
        promised = "" if rule.policy.bounded is None else f" It promises: {rule.policy.promise_sentence}."
        found.append(ExplainedStep("Policy", rule.policy.sentence + promised, "said"))
    by_score = rule.policy is not None and rule.policy.bounded is Bounded.SCORE
    why = ""
    if reason in {None, Reason.PROBABILITY_BELOW_THRESHOLD, Reason.SCORE_BELOW_THRESHOLD}:
        why = _compared(stored["score" if by_score else "lower"], rule.least, "score" if by_score else "probability")
    if reason is None:
        return [*found, ExplainedStep("Decision", f"Admitted as {class_names[stored['decision']]}: {why}.", "passed")]
    why = f" {why.capitalize()}." if why else ""
    return [*found, ExplainedStep("Decision", f"Rejected: {reason}. {reason.meaning}{why} {reason.remedy}", "stopped")]


def bounds_of(answer: Mapping[str, Any]) -> Bounds | None:
    """Return the probabilities of each class in an answer, if it has them."""
    category = answer.get("category")
    return None if category is None else (category["lower"], category["upper"])


def facts(
    stored: Mapping[str, Any], category: Sequence[int] | None = None, bounds: Bounds | None = None
) -> list[tuple[str, str]]:
    """Return what the method keeps of the point as a whole, by the words for it.

    category: points of each label in the category; None if that is unknown. bounds: as in `category_shares`.
    """
    kept = [(field.words, stored.get(field.name)) for field in scalar_fields(own_fields(stored))]
    return [
        (words, NUMBER(value) if isinstance(value, float) else f"{value:,}")
        for words, value in kept
        if value is not None
    ] + category_fact(stored, category, bounds)


def _near_text(match_count: int, distance: float) -> str:
    """Say how many neighbours agree, and how far the nearest is.

    >>> _near_text(1, 1.25)
    'The nearest training exemplar agrees with the prediction (q = 1); its distance is d = 1.25.'
    """
    if match_count < 2:
        agree = "agrees" if match_count else "does not agree"
        near = f"The nearest training exemplar {agree} with the prediction (q = {match_count}); its distance"
    else:
        near = f"The {match_count:,} nearest training exemplars all agree with the prediction (q = {match_count:,}); "
        near += "the distance to the nearest"
    return f"{near} is d = {distance:.6g}."


def _compared(value: float, least: Decimal | None, what: str) -> str:
    """Compare a value with the least that admits, with as many digits as it takes to see the difference.

    >>> _compared(0.9071, Decimal("0.9"), "probability")
    '0.907 is at least 0.9'
    >>> _compared(0.899996, Decimal("0.90"), "probability")
    '0.899996 is below 0.9'
    >>> _compared(0.95, None, "probability")
    'no probability admits this class'
    """
    if least is None:
        return f"no {what} admits this class"
    bound = float(least)
    shown = next(
        (text for digits in range(3, 17) if (float(text := f"{value:.{digits}f}") < bound) == (value < bound)),
        repr(value),
    )
    return f"{shown} is {'below' if value < bound else 'at least'} {least.normalize():f}"


def _of_bands(stored: Mapping[str, Any], class_names: Sequence[str]) -> list[ExplainedStep]:
    reason, least = stored["reason"], min(stored["band_size"])
    scarcest = class_names[stored["band_size"].index(least)]
    band = f"The band holds at least {least:,} points of every class, the fewest of {scarcest}."
    if reason == Reason.BAND_BELOW_KAPPA:
        return [ExplainedStep("Band", f"{band} These are fewer than kappa.", "stopped")]
    plausible = [name for name, bit in zip(class_names, stored["admit_set"], strict=True) if bit == "1"]
    named = ", ".join(plausible) or "no class"
    found = [ExplainedStep("Band", band, "passed")]
    if reason == Reason.SET_NOT_SINGLETON:
        return [*found, ExplainedStep("Set", f"{len(plausible)} classes are plausible: {named}.", "stopped")]
    size = stored["category_size"]
    return [
        *found,
        ExplainedStep("Set", f"One class is plausible: {named}.", "passed"),
        *([] if size is None else [ExplainedStep("Category", f"{size:,} calibration points are like it.", "said")]),
    ]
