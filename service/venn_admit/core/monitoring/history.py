"""What each calibration of a classifier changed."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PointChanges:
    """How the points of a snapshot differ from those of the one before.

    Attributes:
        arrived: Points that the one before did not have.
        relabelled: Points with another label, or in the other split.
        gone: Points that it no longer has.
        moved: Points whose q or d is another.
    """

    arrived: int
    relabelled: int
    gone: int
    moved: int


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """A snapshot, and what it changed against the one before it that is still kept.

    Attributes:
        calibration: Its number.
        created_at: When it became current.
        reason: Why it was made.
        method: The method by which it calibrates.
        is_current: Whether its setting still has it.
        mc_count: The number of points of mc.
        vp_count: The number of points of vp.
        previous: The number of the one before; None for the first.
        points: What changed in the points; None for the first.
        other_parameters: Whether the KNN parameters are others.
        other_training: Whether the training data are others.
        other_settings: What was asked for otherwise, such as kappa.
        admitted: The share of its calibration data that it would admit; None if these are too many to count that here.
    """

    calibration: int
    created_at: datetime
    reason: str
    method: str
    is_current: bool
    mc_count: int
    vp_count: int
    previous: int | None
    points: PointChanges | None
    other_parameters: bool
    other_training: bool
    other_settings: tuple[str, ...]
    admitted: float | None
