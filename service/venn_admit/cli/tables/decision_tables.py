"""Decisions on a terminal: one with its evidence, and stored ones beside what they are computed to be again."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from venn_admit.cli.output import cell, output
from venn_admit.cli.tables.calibration_tables import print_basis
from venn_admit.cli.tables.layer_tables import attributes_line, print_contributions
from venn_admit.core.calibrators.certified.policies import Bounded
from venn_admit.core.evidence import PREDICTION, VERDICT, VIEW, Field, Kind, own_fields, scalar_fields
from venn_admit.core.reasons import Reason
from venn_admit.flows.decisions.replay import Replayed
from venn_admit.flows.decisions.score_one import Near
from venn_admit.layer.contributions import own_contributions, without_contributions
from venn_admit.methods.method import AppliedPolicy
from venn_admit.report.wording import class_table


def _number(value: float) -> str:
    """A probability, distance or score in four digits; --json has all of them."""
    return f"{value:.4g}"


def _fact(field: Field, value: Any, class_names: Sequence[str]) -> Any:
    """A field as people read it."""
    if value is None:
        return field.absent
    if isinstance(value, float):
        return _number(value)
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
) -> None:
    """Print the tables.

    fields: as in JSON. category_counts: (C,); None if unknown. policy: None if no certificate was asked for.
    attributes: of the exemplar; None if it has none. network_logits: (C,) f of the exemplar; None if it has no
    attributes.
    """
    attributes = attributes or {}
    carried = None if network_logits is None else own_contributions(attributes, class_names, network_logits)
    facts = Table(title=cell(title), title_justify="left", box=None, show_header=False)
    for field in scalar_fields((*PREDICTION, *VIEW, *own_fields(fields), *VERDICT)):
        fact = _fact(field, fields[field.name], class_names)
        if fact is not None:
            facts.add_row(field.words, cell(fact))
    if fields["reason"] is not None:
        reason = Reason(fields["reason"])
        facts.add_row("what it means", reason.meaning)
        facts.add_row("what to do", reason.remedy)
    if policy is not None:
        facts.add_row("policy", cell(_policy_text(policy)))
    for name, value in without_contributions(attributes, carried).items():
        facts.add_row(cell(name), cell(value))
    output.print(facts)

    if carried is not None:
        print_contributions(carried)
    _print_classes(class_table(fields, class_names, category_counts, _number))
    if near:
        _print_nearest(class_names, near)
        if carried is not None:
            output.print(
                "`venn-admit extract inspect MODEL FILE --id ID --train TRAINING` finds the training tokens that are "
                "nearest to those of this exemplar.",
                soft_wrap=True,
            )


def _print_nearest(class_names: Sequence[str], near: Sequence[Near]) -> None:
    nearest = Table(title="Nearest training exemplars", title_justify="left")
    for column in ("id", "distance", "label", "network", "attributes"):
        nearest.add_column(column)
    for neighbour, label, distance in near:
        predicted = class_names[neighbour.network_predicted]
        cells = (neighbour.external_id, _number(distance), class_names[label], predicted)
        nearest.add_row(*map(cell, cells), cell(attributes_line(neighbour.attributes, predicted)))
    output.print(nearest)


def _policy_text(policy: AppliedPolicy) -> str:
    if not policy.is_certified:
        return "none is certified"
    if policy.threshold is None:
        return "certified; this class is never admitted"
    what = "score" if policy.bounded is Bounded.SCORE else "lower probability"
    return f"certified; admits this class from a {what} of {_number(policy.threshold)}"


def _print_classes(table: tuple[list[str], list[tuple[str, ...]]] | None) -> None:
    """Print what one method has of each class."""
    if table is None:
        return
    heads, rows = table
    evidence = Table(title="Evidence per class", title_justify="left")
    for head in heads:
        evidence.add_column(head, justify="left" if head == "class" else "right")
    for name, *cells in rows:
        evidence.add_row(cell(name), *cells)
    output.print(evidence)


def print_replayed(replayed: Replayed) -> None:
    """Print a decision, what it rests on, and whether it is the same again."""
    title = f"Decision {replayed.decision_id} on {replayed.external_id}, calibration {replayed.calibration_id}"
    print_decision(
        title,
        replayed.classifier.class_names,
        replayed.stored,
        None if replayed.category_counts is None else replayed.category_counts.tolist(),
        replayed.near,
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
