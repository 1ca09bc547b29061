"""Everything that a report shows of a calibration and of what happened after it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from venn_admit.advice import Render, Step, Verb
from venn_admit.core.calibrators.certified.certificate import LaterChain
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.core.monitoring.bands import WeightedShare
from venn_admit.core.monitoring.drift import Discrepancies, has_grown
from venn_admit.core.monitoring.history import ChainHistory, Day, Inventory, PointChanges, SnapshotChange
from venn_admit.core.monitoring.partitions import PartitionMap
from venn_admit.core.monitoring.traffic import Traffic
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.report.calibration.common.watch import Watch
from venn_admit.report.calibration.sections import Finding, Picture, Section, TextTable, Unlock
from venn_admit.report.evaluation.dataset import ClassCoverage
from venn_admit.report.standing import later_text
from venn_admit.report.wording import STATES
from venn_admit_client.records.calibrations import Withheld
from venn_admit_client.records.certificates import CertificateLook


@dataclass(frozen=True, slots=True)
class HowDecided:
    """How points of the reference are decided on in a report, as parts of a sentence.

    by: what decides. apart: how, though the calibration rests on them. on_map: the same for the partition map.
    """

    by: str
    apart: str
    on_map: str


class MethodPart(Protocol):
    """What a method of calibration adds to the report on its calibrations; see `CalibrationReport` for the rest."""

    @property
    def settings(self) -> MethodSettings:
        """What it was calibrated with."""

    @property
    def promised(self) -> Promised:
        """What the calibration promises."""

    @property
    def certified(self) -> str | None:
        """What the certificate in use promises, in a sentence; None without one."""

    @property
    def reference(self) -> Split:
        """The split of the calibration data that recent traffic is compared with."""

    @property
    def deciding(self) -> HowDecided:
        """How its points are decided on."""

    @property
    def admitted_of_reference(self) -> int:
        """The number of its points that would be admitted so."""

    @property
    def weighted(self) -> WeightedShare | None:
        """What would be admitted of a sample of its points with weights; None if decisions are plain by default."""

    @property
    def compared(self) -> tuple[str, ...]:
        """The names of the quantities and shares that recent traffic is compared by."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why a point may be rejected by this method, in the order shown."""

    def settings_text(self) -> str:
        """Return how the calibration was made, as parts of a sentence."""

    def settings_payload(self) -> dict[str, Any]:
        """Return the same for programs."""

    def sections(self, report: "CalibrationReport") -> list[Section]:
        """Return what calibrates."""

    def rejected_of_reference(self, report: "CalibrationReport") -> Mapping[Reason, int]:
        """Return how many points of the reference would be rejected, by the reasons for which that is known."""

    def traffic_tables(self, report: "CalibrationReport") -> tuple[TextTable, ...]:
        """Return tables of recent traffic by parts, beside the comparison that all methods have."""

    def traffic_notes(self) -> tuple[str, ...]:
        """Return notes on the comparison with the reference."""

    def budget(self, report: "CalibrationReport") -> Section:
        """Return the labels that are lacking."""

    def unlocks(self, report: "CalibrationReport") -> list[Unlock]:
        """Return what further labels would unlock, fewest labels first."""

    def rejections(self, report: "CalibrationReport", render: Render) -> Iterator[Finding]:
        """Yield why too little can be admitted, if so."""

    def unlike(self, report: "CalibrationReport", render: Render) -> Iterator[Finding]:
        """Yield how recent traffic has left what is promised, if the method knows."""

    def again(self, report: "CalibrationReport") -> Step:
        """Return the step that calibrates once more under the same settings."""

    def following(self, report: "CalibrationReport") -> tuple[int, Step] | None:
        """Return the number of a chain that would admit clearly more, with the step that begins it; None for none."""

    def standing_instead(self, report: "CalibrationReport") -> Step | None:
        """Return the step that begins a certificate that stands for what this one is for; None if none could."""

    def payload(self, report: "CalibrationReport") -> dict[str, Any]:
        """Return what the sections and the budget show, for programs."""

    def drift_payload(self, report: "CalibrationReport") -> dict[str, Any]:
        """Return what the tables of recent traffic show, for programs."""

    def pictures(self, report: "CalibrationReport") -> tuple[Picture, ...]:
        """Return the charts of the page, the most telling first."""


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot: its number, when, why and how it was made, and its state: current, retired or withheld.

    parameters_are_current: whether its KNN parameters are; None if the classifier has logits only. mc_count, vp_count:
    the points that it was made of, of which some, forgotten, were forgotten since. chain_has_ended: whether no later
    label can count, if its certificate stands while labels arrive; None if it was made once. later: the chain of its
    setting that was begun since.
    """

    id: int
    created_at: datetime
    reason: str
    state: str
    parameters_are_current: bool | None
    method: str
    alpha: Decimal
    mc_count: int
    vp_count: int
    forgotten: int
    chain_has_ended: bool | None = None
    later: LaterChain | None = None


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

    agreement: None if it has logits only, and so no KNN. traffic: None if nothing was decided. seen_count: exemplars
    that were decided on and are left out of traffic, because the snapshot that decided on them was made with them.
    part: what the method of the calibration adds. map: None if the classifier has logits only. coverage: of the
    reference, each point decided on without itself. history: the newest calibrations up to this one, the newest first.
    days: the last ones, the oldest first; none if nothing happened on them.
    watch: its monitor. queries: the SQL behind the tables, by name. withheld: why calibrations are stored and were
    never put in use, by their numbers. looks: the certificates that looked at the labels, the newest first.
    chains: what chains came to, up to this calibration; None if its certificate was made once. current: whether each
    calibration that is current is in use, kept current or retired with its setting, in words by its number.
    """

    classifier: str
    class_names: tuple[str, ...]
    snapshot: SnapshotFacts
    inventory: Inventory
    changes: PointChanges
    agreement: Agreement | None
    traffic: Traffic | None
    seen_count: int
    part: MethodPart
    map: PartitionMap | None
    coverage: ClassCoverage
    history: tuple[SnapshotChange, ...]
    days: tuple[Day, ...]
    watch: Watch
    queries: Mapping[str, str]
    withheld: Mapping[int, Withheld]
    looks: tuple[CertificateLook, ...]
    current: Mapping[int, str]
    chains: ChainHistory | None = None

    def step(self, verb: Verb, **arguments: Any) -> Step:
        """Return a step that the classifier's users can take."""
        return Step(verb, classifier=self.classifier, **arguments)

    def later_chain(self, render: Render) -> str | None:
        """Return which chain was begun since that of the calibration, and what puts it in use; None if none was."""
        later = self.snapshot.later
        if later is None:
            return None
        said = later_text(later)
        if later.is_in_use:
            return said
        return f"{said} `{render(self.step(Verb.USE, calibration=later.calibration))}` does that."

    def state_text(self, calibration: int, state: str) -> str:
        """Return whether a calibration in a stored state is in use, kept current, retired or not in use."""
        return self.current[calibration] if state == "current" else STATES[state]

    @property
    def state(self) -> str:
        """The same of the snapshot reported on."""
        return self.state_text(self.snapshot.id, self.snapshot.state)

    @property
    def in_use(self) -> int | None:
        """The calibration that new decisions are made by; None if none is."""
        return next((number for number, state in self.current.items() if state == "in use"), None)

    @property
    def promised(self) -> Promised:
        """What the calibration promises of what it decides now."""
        return Promised.NONE if self.snapshot.chain_has_ended else self.part.promised

    @property
    def promise_sentence(self) -> str:
        """The same in words, to be put behind a colon."""
        settings = self.part.settings
        return self.promised.stated(settings.alpha, settings.confidence, settings.test, settings.certify)

    @property
    def reference_count(self) -> int:
        """The number of points that recent traffic is compared with."""
        return self.snapshot.vp_count if self.part.reference is Split.VP else self.snapshot.mc_count
