"""Which points are drawn to be audited: with a probability that is fixed before their labels, by a keyed hash.

What was rejected is drawn with one rate, and what was admitted with another, which may differ by predicted class. As
the draw depends on the key and on a point's id, nobody can foretell or choose it, a repeat gives the same draw, and
copies are drawn apart, as random labels would come to them. Each generation of a classifier has a key of its own,
since its policy may follow from what the one before drew. Source of the weights: Horvitz & Thompson (1952), *A
generalization of sampling without replacement from a finite universe*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class AuditRates:
    """With which probability points are drawn.

    Attributes:
        admitted: (C,), in (0, 1], that of the admitted points of each predicted class.
        rejected: In [0, 1], that of the rejected ones; 0 leaves them outside of what the draws can promise.
    """

    admitted: tuple[float, ...]
    rejected: float

    def __post_init__(self) -> None:
        """Raise InvalidInputError at a rate that is out of range."""
        for rate in self.admitted:
            if not 0 < rate <= 1:
                raise InvalidInputError(
                    "the rate at which admitted points are audited: expected a number above 0, since nothing is "
                    f"promised of what is never audited, and at most 1, got {rate:g}"
                )
        if not 0 <= self.rejected <= 1:
            raise InvalidInputError(
                f"the rate at which rejected points are reviewed: expected a number in [0, 1], got {self.rejected:g}"
            )

    def probabilities(self, predicted: IntArray, admitted: BoolArray) -> FloatArray:
        """Return with which probability each of n points is drawn, (n,).

        Args:
            predicted: (n,) int64, the network's predictions.
        """
        return np.where(admitted, np.array(self.admitted)[predicted], self.rejected)

    @property
    def least_of_all(self) -> float:
        """The smallest probability with which any point is drawn."""
        return min(*self.admitted, self.rejected)

    def least(self, predicted: IntArray, never_admitted: BoolArray) -> FloatArray:
        """Return the smallest probability with which a point of the predicted class of each of n is drawn, (n,).

        The label of a drawn point weighs that much divided by its own probability, in [0, 1]: then the expected weight
        of a point, drawn or not, is the same for all points of the class, and no stake needs another bound.

        Args:
            never_admitted: (C,) bool, the predicted classes of which the policy in force admits nothing.
        """
        return np.minimum(np.where(never_admitted, 1.0, np.array(self.admitted)), self.rejected)[predicted]


def drawn(key: bytes, contents: Sequence[bytes], probabilities: FloatArray) -> BoolArray:
    """Return which of n points are drawn, (n,) bool.

    Args:
        key: 16 bytes, the generation's.
        contents: What each point is called, all different; before it may stand what it holds.
        probabilities: (n,) float64 in [0, 1].

    Examples:
        >>> drawn(bytes(16), [b"a", b"a", b"b"], np.array([1.0, 0.0, 0.2])).tolist()
        [True, False, False]
    """
    digests = b"".join(blake2b(one, key=key, digest_size=8, person=b"audit").digest() for one in contents)
    uniform = (np.frombuffer(digests, dtype="<u8") >> np.uint64(11)) * _UNIT
    return uniform < probabilities
