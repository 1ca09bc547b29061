"""The queue for reviewers on a terminal."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from rich.console import RenderableType

from venn_admit.cli.output import shown
from venn_admit.cli.tables.rows import cell, table
from venn_admit.core.groups import attribute_text
from venn_admit.report.wording import counted
from venn_admit_client.records.reviews import Claims, Disagreement, Reviewed, ReviewPoint, ReviewQueue

_MOST_CHARACTERS = 2000


def claims_lines(name: str, found: Claims, *, again: bool) -> list[RenderableType]:
    """Return the points that a reviewer holds, one below the other; again: second opinions were wanted."""
    if not found.points:
        return [f"No point waits for {'a second opinion' if again else 'a reviewer'}."]
    lines: list[RenderableType] = [line for point in found.points for line in _point_lines(point)]
    label = f"venn-admit review label {quote(shown(name))} ID=CLASS --reviewer {quote(shown(found.reviewer))}"
    return [*lines, f"{found.waiting:,} more wait. `{label}` records a label."]


def _point_lines(point: ReviewPoint) -> list[RenderableType]:
    due = "" if point.due is None else f", due {point.due}"
    rows: list[tuple[str, str]] = [("why", point.why)]
    if point.document is not None:
        rows.append(("document", point.document))
    rows += _attributes(point.attributes)
    if point.possible is not None:
        rows.append(("may be", ", ".join(point.possible)))
    for one in point.precedents:
        said = "; ".join(f"{name}: {value}" for name, value in _attributes(one.attributes))
        rows.append((f"near, {one.label}", f"{one.id}{': ' if said else ''}{said}"))
    title = f"{shown(point.id)}{due}, yours until {cell(point.lease_until)}"
    return [table(("", "what is known"), rows, title=title)]


def _attributes(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, attribute_text(one)[:_MOST_CHARACTERS]) for name, one in found.items()]


def reviewed_lines(done: Reviewed) -> list[RenderableType]:
    """Return what became of labels, and what was predicted."""
    columns = ("point", "your label", "network", "decided on", "reviewers")
    rows = [(one.id, one.label, one.network, one.predicted, "disagree" if one.disagrees else "") for one in done.points]
    said = f"{counted(done.rows, 'label')} by {done.reviewer}: {done.new:,} new, {done.corrected:,} corrected, "
    return [table(columns, rows), f"{said}{done.unchanged:,} unchanged."]


def queue_lines(name: str, found: ReviewQueue) -> list[RenderableType]:
    """Return how the queue stands."""
    due = "" if found.first_due is None else f" The first is due on {found.first_due}; overdue: {found.overdue:,}."
    later = "What was decided on since somebody last claimed joins with the next claim."
    lines: list[RenderableType] = [f"Points that wait: {found.waiting:,}; claimed: {found.claimed:,}.{due} {later}"]
    if found.reviewers:
        columns = ("reviewer", "labelled", "holds")
        lines.append(table(columns, [(one.reviewer, one.labelled, one.claimed) for one in found.reviewers]))
    if found.disagreements:
        lines.append(
            f"Reviewers disagree about {counted(found.disagreements, 'point')}: `venn-admit review disagreements "
            f"{quote(shown(name))}` lists them."
        )
    return lines


def disagreements_table(name: str, found: Sequence[Disagreement]) -> RenderableType:
    """Return points about which reviewers disagree, a row for each label."""
    rows = [
        (one.id if place == 0 else "", given.reviewer, given.label, given.given_at, one.label if place == 0 else "")
        for one in found
        for place, given in enumerate(one.labels)
    ]
    return table(("point", "reviewer", "label", "given", "counts"), rows, title=name)
