"""What the probabilities of a decision by Venn-Abers rest on: its score, its cell, and the steps around the score."""

from math import isfinite

from rich.table import Table

from venn_admit.cli.output import cell, output
from venn_admit.methods.method import CellBasis, StepBounds


def print_basis(basis: CellBasis) -> None:
    """Print the cell and the features of the score, then the steps."""
    facts = Table(title="What it rests on", title_justify="left", box=None, show_header=False)
    facts.add_row("score", cell(basis.score_kind))
    for name, value in basis.features.items():
        facts.add_row(name, cell(f"{value:.6g}"))
    facts.add_row("points of mc in the cell", cell(f"{basis.cell_size:,}"))
    facts.add_row("of these right", cell(f"{basis.cell_right:,}"))
    facts.add_row("threshold", cell("never" if basis.threshold is None else f"{basis.threshold:.6g}"))
    output.print(facts)

    steps = Table(title="Plain probabilities by score", title_justify="left")
    for column in ("scores", "lower", "upper"):
        steps.add_column(column, justify="left" if column == "scores" else "right")
    if basis.before is not None:
        _add_step(steps, f"below {basis.step_from:.6g}", basis.before)
    _add_step(steps, f"{_own_scores(basis)} (this one)", basis.own)
    if basis.after is not None:
        _add_step(steps, f"from {basis.step_below:.6g}", basis.after)
    output.print(steps)


def _own_scores(basis: CellBasis) -> str:
    first = f"from {basis.step_from:.6g}" if isfinite(basis.step_from) else ""
    last = f"below {basis.step_below:.6g}" if isfinite(basis.step_below) else ""
    return " ".join(part for part in (first, last) if part) or "any"


def _add_step(steps: Table, scores: str, bounds: StepBounds) -> None:
    steps.add_row(scores, f"{bounds.lower:.6g}", f"{bounds.upper:.6g}")
