"""What several numbers of neighbours make of split knn, as a table."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from venn_admit.cli.tables.rows import table
from venn_admit.core.approximation.neighbour_counts import TriedCount


def tried_table(tried: Sequence[TriedCount]) -> RenderableType:
    """Return a row for each K."""
    rows = [
        (
            one.neighbour_count,
            f"{one.discrepancies:,} of {one.points:,}",
            f"{one.full_matches:.1%}",
            f"{one.separation:.3f}",
        )
        for one in tried
    ]
    columns = ("K", "differ from the network", "q = K", "separation")
    return table(columns, rows, title="What each K makes of split knn", right=columns)


def chosen_line(chosen: TriedCount) -> str:
    """Return which K was taken, and what the columns mean."""
    return (
        f"K is {chosen.neighbour_count} from now on: the smallest whose separation is about the largest, of those that "
        "differ from the network about as rarely as any. separation: the share of pairs of a right and a wrong "
        "prediction in which the right one has the larger q; .5 is chance."
    )


def tried_payload(tried: Sequence[TriedCount], chosen: TriedCount) -> dict[str, Any]:
    """The same for programs."""
    return {"k": chosen.neighbour_count, "tried": [asdict(one) for one in tried]}
