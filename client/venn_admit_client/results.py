"""Decisions on many points, whose columns are arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Array
from .records.decisions import Decision


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
