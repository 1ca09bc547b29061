"""`venn-admit extract inspect`: what carries a prediction, and the training tokens that are nearest."""

from collections.abc import Sequence

from rich.table import Table

from venn_admit.cli.output import cell, output
from venn_admit.cli.tables.contributions import print_contributions
from venn_admit.flows.extraction.inspect import Inspected, NearToken


def print_inspected(class_names: Sequence[str], found: Inspected) -> None:
    """Print the tables."""
    facts = Table(title=cell(found.external_id), title_justify="left", box=None, show_header=False)
    facts.add_row("predicted class", cell(found.contributions.class_name))
    facts.add_row("label", cell("none" if found.label is None else found.label))
    logits = ", ".join(f"{name} {logit:.3f}" for name, logit in zip(class_names, found.logits, strict=True))
    facts.add_row("logits", cell(logits))
    facts.add_row("tokens", f"{found.token_count:,}")
    output.print(facts)
    print_contributions(found.contributions)
    if not any(token.near for token in found.tokens):
        return
    table = Table(title="Nearest training tokens", title_justify="left")
    for column in ("token", "distance", "training token", "in", "label"):
        table.add_column(column, justify="right" if column == "distance" else "left")
    for token in found.tokens:
        for place, near in enumerate(token.near):
            name = "" if place else token.token or f"at {token.position}"
            cells = (name, f"{near.distance:.4g}", _in_context(near), f"{near.document_id}:{near.position}", near.label)
            table.add_row(*map(cell, cells))
        table.add_section()
    output.print(table)


def _in_context(near: NearToken) -> str:
    return "at that position" if near.token is None else " ".join((*near.before, f"[{near.token}]", *near.after))
