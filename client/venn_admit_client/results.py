"""What the methods of a classifier return, with the names that the Python interface has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from .inputs import Array
from .records import Neighbour


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration, which new decisions are made by.

    Attributes:
        id: Its number.
        method: `venn-admit` or `venn-abers`.
        alpha: The error level.
        thresholds: The least lower probability that admits each predicted class, that of the policy if a certificate
            was asked for; None for a class that is never admitted.
        q_bins: The lower edges of the bins of q.
        mc_points: Points of split mc.
        vp_points: Points of split vp, which Venn-Abers uses for a certificate alone.
        delta: The band radius in standard deviations of d; None for Venn-Abers.
        kappa: The least number of points of each class in a band; None for Venn-Abers.
        usable_share: The share of vp in bands with enough points; None for Venn-Abers.
        singleton_share: The share of vp whose ADMIT set is a single class; of these, fewer will be admitted. None for
            Venn-Abers.
        score: What ranks predictions, `network` or `reliability`; None for Venn-ADMIT.
        certificate: What became of the certificate, as JSON has it; None if none was asked for.
    """

    id: int
    method: str
    alpha: Decimal
    thresholds: tuple[Decimal | None, ...]
    q_bins: tuple[int, ...]
    mc_points: int
    vp_points: int
    delta: float | None
    kappa: int | None
    usable_share: float | None
    singleton_share: float | None
    score: str | None
    certificate: Mapping[str, Any] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one point, and why.

    Attributes:
        id: What the point was called; None if it had no id.
        admitted: The class that is admitted; None if the prediction is rejected.
        predicted: The class predicted.
        reason: Why the prediction is rejected; None if it is admitted.
        lower: The lower bound on the probability that the prediction is right; None if it was rejected before.
        upper: The upper bound.
        match_count: q, how many of the nearest exemplars match in a row, 0 to K; None with logits only.
        distance: d, the distance to the nearest training exemplar; None with logits only.
        neighbours: The nearest training exemplars that were asked for, nearest first; none with logits only.
        calibration: The number of the calibration that it was made by.
        evidence: Everything that the decision rests on, as the service answers it.
    """

    id: str | None
    admitted: str | None
    predicted: str
    reason: str | None
    lower: float | None
    upper: float | None
    match_count: int | None
    distance: float | None
    neighbours: tuple[Neighbour, ...] = field(repr=False)
    calibration: int
    evidence: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Decisions(Sequence[Decision]):
    """Decisions on n points, in their order: each with its evidence, and all of them as columns.

    Attributes:
        decisions: Each of them.
    """

    decisions: tuple[Decision, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __getitem__(self, place: Any) -> Any:
        """Return the decision at a place, or those of a slice."""
        return Decisions(self.decisions[place]) if isinstance(place, slice) else self.decisions[place]

    @property
    def is_admitted(self) -> Array:
        """(n,) bool: whether the prediction is admitted."""
        return np.array([one.admitted is not None for one in self.decisions], dtype=np.bool_)

    @property
    def admitted(self) -> Array:
        """(n,) objects: the class that is admitted, None if the prediction is rejected."""
        return self._objects("admitted")

    @property
    def predicted(self) -> Array:
        """(n,) objects: the class predicted."""
        return self._objects("predicted")

    @property
    def reason(self) -> Array:
        """(n,) objects: why the prediction is rejected, None if it is admitted."""
        return self._objects("reason")

    @property
    def lower(self) -> Array:
        """(n,) float64: lower bounds on the probability that the prediction is right, NaN for none."""
        return self._floats("lower")

    @property
    def upper(self) -> Array:
        """(n,) float64: upper bounds."""
        return self._floats("upper")

    @property
    def match_count(self) -> Array:
        """(n,) float64: q, NaN with logits only."""
        return self._floats("match_count")

    @property
    def distance(self) -> Array:
        """(n,) float64: d, NaN with logits only."""
        return self._floats("distance")

    @property
    def calibration(self) -> Array:
        """(n,) int64: the calibration that each was made by; with more than 1,000 points there may be several."""
        return np.array([one.calibration for one in self.decisions], dtype=np.int64)

    def _objects(self, name: str) -> Array:
        return np.array([getattr(one, name) for one in self.decisions], dtype=object)

    def _floats(self, name: str) -> Array:
        return np.array([getattr(one, name) for one in self.decisions], dtype=np.float64)  # None becomes NaN


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A stored decision at a glance.

    Attributes:
        number: Its number, which `replay` takes.
        id: The id of the exemplar.
        admitted: The class that is admitted; None if the prediction is rejected.
        predicted: The class predicted.
        reason: Why the prediction is rejected; None if it is admitted.
        lower: The lower bound on the probability that the prediction is right; None if it was rejected before.
        upper: The upper bound.
        calibration: The number of the calibration that it was made by.
        weighted: Whether probabilities were weighted.
        require_full_match: Whether predictions with q < K were rejected.
        created_at: When it was made.
    """

    number: int
    id: str
    admitted: str | None
    predicted: str
    reason: str | None
    lower: float | None
    upper: float | None
    calibration: int
    weighted: bool
    require_full_match: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Replay:
    """A stored decision, computed again from its snapshot.

    Attributes:
        number: That of the decision.
        id: The id of the exemplar.
        calibration: The number of the calibration that it was made by.
        differing: The fields that are not the same, bit for bit; it should be empty.
        stored: What is stored of it.
        computed: What was computed.
        neighbours: The nearest training exemplars of that time.
        document: Everything, as the service answers it.
    """

    number: int
    id: str
    calibration: int
    differing: tuple[str, ...]
    stored: Mapping[str, Any] = field(repr=False)
    computed: Mapping[str, Any] = field(repr=False)
    neighbours: tuple[Neighbour, ...] = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Report:
    """How a calibration stands, and what to do next.

    Attributes:
        classifier: The name of the classifier.
        calibration: The calibration, its setting and its size.
        advice: What to do next.
        document: Every figure, as the service answers it.
    """

    classifier: str
    calibration: Mapping[str, Any]
    advice: tuple[Any, ...]
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit report --json` prints it."""
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm, or a notice, of a monitor that stands.

    Attributes:
        id: Its number.
        lamp: What it is about: `promise`, `true_classes`, `partitions` or `mix`.
        harmful: Whether it is an alarm: admitted predictions may be wrong more often than they should be. Otherwise it
            is a notice.
        label: The class that it is about: the true one for `true_classes`, otherwise the one predicted.
        match_counts: The values of q in the partition that it is about, such as `1-24`; None if it is about no
            partition, and with logits only.
        target: The share right that is promised, 1 - alpha.
        since: When it was seen.
        document: Everything, with the figures behind it, as a webhook is sent it.
    """

    id: int
    lamp: str
    harmful: bool
    label: str
    match_counts: str | None
    target: Decimal
    since: datetime
    document: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Monitor:
    """Whether the promise still holds, as far as random labels tell.

    Attributes:
        classifier: The name of the classifier.
        alarm: Whether an alarm stands: admitted predictions may be wrong more often than they should be.
        alarms: The alarms and notices that stand.
        documents: How many documents with labels count.
        points: How many labelled points of theirs count.
        document: Every figure, as the service answers it.
    """

    classifier: str
    alarm: bool
    alarms: tuple[Alarm, ...]
    documents: int
    points: int
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit monitor --json` prints it; an infinite e-value is `inf`."""
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class Policy:
    """The outcome of a certification: the certified thresholds, if any policy passed.

    Attributes:
        classifier: The name of the classifier.
        calibration: The number of the calibration that was asked for the certificate.
        is_certified: Whether a policy passed. If none did, everything is rejected.
        kinds: The classes for which it holds: `predicted`, `true` or both.
        confidence: The probability, over draws of the calibration data, with which the promise holds.
        test: How documents of several points were tested: `finite-sample` or `asymptotic`.
        thresholds: For each predicted class the least p0 at which it is admitted, None for never; None if nothing is
            certified.
        document: Everything, with each policy that was proposed and tested, as the service answers it.
    """

    classifier: str
    calibration: int
    is_certified: bool
    kinds: tuple[str, ...]
    confidence: Decimal
    test: str
    thresholds: Mapping[str, float | None] | None
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as `venn-admit export --what policy` writes it."""
        return dict(self.document)
