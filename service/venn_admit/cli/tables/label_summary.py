"""What `label` says of a file of labels: what was recorded, and what the exemplars are used for from now on."""

from pathlib import Path

from venn_admit.core.types import HELD_OUT_SPLITS, Split
from venn_admit.flows.data.label import LabelResult
from venn_admit.payloads.exemplars import recorded


def lines(file: Path, done: LabelResult) -> list[str]:
    """Return lines for people; what did not happen has no line."""
    said_first = [f"{count:,} {what}" for what, count in recorded(done).items()]
    if done.put_to_use:
        said_first.append(f"{done.put_to_use:,} stored before and used now")
    calibrating = {split: done.joined[split] for split in HELD_OUT_SPLITS if split in done.joined}
    where = ", ".join(f"{split} {count:,}" for split, count in calibrating.items())
    said = [
        (sum(calibrating.values()), "Exemplars that now calibrate: {} (" + where + ")."),
        (done.joined.get(Split.TRAIN, 0), "Exemplars that now train the KNN: {}."),
        (done.left, "Exemplars no longer in use: {}."),
        (done.kept, "Labels kept for evaluation alone, because selected exemplars never calibrate: {}."),
        (
            done.still_calibrating,
            "Exemplars labelled as selected that still calibrate, because they were drawn at random earlier: {}. To "
            "take them out, run `venn-admit label NAME FILE --retract` with an empty label for each, then label "
            "them as selected.",
        ),
        (done.in_other_generations, "Labels recorded for other generations of the classifier: {}."),
    ]
    return [
        f"{file.name}: {done.rows:,} labels, {', '.join(said_first)}.",
        *(text.format(f"{count:,}") for count, text in said if count),
    ]
