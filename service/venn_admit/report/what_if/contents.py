"""What is shown of a change of training exemplars or settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from venn_admit.core.calibrators.venn_abers.settings import VennAbersSettings
from venn_admit.core.evaluation.measures import Admission
from venn_admit.core.monitoring.what_if import Flips, SnapshotEffects, ViewChanges
from venn_admit.core.types import CalibratorSettings


@dataclass(frozen=True, slots=True)
class TrainingChange:
    """A training exemplar with its label; becomes: another label, or None if it is left out."""

    external_id: str
    label: str
    becomes: str | None


@dataclass(frozen=True, slots=True)
class Flip:
    """A decision that would differ: the admitted class as it is and as it would be, None if rejected."""

    external_id: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, eq=False)
class TrainingEffects:
    """What would change if training exemplars had other labels or were left out.

    calibration: the current one, by `method`, and the only one whose decisions are looked at. views: of the points of
    `mc` and `vp`, and of those that it `decided` on, each with its newest decision. flipped: the first of the decisions
    that would differ, in order of ingestion; there are `flips.total`.
    """

    classifier: str
    class_names: tuple[str, ...]
    calibration: int
    method: str
    changes: tuple[TrainingChange, ...]
    views: Mapping[str, ViewChanges]
    snapshot: SnapshotEffects
    flips: Flips
    flipped: tuple[Flip, ...]


@dataclass(frozen=True, slots=True)
class SettingTried:
    """A setting, and what it admits of mc by cross-fitting; value: of what is varied, in words."""

    value: str
    settings: CalibratorSettings | VennAbersSettings
    admission: Admission
    is_current: bool

    @property
    def every_class_reaches(self) -> bool | None:
        """Whether no class is estimated to have a share right below 1 - alpha; None if nothing is admitted."""
        return self.admission.every_class_reaches(self.settings.alpha) if self.admission.admitted.correct else None


@dataclass(frozen=True, slots=True)
class SettingsTried:
    """The setting of the current calibration with one part of it varied, in the order of the values asked for.

    varied: what is varied. is_weighted: whether probabilities are, as is the default of the method. point_count: of mc.
    judged_count, document_count: points that are decided on, and their documents.
    """

    classifier: str
    class_names: tuple[str, ...]
    calibration: int
    method: str
    varied: str
    is_weighted: bool
    point_count: int
    judged_count: int
    document_count: int
    tried: tuple[SettingTried, ...]
