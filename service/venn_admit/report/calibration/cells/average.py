"""What is shown of the average promise: the threshold of each predicted class, and the labels that it rests on."""

from collections.abc import Sequence
from typing import Any

from venn_admit.core.calibrators.average.policy import AveragePolicy, to_document
from venn_admit.core.calibrators.promises import Promised
from venn_admit.report.calibration.sections import Section, TextTable, ratio_text
from venn_admit.report.evaluation.wording import admits_from_text
from venn_admit.report.standing import MOST_CLASSES
from venn_admit.report.wording import counted, listed_text, share_text


def average_section(found: AveragePolicy, class_names: Sequence[str]) -> Section:
    """Return what is promised, and what each threshold rests on."""
    rows = tuple(
        (
            class_names[number],
            f"{one.labels:,}",
            f"{one.wrong:,}",
            admits_from_text(one.threshold),
            f"{one.admitted_wrong:,}",
            ratio_text(one.admitted, one.batch),
        )
        for number, one in _shown(found)
    )
    columns = ("predicted as", "labels", "wrong", "admits\nfrom", "admitted\nand wrong", "admitted\nof batch")
    return Section("Average promise", (outcome_text(found), TextTable(columns, rows)), tuple(_notes(found)))


def outcome_text(found: AveragePolicy) -> str:
    """Return the promise with its figures, and what the batch is."""
    recent = "alone, as there is no traffic yet"
    if found.traffic:
        recent = f"and {counted(found.traffic, 'point')} of recent traffic"
    return (
        f"Promised with alpha {found.alpha}: {Promised.AVERAGE.sentence}. The batch of a point is itself with the "
        f"{found.points:,} calibration points of mc and vp {recent}; {share_text(found.share)} of the calibration "
        "points are admitted."
    )


def never_text(found: AveragePolicy, class_names: Sequence[str]) -> str:
    """Return which predicted classes are never admitted, and what they lack; empty if all are admitted."""
    never = [(class_names[number], one) for number, one in enumerate(found.classes) if one.threshold is None]
    if not never:
        return ""
    few = [f"{name} ({one.labels})" for name, one in never if one.labels < found.labels_needed]
    enough = [name for name, one in never if one.labels >= found.labels_needed]
    said = []
    if few:
        said.append(
            f"Never admitted for lack of labels: {listed_text(few)}; it takes at least "
            f"{found.labels_needed} labels of a predicted class at alpha {found.alpha}."
        )
    if enough:
        said.append(
            f"Never admitted, as too many are wrong at every score: {listed_text(enough)}; a larger alpha "
            "or a better network would admit some, more labels may."
        )
    return " ".join(said)


def average_payload(found: AveragePolicy, class_names: Sequence[str]) -> dict[str, Any]:
    """Return the policy as JSON has it."""
    return {
        **to_document(found),
        "class_names": list(class_names),
        "thresholds": list(found.policy.thresholds),
        "labels_needed": found.labels_needed,
    }


def _shown(found: AveragePolicy) -> list[tuple[int, Any]]:
    """All classes, or those of which the least is admitted."""
    by_share = sorted(enumerate(found.classes), key=lambda item: item[1].admitted / max(1, item[1].batch))
    return sorted(by_share[:MOST_CLASSES], key=lambda item: item[0])


def _notes(found: AveragePolicy) -> list[str]:
    notes = [
        "labels: the calibration points of the predicted class, and how many of them are wrong; admits from: the score "
        "from which (1 + admitted and wrong) / (1 + labels) is at most alpha times the share of the batch. The promise "
        "is on average over calibrations: this calibration may have more wrong, and there is no confidence."
    ]
    if found.documents < found.points:
        notes.append(
            f"The {found.points:,} points stand in {found.documents:,} documents, of which one point of each predicted "
            "class counts: the promise is about documents drawn at random, and a point of each."
        )
    if len(found.classes) > MOST_CLASSES:
        notes.append(f"{MOST_CLASSES} of {len(found.classes)} classes shown: those of which the least is admitted.")
    return notes
