"""What the flows ask of a method of calibration, as a calibrator names it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.policies import Attributes, Bounded
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows
from venn_admit.core.evaluation.category import Bounds
from venn_admit.core.monitoring.what_if import SnapshotEffects
from venn_admit.core.types import Approximation, Float32Array, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.methods.describing import CalibrationToDescribe, Described, Judged, PointsToJudge
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


class Made(Protocol):
    """What a method made of mc and vp."""

    @property
    def rows(self) -> CalibrationRows:
        """The points of the snapshot."""

    def store(self, connection: Connection, calibration_id: int) -> None:
        """Store what the snapshot has besides its points."""


@dataclass(frozen=True, slots=True, eq=False)
class PointsToDecide:
    """What m points are decided by.

    approximation: the KNN's view of them, under the parameters of the snapshot; None if the classifier has logits only.
    vectors: (m, D) float32 if the decision is to be weighted by the localizer; None for a plain one. logits: (m, C)
    float32, the network's; None if unknown. groups: the group of each by the attributes that the calibration's
    certificate is for.
    """

    approximation: Approximation | None
    vectors: Float32Array | None
    logits: Float32Array | None
    groups: Attributes = field(default_factory=dict)

    @property
    def view(self) -> Approximation:
        """The KNN's view, if there are vectors."""
        assert self.approximation is not None, "a classifier with logits only has no KNN"
        return self.approximation

    def require_logits(self) -> Float32Array:
        """Return the network's logits, or raise InvalidInputError if they are unknown."""
        if self.logits is None:
            raise InvalidInputError(
                "expected the network's logits with the vector, because the calibration in use decides on the "
                "network's prediction; give both"
            )
        return self.logits


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """What the policy of a calibration says of one prediction, if it was asked for more than the pointwise promise.

    is_certified: whether there is a certified policy; False for that of the average promise. promise, promise_sentence:
    what the policy promises; nothing if there is none. threshold: for the predicted class; None if that class is never
    admitted, or if there is no policy. bounded: what the threshold bounds; None without a policy. has_groups: whether
    groups have thresholds of their own.
    """

    is_certified: bool
    promise: Promised
    threshold: float | None
    bounded: Bounded | None
    promise_sentence: str
    has_groups: bool

    @property
    def sentence(self) -> str:
        """What admits the prediction by the policy."""
        if self.bounded is None:
            return "No policy is certified."
        which = "The certified policy" if self.is_certified else "The policy of the average promise"
        if self.threshold is None:
            return f"{which} never admits this class{', or never in this group' if self.has_groups else ''}."
        what = "score" if self.bounded is Bounded.SCORE else "lower probability"
        return f"{which} admits this class from a {what} of {self.threshold:.6g}."


@dataclass(frozen=True, slots=True)
class StepBounds:
    """The plain probabilities within one step of a cell."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class CellBasis:
    """What the plain probabilities of a point rest on, if its method has cells.

    score_kind: what ranks the predictions. features: what the score is made of, by name; empty if it is the network's.
    q_bin: the number of the bin of q. cell_size, cell_right: the points of mc in the cell of that bin and the predicted
    class, and how many of them are right. step_from, step_below: the scores between which the point's step holds, which
    may be infinite. before, own, after: that step, and those on either side; None if there is none. threshold: the
    lower probability or, by a policy that bounds it, the score that admits; None for never.
    """

    score_kind: str
    features: Mapping[str, float]
    q_bin: int
    cell_size: int
    cell_right: int
    step_from: float
    step_below: float
    before: StepBounds | None
    own: StepBounds
    after: StepBounds | None
    threshold: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The decision on one point.

    fields: by the names that a stored decision has them under. category_counts: (C,) int64, points of each label in
    the category, 0 if the set is not a singleton; without a division, in the one that gives the lower probability.
    bounds: the probabilities of each class; None if they follow from these. policy: None if the pointwise promise was
    asked for. basis: given with the whole snapshot at hand, if the method has cells.
    """

    fields: dict[str, Any]
    category_counts: IntArray
    policy: AppliedPolicy | None = None
    basis: CellBasis | None = None
    bounds: Bounds | None = None


class Snapshot(Protocol):
    """A calibration ready to decide with."""

    @property
    def calibration(self) -> Calibration: ...

    @property
    def needs_logits(self) -> bool:
        """Whether points are decided by the network's logits."""

    @property
    def parameters(self) -> StoredParameters:
        """The parameters to approximate points with, if there are vectors."""

    def decide(self, points: PointsToDecide, *, require_full_match: bool) -> Decided:
        """Decide on m points, each the same to the last bit whatever the others are.

        require_full_match: whether points with q < K are rejected.
        """

    def explain(self, points: PointsToDecide, *, require_full_match: bool) -> Explained:
        """Decide on one point as `decide` does, and say what the decision rests on."""


class NotKeptError(Exception):
    """What is asked for must be read, and there is no connection to read it with."""


class PointDecider(Protocol):
    """Decides on some points by the snapshot in use; keeps what it read of snapshots."""

    def look_up(
        self, connection: Connection | None, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> "DecideEach":
        """Read what the decisions on m points rest on; what is returned decides as a job would, bit for bit.

        connection: a consistent view, in which the calibration is the one in use. It must be closed by the time of the
        decisions, which may need another one. None: NotKeptError is raised unless all of it was read before.
        """


class DecideEach(Protocol):
    """Decides on the points that were looked up.

    Raises NotFoundError if the snapshot was deleted meanwhile, so that another one is in use.
    """

    def __call__(self, *, require_full_match: bool) -> Sequence[Explained]: ...


class Method(Protocol):
    """A method of calibration."""

    @property
    def weighted_by_default(self) -> bool:
        """Whether decisions are weighted by the localizer unless plain ones are asked for."""

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters | None,
        settings: MethodSettings,
        *,
        memory_budget: int,
        instead: Replacements | None = None,
    ) -> Made:
        """Compute a snapshot from the labels and approximations of mc and vp.

        parameters: None if the classifier has logits only, which then are all that there is. instead: what replaces
        stored approximations, for a snapshot that is not to be stored.

        Raises:
            InvalidInputError: The settings need vectors, and there are none.
            NotReadyError: These data do not allow one.
        """

    def compare(
        self,
        connection: Connection,
        classifier: Classifier,
        calibration: Calibration,
        made: Made,
        instead: Replacements,
        *,
        memory_budget: int,
    ) -> SnapshotEffects:
        """Return how a snapshot that was made with replaced approximations differs from the one in use.

        connection: a consistent view, in which the calibration is the one in use.
        """

    def ready(
        self,
        workspace: Workspace,
        classifier: Classifier,
        calibration: Calibration,
        parameters: StoredParameters,
        made: Made,
        *,
        weighted: bool,
    ) -> Snapshot:
        """Return a snapshot that is not stored, ready to decide with.

        calibration: the one that it would follow. weighted: whether it is to decide with weights too.
        """

    def load(self, workspace: Workspace, classifier: Classifier, calibration_id: int) -> Snapshot:
        """Read a calibration as it was when it was made, ready to decide with."""

    def point_decider(self, workspace: Workspace) -> PointDecider:
        """Return what decides on one point at once."""

    def judge(self, snapshot: Snapshot, points: PointsToJudge) -> Judged:
        """Return what a snapshot of this method makes of labelled points that it has decided on, for an evaluation.

        points: with the decisions that are usual for the method.
        """

    def describe(self, workspace: Workspace, connection: Connection, given: CalibrationToDescribe) -> Described:
        """Return what this method adds to the report on a calibration of its own.

        connection: a consistent view.
        """
