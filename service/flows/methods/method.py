"""What the flows ask of a method of calibration, as a calibrator names it."""

from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection, Engine

from venn_admit.service.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.service.core.types import Approximation, Float32Array, IntArray
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.calibrations.setting_forms import MethodSettings
from venn_admit.service.store.decisions.decisions import EvidenceRows, Verdicts
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


class Made(Protocol):
    """What a method made of mc and vp."""

    @property
    def rows(self) -> CalibrationRows:
        """The points of the snapshot."""
        ...

    def store(self, connection: Connection, calibration_id: int) -> None:
        """Store what the snapshot has besides its points."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PointsToDecide:
    """What m points are decided by.

    approximation: the KNN's view of them, under the parameters of the snapshot. vectors: (m, D) float32 if the decision
    is to be weighted by the localizer; None for a plain one. logits: (m, C) float32, the network's; None if unknown.
    """

    approximation: Approximation
    vectors: Float32Array | None
    logits: Float32Array | None

    def require_logits(self) -> Float32Array:
        """Return the network's logits, or raise InvalidInputError if they are unknown."""
        if self.logits is None:
            raise InvalidInputError(
                "expected the network's logits with the vector, because the calibration in use decides on the "
                "network's prediction; give both"
            )
        return self.logits


class Decided(Protocol):
    """The decisions on m points, with their evidence."""

    @property
    def verdicts(self) -> Verdicts:
        """What every decision has."""
        ...

    @property
    def evidence(self) -> EvidenceRows:
        """What is kept for this method alone."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The decision on one point.

    fields: by the names that a stored decision has them under. category_counts: (C,) int64, points of each label in
    the category, 0 if the set is not a singleton.
    """

    fields: dict[str, Any]
    category_counts: IntArray


class Snapshot(Protocol):
    """A calibration ready to decide with."""

    @property
    def calibration(self) -> Calibration: ...

    @property
    def needs_logits(self) -> bool:
        """Whether points are decided by the network's logits."""
        ...

    @property
    def parameters(self) -> StoredParameters:
        """The parameters to approximate points with."""
        ...

    def decide(self, points: PointsToDecide, *, require_full_match: bool, memory_budget: int) -> Decided:
        """Decide on m points, each the same to the last bit whatever the others are.

        require_full_match: whether points with q < K are rejected. memory_budget: bytes that temporary arrays may take.
        """
        ...

    def explain(self, points: PointsToDecide, *, require_full_match: bool, memory_budget: int) -> Explained:
        """Decide on one point as `decide` does, and say what the decision rests on."""
        ...


class PointDecider(Protocol):
    """Decides on one point by the current snapshot, from what SQL finds; keeps what it read of snapshots."""

    def look_up(
        self, connection: Connection, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> "DecideOne":
        """Read what the decision on one point rests on; what is returned decides as a job would, bit for bit.

        connection: a consistent view, in which the calibration is the current one. It may be closed by the time of the
        decision.
        """
        ...


class DecideOne(Protocol):
    """Decides on the point that was looked up."""

    def __call__(self, *, require_full_match: bool) -> Explained: ...


class Method(Protocol):
    """A method of calibration."""

    @property
    def weighted_by_default(self) -> bool:
        """Whether decisions are weighted by the localizer unless plain ones are asked for."""
        ...

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters,
        settings: MethodSettings,
        *,
        memory_budget: int,
    ) -> Made:
        """Compute a snapshot from the labels and approximations of mc and vp.

        Raises:
            NotReadyError: These data do not allow one.
        """
        ...

    def load(self, engine: Engine, cache: ArrayCache, classifier: Classifier, calibration_id: int) -> Snapshot:
        """Read a calibration as it was when it was made, ready to decide with."""
        ...

    def point_decider(self, engine: Engine, cache: ArrayCache) -> PointDecider:
        """Return what decides on one point at once."""
        ...
