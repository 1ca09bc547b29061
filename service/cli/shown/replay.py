"""`venn-admit replay`: what a decision rests on, and whether it is the same when computed again."""

from venn_admit.service.cli.output import output
from venn_admit.service.cli.shown.cell_basis import print_basis
from venn_admit.service.cli.shown.decision_tables import print_decision
from venn_admit.service.flows.decisions.replay import Replayed
from venn_admit.service.payloads.decisions import near_replayed


def print_replayed(replayed: Replayed) -> None:
    """Print a decision, what it rests on, and whether it is the same again."""
    title = f"Decision {replayed.decision_id} on {replayed.external_id}, calibration {replayed.calibration_id}"
    print_decision(
        title,
        replayed.classifier.class_names,
        replayed.stored,
        replayed.category_counts,
        near_replayed(replayed),
        replayed.policy,
    )
    if replayed.basis is not None:
        print_basis(replayed.basis)
    if not replayed.differing:
        output.print("Computed again from its snapshot, the decision is the same in every field.")
