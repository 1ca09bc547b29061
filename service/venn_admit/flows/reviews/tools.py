"""Points of the queue in a tool for labelling, and the labels that were given there."""

from sqlalchemy import Engine

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.reviews.claims import claim
from venn_admit.flows.reviews.exchange import record
from venn_admit.labelling.tool import LabellingTool
from venn_admit.store.reviews import reviews
from venn_admit_client.records.reviews import Pushed, Reviewed
from venn_admit_client.reviewer_interface import FILE_LEASE, FILE_POINTS


def push(
    engine: Engine,
    name: str,
    reviewer: str,
    tool: LabellingTool,
    *,
    count: int = FILE_POINTS,
    lease_seconds: float = FILE_LEASE,
) -> Pushed:
    """Claim points, and send those that the reviewer holds and the tool does not have; again, none is sent.

    Nothing is claimed unless the tool answers.

    Args:
        tool: Where they go.

    Raises:
        InvalidInputError: As in `claim`, or the tool refuses; what it took stays there.
        VennAdmitError: The tool cannot be reached, or fails; what it took stays there.
    """
    # Who came first sends; the other then finds the points there.
    with reviews.pushing(engine, find(engine, name)):
        known = tool.known()
        found = claim(engine, name, reviewer, count=count, lease_seconds=lease_seconds)
        new = [point for point in found.points if point.id not in known]
        tool.add(new)
    return Pushed(len(found.points), len(new), found.waiting)


def pull(
    engine: Engine, name: str, tool: LabellingTool, *, reviewer: str, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> list[Reviewed]:
    """Record the labels that were given in a tool, as `import_labels` does those of a file; again, it is a no-op.

    Args:
        tool: Where they were given.
        reviewer: Who gave the labels of which the tool does not say that.

    Raises:
        InvalidInputError: The tool refuses, or a label is of no class; nothing is recorded then.
        VennAdmitError: The tool cannot be reached, or fails; nothing is recorded then.
        NotFoundError: An id is stored for no generation; nothing is recorded then.
    """
    # Who came first records; the other then asks the tool, and finds the labels there.
    with reviews.recording(engine, find(engine, name)):
        return record(engine, name, tool.place, tool.labels(), reviewer=reviewer, memory_budget=memory_budget)
