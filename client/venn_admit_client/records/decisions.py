"""Decisions: made at once, stored, and computed again."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from venn_admit_client.members import Told, member, record

_NEAREST = 5


@record
class Neighbour:
    """A training exemplar near a point.

    Attributes:
        id: Its id.
        label: Its class.
        distance: Euclidean, in the units of the vectors.
        attributes: What was stored with it.
    """

    id: str = member("train-17", "external_id")
    label: str = member("positive", "label_class")
    distance: float = member(3.25)
    attributes: Mapping[str, Any] = member({"text": "A film to remember."})


@record
class Decision(Told):
    """The decision on one point, and why. As text, this in some lines.

    Attributes:
        admitted: The class that is admitted; None if the prediction is rejected.
        predicted: The class predicted.
        reason: Why the prediction is rejected; None if it is admitted.
        lower: The lower bound on the probability that the prediction is right; None if it was rejected before.
        upper: The upper bound.
        match_count: q, how many of the nearest exemplars match in a row, 0 to K; None with logits only.
        distance: d, the distance to the nearest training exemplar; None with logits only.
        neighbours: The nearest training exemplars that were asked for, nearest first; none with logits only.
        calibration: The number of the calibration that it was made by.
        evidence: Everything that the decision rests on, by the names that a stored decision has it under.
        id: What the point was called; None if it had no id.
    """

    admitted: str | None = member("positive", "decided_class")
    predicted: str = member("positive", "predicted_class")
    reason: str | None = member(None)
    lower: float | None = member(0.93)
    upper: float | None = member(0.95)
    match_count: int | None = member(25)
    distance: float | None = member(3.25)
    neighbours: tuple[Neighbour, ...] = member(repr=False)
    calibration: int = member(7)
    evidence: Mapping[str, Any] = field(repr=False)
    id: str | None = member("review-1", "external_id", default=None)

    def __str__(self) -> str:
        return "\n".join(_decision_lines(self))


@record
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

    number: int = member(4711, "decision")
    id: str = member("review-1", "external_id")
    admitted: str | None = member("positive", "decided_class")
    predicted: str = member("positive", "predicted_class")
    reason: str | None = member(None)
    lower: float | None = member(0.93)
    upper: float | None = member(0.95)
    calibration: int = member(7)
    weighted: bool = member(True)
    require_full_match: bool = member(False)
    created_at: datetime = member("2026-07-01T12:00:00+00:00")


@record
class Replay:
    """A stored decision, computed again from its snapshot.

    Attributes:
        number: The number of the decision.
        id: The id of the exemplar.
        calibration: The number of the calibration that it was made by.
        differing: The fields that are not the same, bit for bit; it should be empty.
        is_rounding: Whether these differ in their last digits alone, as on another kind of processor.
        stored: What is stored of it.
        computed: What was computed.
        neighbours: The nearest training exemplars of that time.
        document: Everything, as JSON has it.
    """

    number: int = member(4711, "decision_id")
    id: str = member("review-1", "external_id")
    calibration: int = member(7)
    differing: tuple[str, ...] = member([])
    is_rounding: bool = member(False)
    stored: Mapping[str, Any] = member(repr=False)
    computed: Mapping[str, Any] = member(repr=False)
    neighbours: tuple[Neighbour, ...] = member(repr=False)
    document: Mapping[str, Any] = field(repr=False)


def _decision_lines(made: Decision) -> Iterator[str]:
    if made.admitted is None:
        yield f"Rejected: {made.reason}; predicted is {made.predicted}"
    else:
        yield f"Admitted: {made.admitted}"
    if made.lower is not None and made.upper is not None:
        yield f"  right with a probability of {made.lower:.3f} to {made.upper:.3f}, by calibration {made.calibration}"
    else:
        yield f"  by calibration {made.calibration}"
    if made.match_count is None or made.distance is None:
        return
    yield f"  q = {made.match_count} of the nearest training exemplars match in a row; d = {made.distance:.4g}"
    for neighbour in made.neighbours[:_NEAREST]:
        yield f"    {neighbour.distance:.4g}  {neighbour.label}  {neighbour.id}"
    if len(made.neighbours) > _NEAREST:
        yield f"    and {len(made.neighbours) - _NEAREST} more, in .neighbours"
