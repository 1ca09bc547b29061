"""Everything that a report shows of a calibration and of what happened after it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from venn_admit.service.core.calibrators.bands import BandRadius
from venn_admit.service.core.calibrators.usable_bands import UsableShares
from venn_admit.service.core.monitoring.discrepancies import Discrepancies, has_grown
from venn_admit.service.core.monitoring.inventory import Inventory, SnapshotChanges
from venn_admit.service.core.monitoring.label_budget import LabelBudget
from venn_admit.service.core.monitoring.partitions import CalibrationPartitions
from venn_admit.service.core.monitoring.traffic import Traffic
from venn_admit.service.core.types import CalibratorSettings


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot: its number, when, why and how it was made, and whether it and its KNN parameters are current."""

    id: int
    created_at: datetime
    reason: str
    is_current: bool
    parameters_are_current: bool
    settings: CalibratorSettings
    radius: BandRadius
    mc_count: int
    vp_count: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often KNN and network differ. at_fit: on the dev half; None if the parameters were given."""

    at_fit: Discrepancies | None
    held_out: Discrepancies
    scored: Discrepancies

    def grown(self, since: Discrepancies) -> bool:
        """Whether they differ more often than at the fit, by more than chance."""
        return self.at_fit is not None and has_grown(self.at_fit, since)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationReport:
    """One classifier's calibration.

    admitted_of_vp: points of vp that plain Venn-ADMIT would admit, each left out of its category. other_settings: what
    other settings leave usable, if these leave nearly nothing. traffic: None if nothing was decided. budget: None if no
    point of the traffic has a band below kappa. seen_count: exemplars that were decided on and are left out of traffic,
    because the snapshot that decided on them was made with them.
    """

    classifier: str
    class_names: tuple[str, ...]
    neighbour_count: int
    mc_share: Decimal
    snapshot: SnapshotFacts
    inventory: Inventory
    changes: SnapshotChanges
    partitions: CalibrationPartitions
    admitted_of_vp: int
    other_settings: UsableShares | None
    agreement: Agreement
    traffic: Traffic | None
    seen_count: int
    budget: LabelBudget | None

    def bin_names(self) -> list[str]:
        """Return the names of the bins of q, such as "0", "1-5" and "25"."""
        edges = [*self.snapshot.settings.bin_edges, self.neighbour_count + 1]
        return [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(edges)]
