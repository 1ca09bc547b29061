"""A stream whose law is known, so that a promise can be compared with the truth: two classes, two networks, a drift."""

from dataclasses import dataclass
from math import log
from statistics import NormalDist

import numpy as np

from venn_admit.core.types import Float32Array, FloatArray, IntArray

CLASS_NAMES = ("negative", "positive")
DIMENSION = 4
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Seeing:
    """What a network sees of an input at a time: a number whose sign it predicts by.

    separation: the mean of the number, in standard deviations from 0, for either class. gain: what it is multiplied by,
    which the network does not know. taken_for: the separation that its softmax would be right for.
    """

    separation: float
    gain: float
    taken_for: float

    def share_right(self, least_score: float) -> float:
        """The share right of what is admitted of either predicted class from a score on."""
        right, wrong = self._tails(least_score)
        return right / (right + wrong)

    def share_admitted(self, least_score: float) -> float:
        """The share that is admitted of what is predicted as either class."""
        return sum(self._tails(least_score))

    def _tails(self, least_score: float) -> tuple[float, float]:
        logit = 0.0 if least_score <= 0.5 else log(least_score / (1 - least_score))  # no score is below a half
        margin = logit / (2 * self.taken_for * self.gain)
        return _NORMAL.cdf(self.separation - margin), _NORMAL.cdf(-self.separation - margin)


BEFORE = Seeing(separation=1.2, gain=1.0, taken_for=1.2)
DRIFTED = Seeing(separation=0.8, gain=1.8, taken_for=1.2)
RENEWED = Seeing(separation=1.6, gain=1.0, taken_for=1.6)


@dataclass(frozen=True, eq=False)
class Points:
    """Inputs with their true classes, and the noise that a network sees them through.

    noise: (n, networks, DIMENSION) standard normal.
    """

    ids: list[str]
    labels: IntArray
    noise: FloatArray

    def take(self, rows: IntArray) -> "Points":
        """Return some of them."""
        return Points([self.ids[row] for row in rows], self.labels[rows], self.noise[rows])

    def seen(self, seeing: Seeing) -> tuple[Float32Array, Float32Array]:
        """What a network makes of them: vectors (n, DIMENSION) and logits (n, 2), float32 each."""
        own = self.noise[:, int(seeing is RENEWED)].copy()
        own[:, 0] += np.where(self.labels == 1, seeing.separation, -seeing.separation)
        own[:, 0] *= seeing.gain
        logits = seeing.taken_for * own[:, :1] * np.array([-1.0, 1.0])
        return own.astype(np.float32), logits.astype(np.float32)


def draw(seed: int, day: int, count: int) -> Points:
    """The inputs of a day; day -1 and -2 have what the networks were trained on, and what was held out."""
    rng = np.random.default_rng([seed, day + 2])
    ids = [f"{day}-{number}" for number in range(count)]
    return Points(ids, rng.integers(2, size=count), rng.normal(size=(count, 2, DIMENSION)))
