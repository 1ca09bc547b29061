"""Why a decision was made, as steps and tables for people; the figures are those of the payloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from venn_admit.service.report.evaluation.wording import share_text


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step on the way to a decision. outcome: `passed`, `stopped`, or `said` if nothing is decided there."""

    title: str
    said: str
    outcome: str


def steps(
    stored: Mapping[str, Any], class_names: Sequence[str], policy: Mapping[str, Any] | None
) -> list[ExplainedStep]:
    """Return the steps of a decision, up to the one that rejects it if there is such a step.

    stored: the fields of a decision. policy: as in the payload; None if no certificate was asked for.
    """
    predicted, reason = class_names[stored["predicted"]], stored["reason"]
    found = [ExplainedStep("Prediction", f"The prediction is {predicted}.", "said")]
    if stored.get("match_count") is not None:
        near = f"q = {stored['match_count']}: so many of the nearest training exemplars agree, one after another."
        found.append(ExplainedStep("Neighbours", f"{near} d = {stored['distance']:.6g} to the nearest.", "said"))
    if "admit_set" in stored:
        found += _of_bands(stored, class_names)
    elif stored.get("score") is not None:
        found.append(
            ExplainedStep("Score", f"s = {stored['score']:.6g} ranks the prediction among those of its cell.", "said")
        )
    if stored["lower"] is not None:
        bounds = f"Probability that it is right: {share_text(stored['lower'])} to {share_text(stored['upper'])}."
        weight = (
            "" if stored["upweight"] is None else f" Up-weight {stored['upweight']:.4g}, for what is unlike the data."
        )
        found.append(ExplainedStep("Probability", bounds + weight, "said"))
    if policy is not None:
        found.append(ExplainedStep("Policy", _policy_text(policy), "said"))
    if reason is None:
        return [*found, ExplainedStep("Decision", f"Admitted as {class_names[stored['decision']]}.", "passed")]
    return [*found, ExplainedStep("Decision", f"Rejected: {reason}.", "stopped")]


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
