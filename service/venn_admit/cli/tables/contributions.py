"""Which tokens carry a prediction, as a table whose column of figures adds up."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from venn_admit.cli.output import cell, output
from venn_admit.layer.contributions import Contributions, contributions_in, sum_rows, without_contributions

NAMED_IN_A_LINE = 3


def print_contributions(found: Contributions) -> None:
    """Print the margin of the predicted class over the runner-up as a sum over tokens."""
    title = f"What carries {found.class_name} over {found.runner_up}, the runner-up"
    table = Table(title=cell(title), title_justify="left")
    table.add_column("position", justify="right")
    table.add_column("token")
    table.add_column("contribution", justify="right")
    for row in sum_rows(found):
        if row.is_sum:
            table.add_section()
        table.add_row("" if row.position is None else f"{row.position}", cell(row.name), row.figure)
    output.print(table)


def attributes_line(attributes: Mapping[str, Any], predicted_class: str) -> str:
    """Return attributes in a line, each with its name, the contributions to the network's prediction in short last."""
    carried = contributions_in(attributes, predicted_class)
    short = [] if carried is None else [f"carried by {carried.in_short(NAMED_IN_A_LINE)}"]
    return ", ".join(
        [*(f"{name} {value}" for name, value in without_contributions(attributes, carried).items()), *short]
    )
