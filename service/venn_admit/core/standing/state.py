"""What the labels so far have shown of the thresholds of a standing certificate.

Each threshold has a game, as those of the monitors: seven gamblers bet that more than 1 - alpha of what it admits is
right. If that is not so, their mean wealth ever reaches 1 / level with a chance of at most the level (Ville), so that
one may look after every label. That holds for points drawn with known probabilities too, whatever decided on these
before the labels came. Sources: Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by
betting*; Zrnic & Candès (2024), *Active statistical inference*; Bretz, Maurer, Brannath & Posch (2009), *A graphical
approach to sequentially rejective multiple test procedures*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.monitoring.anytime.games import STAKES, excess_factors, play
from venn_admit.core.standing.chains import ClassChain, StandingChain, document_counts, document_weights, in_blocks
from venn_admit.core.types import FloatArray, IntArray

GAMBLERS = STAKES[:7]
"""The stakes. The smallest ones of the monitors would only help where the share wrong is within a fortieth of alpha."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassState:
    """The games of the thresholds of one predicted class.

    Attributes:
        wealth: (P, S) float64, of each gambler.
        most: (P,) float64, the largest mean wealth so far.
        admitted: (P,) int64, the points that each threshold admits.
        right: (P,) int64, those of them that are right.
        capped: (P,) int64, the documents that count for fewer points than each threshold admits of them.
    """

    wealth: FloatArray
    most: FloatArray
    admitted: IntArray
    right: IntArray
    capped: IntArray


State = tuple[ClassState, ...]
"""(C,) the games of each predicted class. A class of which there are no new points keeps its very record."""


def initial_state(chain: StandingChain) -> State:
    """Return the state before the first label."""
    counts = [len(of.scores) for of in chain.classes]
    return tuple(
        ClassState(np.ones((count, len(GAMBLERS))), np.ones(count), *np.zeros((3, count), dtype=np.int64))
        for count in counts
    )


def advance(chain: StandingChain, state: State, points: CertificatePoints) -> State:
    """Take further documents into account; it takes time in proportion to them, and the bits are those of one advance.

    Args:
        points: All labelled points of the further documents, numbered in the order in which they count. They must be
            drawn at random, and none may have been looked at when the chain was fixed. If they were drawn with known
            probabilities pi, which hung on nothing but what was known before their labels, each has the weight
            pi_min / pi: L (z - 0) / pi has the mean of z, and pi_min / pi <= 1 keeps every bet within what it may
            cost, as a stake below pi_min / ((1 - alpha) M) on z / pi would.
    """
    found = list(state)
    for number, of_class in enumerate(chain.classes):
        rows = points.predicted == number
        if len(of_class.scores) and rows.any():
            found[number] = _advance_class(of_class, found[number], points.take(rows), 1 - chain.alpha)
    return tuple(found)


def _advance_class(chain: ClassChain, state: ClassState, points: CertificatePoints, share: float) -> ClassState:
    for block in in_blocks(points, state.wealth.size):
        admitted, right = document_counts(block, chain.scores)
        shown, of_right = document_weights(block, chain.scores)
        # A document of more points than M counts as M of them.
        part = np.minimum(1.0, chain.largest / np.maximum(admitted, 1))
        e_values, wealth = play(
            state.wealth, excess_factors(of_right * part, shown * part, chain.largest, share, GAMBLERS)
        )
        state = ClassState(
            wealth,
            np.maximum(state.most, e_values.max(axis=0)),
            state.admitted + admitted.sum(axis=0),
            state.right + right.sum(axis=0),
            state.capped + np.count_nonzero(admitted > chain.largest, axis=0),
        )
    return state


def certified_counts(chain: StandingChain, state: State) -> tuple[int, ...]:
    """Return how many thresholds of each predicted class are certified, (C,); they are its first ones.

    The classes share the level equally, and one of which every threshold is certified leaves its part to the others.
    With the largest wealth so far, what was certified stays certified.
    """
    tested = chain.tested
    counts = [0] * len(chain.classes)
    waiting: list[int] = []
    while len(left := [number for number in tested if counts[number] < len(state[number].most)]) != len(waiting):
        waiting = left
        for number in waiting:
            counts[number] = _first_below(state[number].most, len(waiting) / chain.level)
    return tuple(counts)


def _first_below(most: FloatArray, least: float) -> int:
    below = np.append(most < least, True)
    return int(below.argmax())


def admitting(chain: StandingChain, certified: Sequence[int]) -> tuple[float | None, ...]:
    """Return the least score at which each predicted class is admitted, (C,); None is never.

    Args:
        certified: As `certified_counts` returns them.
    """
    pairs = zip(chain.classes, certified, strict=True)
    return tuple(float(of.scores[count - 1]) if count else None for of, count in pairs)
