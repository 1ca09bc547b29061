"""Decisions on a terminal: one with its evidence, and stored ones beside what they are computed to be again."""

from collections.abc import Mapping, Sequence
from typing import Any

from venn_admit.cli.output import output
from venn_admit.cli.tables.calibration_tables import print_basis
from venn_admit.cli.tables.layer_tables import attributes_line, print_contributions
from venn_admit.cli.tables.rows import facts, table
from venn_admit.core.evaluation.category import Bounds
from venn_admit.core.evidence import PREDICTION, VERDICT, VIEW, Field, Kind, own_fields, scalar_fields
from venn_admit.core.groups import attribute_text
from venn_admit.core.reasons import Reason
from venn_admit.flows.decisions.replay import Replayed
from venn_admit.flows.decisions.score_one import Near
from venn_admit.layer.contributions import own_contributions, without_contributions
from venn_admit.methods.method import AppliedPolicy
from venn_admit.report.decision import category_fact, class_table
from venn_admit.report.evaluation.wording import score_text
from venn_admit.report.wording import counted


def _fact(field: Field, value: Any, class_names: Sequence[str]) -> Any:
    """A field as people read it."""
    if value is None:
        return field.absent
    if isinstance(value, float):
        return score_text(value)
    return class_names[value] if field.kind is Kind.CLASS else value


def print_decision(
    title: str,
    class_names: Sequence[str],
    fields: Mapping[str, Any],
    category_counts: Sequence[int] | None,
    near: Sequence[Near],
    policy: AppliedPolicy | None = None,
    attributes: Mapping[str, Any] | None = None,
    network_logits: Sequence[float] | None = None,
    bounds: Bounds | None = None,
) -> None:
    """Print the tables.

    fields: as in JSON. category_counts: (C,); None if unknown. policy: None if no certificate was asked for.
    attributes: of the exemplar; None if it has none. network_logits: (C,) f of the exemplar; None if it has no
    attributes. bounds: as in `category_shares`.
    """
    attributes = attributes or {}
    carried = None if network_logits is None else own_contributions(attributes, class_names, network_logits)
    shown: list[tuple[str, str]] = []
    for field in scalar_fields((*PREDICTION, *VIEW, *own_fields(fields), *VERDICT)):
        fact = _fact(field, fields[field.name], class_names)
        if fact is not None:
            shown.append((field.words, str(fact)))
    shown += category_fact(fields, category_counts, bounds)
    if fields["reason"] is not None:
        reason = Reason(fields["reason"])
        shown += ("what it means", reason.meaning), ("what to do", reason.remedy)
    if policy is not None:
        shown += ("policy", policy.sentence), ("promised", policy.promise_sentence)
    shown += ((name, attribute_text(value)) for name, value in without_contributions(attributes, carried).items())
    output.print(facts(title, shown))

    if carried is not None:
        print_contributions(carried)
    per_class = class_table(fields, class_names, category_counts, score_text, bounds)
    if per_class is not None:
        heads, rows = per_class
        output.print(table(heads, rows, title="Evidence per class", right=heads[1:]))
    if near:
        _print_nearest(class_names, near)
        if carried is not None:
            output.print(
                "`venn-admit extract inspect MODEL FILE --id ID --train TRAINING` finds the training tokens that are "
                "nearest to those of this exemplar.",
                soft_wrap=True,
            )


def _print_nearest(class_names: Sequence[str], nearest: Sequence[Near]) -> None:
    rows = [
        (
            near.external_id,
            score_text(distance),
            class_names[label],
            class_names[near.network_predicted],
            attributes_line(near.attributes, class_names[near.network_predicted]),
        )
        for near, label, distance in nearest
    ]
    columns = ("id", "distance", "label", "network", "attributes")
    output.print(table(columns, rows, title="Nearest training exemplars", right=("distance",)))


def print_replayed(replayed: Replayed) -> None:
    """Print a decision, what it rests on, and whether it is the same again."""
    row = replayed.row
    title = f"Decision {row.id} on {row.external_id}, calibration {row.calibration_id}"
    print_decision(
        title,
        replayed.classifier.class_names,
        replayed.stored,
        None if replayed.category_counts is None else replayed.category_counts.tolist(),
        replayed.near,
        replayed.policy,
        replayed.attributes,
        replayed.network_logits.tolist(),
        replayed.bounds,
    )
    if replayed.basis is not None:
        print_basis(replayed.basis)
    for line in forgotten_lines(replayed):
        output.print(line)
    if not replayed.differing or replayed.is_rounding:
        every = "every other field" if replayed.not_recomputed else "every field"
        but = f", but for the last digits of: {', '.join(replayed.differing)}" if replayed.differing else ""
        output.print(f"Computed again from its snapshot, the decision is the same in {every}{but}.")
        if replayed.differing:
            output.print("Another kind of processor, or other versions of the libraries, rounds these otherwise.")


def forgotten_lines(replayed: Replayed) -> list[str]:
    """Say how many of the exemplars that a decision saw were forgotten since, and what cannot be computed again."""
    gone = replayed.forgotten
    if not gone.total:
        return []
    parts = [(gone.training, "training exemplar", "of its time"), (gone.points, "point", "of its calibration")]
    said = " and ".join(f"{counted(count, noun)} {of}" for count, noun, of in parts if count)
    fields = ", ".join(replayed.not_recomputed)
    rest = (
        f"These rest on some of them and cannot be computed again: {fields}."
        if fields
        else "None of its fields rests on them."
    )
    return [f"Since this decision, exemplars have been forgotten: {said}. {rest}"]
