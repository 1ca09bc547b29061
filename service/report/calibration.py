"""All that a report shows of a calibration and of what came after it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from service.core.bands import BandRadius
from service.core.calibration_partitions import CalibrationPartitions
from service.core.discrepancies import Discrepancies, has_grown
from service.core.drift import Drift
from service.core.inventory import Inventory, SnapshotChanges
from service.core.label_budget import LabelBudget
from service.core.types import CalibratorSettings


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot: its number, how, when and why it was made, and whether new work uses it and its KNN parameters."""

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
    """Where KNN and network differ. at_fit: on the dev half; None where the parameters were given."""

    at_fit: Discrepancies | None
    held_out: Discrepancies
    scored: Discrepancies

    def grown(self, since: Discrepancies) -> bool:
        """Whether there are more than at the fit, by more than chance."""
        return self.at_fit is not None and has_grown(self.at_fit, since)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationReport:
    """One classifier's calibration.

    drift: None where nothing was decided with the snapshot; budget: None where nothing was rejected for its band.
    seen_count: exemplars that were decided on and are left out, because the snapshot was made with them.
    """

    classifier: str
    class_names: tuple[str, ...]
    neighbour_count: int
    mc_share: Decimal
    snapshot: SnapshotFacts
    inventory: Inventory
    changes: SnapshotChanges
    partitions: CalibrationPartitions
    agreement: Agreement
    drift: Drift | None
    seen_count: int
    budget: LabelBudget | None

    def bin_names(self) -> list[str]:
        """Names of the bins of q, such as "0", "1-5" and "25"."""
        edges = [*self.snapshot.settings.bin_edges, self.neighbour_count + 1]
        return [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(edges)]

    def advice(self) -> list[str]:
        """What to do next, a sentence each; nothing where all is as it should be."""
        if not self.snapshot.is_current:
            return [f"This calibration is retired: `venn-admit report {self.classifier}` shows what is current."]
        found = []
        if self.changes.total:
            found.append(
                f"{self.changes.total:,} labelled points arrived, changed or left: `venn-admit calibrate "
                f"{self.classifier}`, with the settings above, takes them up."
            )
        if not self.snapshot.parameters_are_current:
            found.append(
                f"Newer KNN parameters are in use than this calibration's: `venn-admit calibrate {self.classifier}` "
                "calibrates with them."
            )
        elif self.agreement.grown(self.agreement.held_out):
            found.append(
                "KNN and network differ more often on mc and vp than at the fit, by more than chance: "
                f"`venn-admit fit {self.classifier}`, then calibrate."
            )
        elif self.agreement.grown(self.agreement.scored):
            found.append(
                "KNN and network differ more often on scored exemplars than at the fit, by more than chance: label a "
                f"random sample of them, then `venn-admit fit {self.classifier}` and calibrate."
            )
        return found
