"""What happened day by day: decisions, the share of them that was admitted, and labels."""

from dataclasses import dataclass
from datetime import date

from venn_admit.core.evaluation.tallies import Tally


@dataclass(frozen=True, slots=True)
class Day:
    """A day, in UTC.

    Attributes:
        day: The date.
        decisions: Rows of the requests that were done.
        decided: Rows of these that were looked at, a sample of them.
        admitted: Rows of the sample that were admitted.
        labels: Labels that arrived.
    """

    day: date
    decisions: int = 0
    decided: int = 0
    admitted: int = 0
    labels: int = 0

    @property
    def share(self) -> Tally:
        """The share that was admitted, with its interval."""
        return Tally(self.admitted, self.decided, self.decisions)
