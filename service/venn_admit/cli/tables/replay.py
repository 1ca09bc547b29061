"""`venn-admit replay`: what a decision rests on, and whether it is the same when computed again."""

from venn_admit.cli.output import output
from venn_admit.cli.tables.cell_basis import print_basis
from venn_admit.cli.tables.decision_tables import print_decision
from venn_admit.flows.decisions.replay import Replayed
from venn_admit.payloads.decisions import near_replayed


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
        replayed.attributes,
        replayed.network_logits.tolist(),
    )
    if replayed.basis is not None:
        print_basis(replayed.basis)
    for line in forgotten_lines(replayed):
        output.print(line)
    if not replayed.differing:
        every = "every other field" if replayed.not_recomputed else "every field"
        output.print(f"Computed again from its snapshot, the decision is the same in {every}.")


def forgotten_lines(replayed: Replayed) -> list[str]:
    """Say how many of the exemplars that a decision saw were forgotten since, and what cannot be computed again."""
    gone = replayed.forgotten
    if not gone.total:
        return []
    parts = [(gone.training, "training exemplars of its time"), (gone.points, "points of its calibration")]
    said = " and ".join(f"{count:,} {what}" for count, what in parts if count)
    fields = ", ".join(replayed.not_recomputed)
    rest = (
        f"These rest on some of them and cannot be computed again: {fields}."
        if fields
        else "None of its fields rests on them."
    )
    return [f"Since this decision, {said} have been forgotten. {rest}"]
