"""What a calibration by Venn-ADMIT adds to a report."""

from dataclasses import dataclass
from decimal import Decimal

from venn_admit.core.calibrators.bands import BandRadius
from venn_admit.core.calibrators.usable_bands import UsableShares
from venn_admit.core.monitoring.bands import LabelBudget, WeightedShare
from venn_admit.core.monitoring.partitions import CalibrationPartitions
from venn_admit.core.types import CalibratorSettings
from venn_admit.report.evaluation.evaluated import edge_names


@dataclass(frozen=True, slots=True, eq=False)
class BandsContents:
    """The bands of a snapshot.

    neighbour_count: K. mc_share: of random labels that go to mc. admitted_of_vp: points of vp that plain Venn-ADMIT
    would admit, each left out of its category. weighted: what weighted Venn-ADMIT would admit of a sample of them.
    other_settings: what other settings leave usable, if these leave nearly nothing. lacking: the labels that bands
    lack; None if no point of the traffic has a band below kappa.
    """

    settings: CalibratorSettings
    neighbour_count: int
    radius: BandRadius
    mc_share: Decimal
    partitions: CalibrationPartitions
    admitted_of_vp: int
    weighted: WeightedShare
    other_settings: UsableShares | None
    lacking: LabelBudget | None

    @property
    def bin_names(self) -> list[str]:
        """The names of the bins of q, such as "0", "1-5" and "25"."""
        return edge_names([*self.settings.q_bins, self.neighbour_count + 1])
