"""`venn-admit replay`: what a decision rests on, and whether it is the same when computed again."""

from typing import Any

from venn_admit.service.cli.output import output
from venn_admit.service.cli.shown.cell_basis import basis_payload, print_basis
from venn_admit.service.cli.shown.decision_tables import (
    Near,
    named_classes,
    neighbour_list,
    policy_payload,
    print_decision,
)
from venn_admit.service.flows.decisions.replay import Replayed


def replay_payload(replayed: Replayed) -> dict[str, Any]:
    """What was replayed as JSON has it."""
    class_names = replayed.classifier.class_names
    return {
        "decision_id": replayed.decision_id,
        "external_id": replayed.external_id,
        "class_names": list(class_names),
        "label": replayed.label,
        "label_class": None if replayed.label is None else class_names[replayed.label],
        **named_classes(replayed.stored, class_names),
        "calibration": replayed.calibration_id,
        "stored": replayed.stored,
        "computed": replayed.computed,
        "differing": list(replayed.differing),
        "category_counts": replayed.category_counts.tolist(),
        "policy": policy_payload(replayed.policy),
        "basis": basis_payload(replayed.basis),
        "neighbours": neighbour_list(_near(replayed), class_names),
    }


def _near(replayed: Replayed) -> list[Near]:
    """Each neighbour with its label of the time and its distance."""
    labels, distances = replayed.neighbour_labels.tolist(), replayed.distances.tolist()
    return list(zip(replayed.neighbours, labels, distances, strict=True))


def print_replayed(replayed: Replayed) -> None:
    """Print a decision, what it rests on, and whether it is the same again."""
    title = f"Decision {replayed.decision_id} on {replayed.external_id}, calibration {replayed.calibration_id}"
    print_decision(
        title,
        replayed.classifier.class_names,
        replayed.stored,
        replayed.category_counts,
        _near(replayed),
        replayed.policy,
    )
    if replayed.basis is not None:
        print_basis(replayed.basis)
    if not replayed.differing:
        output.print("Computed again from its snapshot, the decision is the same in every field.")
