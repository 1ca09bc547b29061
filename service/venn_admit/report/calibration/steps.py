"""What the advice of a report refers to without knowing how it is done: the steps that a user can take next."""

from typing import Protocol

from venn_admit.core.types import CalibratorSettings


class NextSteps(Protocol):
    """The wording of the shell that shows a report: each step as its users take it.

    A step is a command, a call or a request, such as `venn-admit fit reviews`; the advice puts it between backquotes.
    """

    def report(self, classifier: str) -> str:
        """Report on the current calibration."""

    def fit(self, classifier: str) -> str:
        """Fit the KNN and the localizer again."""

    def calibrate(self, classifier: str, settings: CalibratorSettings, neighbour_count: int) -> str:
        """Calibrate under these settings; neighbour_count is K."""

    def list_unlabelled(self, classifier: str) -> str:
        """List the stored points without a label, in random order."""

    def label(self, classifier: str) -> str:
        """Store labels that were found for them."""

    def monitor(self, classifier: str) -> str:
        """Bring the monitor of the setting in use up to date, or start it, and show it."""

    def recalibrate(self, classifier: str) -> str:
        """Recalibrate at once under the settings that are kept current."""
