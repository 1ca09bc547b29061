"""What was forgotten or deleted, as JSON has it: in numbers, and without the ids."""

from typing import Any

from venn_admit.flows.removal.delete import Deleted
from venn_admit.flows.removal.forget import Forgotten


def forgotten_payload(done: Forgotten) -> dict[str, Any]:
    return {
        "classifier": done.classifier.shared_name,
        "is_done": done.is_done,
        "ids": done.ids,
        "exemplars": done.exemplars,
        "forgotten_before": done.already,
        "unknown": done.unknown,
        "rows": done.rows,
        "calibrations_renewed": done.renewed,
        "recalibrations_due": done.recalibrations,
        "jobs": list(done.jobs),
    }


def deleted_payload(done: Deleted) -> dict[str, Any]:
    return {
        "classifier": done.name,
        "is_done": done.is_done,
        "generations": list(done.generations),
        "rows": done.rows,
    }
