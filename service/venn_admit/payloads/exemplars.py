"""What became of exemplars and labels that came in, as JSON has it."""

from typing import Any

from venn_admit.flows.data.ingest import Ingested
from venn_admit.flows.data.label import LabelResult


def ingested_payload(done: Ingested) -> dict[str, Any]:
    return {
        "rows": done.rows,
        "new": done.new,
        "already_stored": done.rows - done.new,
        "new_per_split": {str(split): count for split, count in done.new_per_split.items()},
        "labels_carried": done.labels_carried,
        "training_waiting": done.waiting,
        "recalibrations_due": done.recalibrations,
    }


def labelled_payload(done: LabelResult) -> dict[str, Any]:
    return {
        "rows": done.rows,
        **recorded(done),
        "put_to_use": done.put_to_use,
        "joined": {str(split): count for split, count in done.joined.items()},
        "left": done.left,
        "kept_for_evaluation": done.kept,
        "selected_and_calibrating": done.still_calibrating,
        "in_other_generations": done.in_other_generations,
        "recalibrations_due": done.recalibrations,
    }


def recorded(done: LabelResult) -> dict[str, int]:
    """How many labels were recorded, and how many were known."""
    return {
        "new": done.new,
        "corrected": done.corrected,
        "retracted": done.retracted,
        "unchanged": done.unchanged,
    }
