"""Why a decision was made, as steps and tables for people; the figures are those of the payloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from venn_admit.core.types import Reason


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step on the way to a decision. outcome: `passed`, `stopped`, or `said` if nothing is decided there."""

    title: str
    said: str
    outcome: str


def steps(
    stored: Mapping[str, Any],
    class_names: Sequence[str],
    policy: Mapping[str, Any] | None,
    *,
    least: Decimal | None,
) -> list[ExplainedStep]:
    """Return the steps of a decision, up to the one that rejects it if there is such a step.

    stored: the fields of a decision. policy: as in the payload; None if no certificate was asked for. least: the least
    lower probability with which the predicted class is admitted; None if it never is.
    """
    predicted, reason = class_names[stored["predicted"]], stored["reason"]
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
    if policy is not None:
        found.append(ExplainedStep("Policy", _policy_text(policy), "said"))
    if reason is None:
        said = f"Admitted as {class_names[stored['decision']]}: {_compared(stored['lower'], least)}."
        return [*found, ExplainedStep("Decision", said, "passed")]
    is_compared = reason == Reason.PROBABILITY_BELOW_THRESHOLD
    why = f" {_compared(stored['lower'], least).capitalize()}." if is_compared else ""
    return [*found, ExplainedStep("Decision", f"Rejected: {reason}.{why}", "stopped")]


def evidence(
    stored: Mapping[str, Any], class_names: Sequence[str], category: Sequence[int] | None
) -> list[tuple[str, ...]] | None:
    """Return a row per class: name, in the set, points in the band, threshold, KNN's logit, points in the category.

    None if the method has no bands. category: points of each label; None if it is not known, and has no column then.
    """
    if stored.get("admit_set") is None:
        return None
    columns = (stored["admit_set"], stored["band_size"], stored["threshold"], stored["logits"])
    rows: list[tuple[str, ...]] = [
        (name, "yes" if bit == "1" else "no", f"{size:,}", f"{threshold:.6g}", f"{logit:.6g}")
        for name, bit, size, threshold, logit in zip(class_names, *columns, strict=True)
    ]
    if category is None:
        return rows
    return [(*row, f"{count:,}") for row, count in zip(rows, category, strict=True)]


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


def _compared(lower: float, least: Decimal | None) -> str:
    """Compare a lower probability with the least that admits, with as many digits as it takes to see the difference.

    >>> _compared(0.9071, Decimal("0.9"))
    '0.907 is at least 0.9'
    >>> _compared(0.899996, Decimal("0.90"))
    '0.899996 is below 0.9'
    >>> _compared(0.95, None)
    'no probability admits this class'
    """
    if least is None:
        return "no probability admits this class"
    bound = float(least)
    shown = next(
        (text for digits in range(3, 17) if (float(text := f"{lower:.{digits}f}") < bound) == (lower < bound)),
        repr(lower),
    )
    return f"{shown} is {'below' if lower < bound else 'at least'} {least.normalize():f}"


def _of_bands(stored: Mapping[str, Any], class_names: Sequence[str]) -> list[ExplainedStep]:
    reason, least = stored["reason"], min(stored["band_size"])
    scarcest = class_names[stored["band_size"].index(least)]
    band = f"The band holds at least {least:,} points of every class, the fewest of {scarcest}."
    if reason == "band below kappa":
        return [ExplainedStep("Band", f"{band} These are fewer than kappa.", "stopped")]
    plausible = [name for name, bit in zip(class_names, stored["admit_set"], strict=True) if bit == "1"]
    named = ", ".join(plausible) or "no class"
    found = [ExplainedStep("Band", band, "passed")]
    if reason == "set not a singleton":
        return [*found, ExplainedStep("Set", f"{len(plausible)} classes are plausible: {named}.", "stopped")]
    size = stored["category_size"]
    return [
        *found,
        ExplainedStep("Set", f"One class is plausible: {named}.", "passed"),
        *([] if size is None else [ExplainedStep("Category", f"{size:,} calibration points are like it.", "said")]),
    ]


def _policy_text(policy: Mapping[str, Any]) -> str:
    if not policy["is_certified"]:
        return "No policy is certified."
    if policy["threshold"] is None:
        return "The certified policy never admits this class."
    return f"The certified policy admits this class from a lower probability of {policy['threshold']:.6g}."
