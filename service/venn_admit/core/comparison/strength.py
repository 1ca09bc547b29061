"""How much less a calibration admits than the one that it would replace."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.strongest import LEAST_PART
from venn_admit.core.types import BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class AdmittedPoints:
    """The points that a calibration says of whether it would admit them by plain probabilities.

    Attributes:
        exemplar_ids: (n,) int64, each once.
    """

    exemplar_ids: IntArray
    admitted: BoolArray


@dataclass(frozen=True, slots=True)
class Strength:
    """What a calibration and the one in use would admit.

    Attributes:
        points: The number of points that both judge; 0 if each is measured on its own, drawn from the same data.
        share: The share that the calibration admits.
        share_in_use: The share that the one in use admits.
    """

    points: int
    share: float
    share_in_use: float

    @property
    def is_far_less(self) -> bool:
        """Whether it admits less than `LEAST_PART` of what the one in use does."""
        return self.share < LEAST_PART * self.share_in_use

    @property
    def is_nothing(self) -> bool:
        """Whether it admits nothing at all, where the one in use does."""
        return self.share == 0 < self.share_in_use


def measure_strength(judged: AdmittedPoints, in_use: AdmittedPoints) -> Strength:
    """Compare a calibration with the one in use on the points that both judge.

    Args:
        judged: The points of the calibration.
        in_use: Those of the one in use.

    >>> import numpy as np
    >>> new = AdmittedPoints(np.array([1, 2, 3]), np.array([True, False, False]))
    >>> measure_strength(new, AdmittedPoints(np.array([2, 3, 4]), np.array([True, False, True])))
    Strength(points=2, share=0.0, share_in_use=0.5)
    """
    by_both = np.isin(judged.exemplar_ids, in_use.exemplar_ids)
    if not by_both.any():
        return Strength(0, _share(judged.admitted), _share(in_use.admitted))
    also = np.isin(in_use.exemplar_ids, judged.exemplar_ids)
    return Strength(int(by_both.sum()), _share(judged.admitted[by_both]), _share(in_use.admitted[also]))


def _share(admitted: BoolArray) -> float:
    return float(admitted.mean()) if len(admitted) else 0.0
