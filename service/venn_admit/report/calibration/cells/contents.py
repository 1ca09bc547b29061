"""What a calibration by Venn-Abers adds to a report."""

from collections.abc import Sequence
from dataclasses import dataclass

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.settings import AUTO, ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.monitoring.cells import CellState, TrafficPart
from venn_admit.report.evaluation.evaluated import edge_names


@dataclass(frozen=True, slots=True, eq=False)
class CellsContents:
    """The cells of a snapshot.

    neighbour_count: K; None if the classifier has logits only. score: the one that the snapshot has. network_share,
    reliability_share: what each admits of mc by cross-fitting; None if a score was asked for. steps: of all cells. mc:
    its points. states: of every cell, by bin of q, then by predicted class. parts: of mc and of recent traffic.
    certificate: None if none was asked for; otherwise the thresholds of the states are those of its policy.
    """

    settings: VennAbersSettings
    neighbour_count: int | None
    score: ScoreKind
    network_share: float | None
    reliability_share: float | None
    steps: Steps
    mc: CellPoints
    states: tuple[CellState, ...]
    parts: tuple[TrafficPart, ...]
    certificate: Certificate | None

    @property
    def asked(self) -> str:
        """The score asked for, which may be left to the data."""
        return AUTO if self.settings.score is None else str(self.settings.score)

    @property
    def admitted(self) -> int:
        """The points of mc that would be admitted, each by bounds of the other folds."""
        return sum(state.admitted for state in self.states)

    @property
    def is_uncertified(self) -> bool:
        """Whether a certificate was asked for, and none could be given."""
        return self.certificate is not None and self.certificate.chosen is None

    @property
    def bin_names(self) -> list[str] | None:
        """The names of the bins of q; None without vectors."""
        if self.neighbour_count is None:
            return None
        return edge_names([*self.settings.q_bins, self.neighbour_count + 1])

    def cell_name(self, state: CellState, class_names: Sequence[str]) -> str:
        """Return what a cell is called: its predicted class, and its bin of q if there are several."""
        name, bins = class_names[state.predicted], self.bin_names
        return name if bins is None or len(bins) == 1 else f"{name}, q {bins[state.q_bin]}"
